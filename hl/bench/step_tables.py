"""Rows of single steps -> their tables: one step, by family, proposers against each other, hand-made harnesses."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from hl.bench import estimates, noise
from hl.bench.arms import Arm, left_out, shared_cells
from hl.bench.estimates import Cell, Estimate, Part, estimate, parts, read_cells
from hl.bench.noise import Noise, family_noise, less
from hl.bench.rows import BASELINE, SEED, Row
from hl.bench.table import Entry, Table
from hl.bench.text import (
    above_text,
    arm_text,
    clusters_text,
    difference_texts,
    failures_text,
    fixed_text,
    floor_text,
    gain_text,
    mean_text,
    number_text,
    share_text,
    short_text,
    span_text,
    told,
)
from hl.types import Outcome

MEAN_GAIN = (estimates.gain(estimates.failures_zero), less(noise.mean_weights, noise.seed_weights))
CHOSEN_GAIN = (estimates.gain(estimates.chosen), less(noise.chosen_weights, noise.seed_weights))
"""A column, and what it weighs."""
COMPARED = (
    ("failures_zero", "mean, failures 0", estimates.failures_zero, noise.mean_weights),
    ("chosen", "chosen", estimates.chosen, noise.chosen_weights),
)
"""What is subtracted between proposers and between runs: stable name, text, column and weights."""


def one_step_tables(
    manifest: Mapping[str, Any], title: str, rows: Sequence[Row], arms: Sequence[Arm]
) -> list[Table]:
    """One column an arm, one line a number; means over families."""
    everything = {arm: found for arm in arms if (found := read_cells(rows, *arm))}
    if not everything:
        return []
    by_arm = shared_cells(everything)
    if not all(by_arm.values()):
        return []
    k = manifest["settings"]["proposals"]
    lines: list[tuple[str | Entry, ...]] = []

    def line(key: str, text: str, value: Callable[[Arm, tuple[Cell, ...]], Entry]) -> None:
        lines.append((Entry(text, key), *(value(arm, cells) for arm, cells in by_arm.items())))

    def column(key: str, text: str, values: Callable[[Cell], estimates.Vector]) -> None:
        line(key, text, lambda _, cells: mean_text(estimate(parts(cells, values))))

    def gains(key: str, text: str, of: tuple[Any, Any]) -> None:
        found = {arm: _with_floor(cells, of) for arm, cells in by_arm.items()}
        line(key, text, lambda arm, _: gain_text(found[arm][0]))
        line(f"{key}_fixed", "  95 %, families fixed", lambda arm, _: fixed_text(found[arm][0]))
        line(f"{key}_clusters", "  95 %, over clusters", lambda arm, _: clusters_text(found[arm][0]))
        line(f"{key}_floor", "  A/A noise floor", lambda arm, _: floor_text(found[arm][1]))
        line(f"{key}_above", "  above 0 and the floor", lambda arm, _: above_text(*found[arm]))

    column("seed", "seed", estimates.seed)
    column("failures_zero", f"mean of {k}, failures 0", estimates.failures_zero)
    column("failures_parent", f"mean of {k}, failures = parent", estimates.failures_parent)
    column("valid_only", "mean over valid only", estimates.valid_only)
    line("failed", "failed proposals", lambda _, cells: failures_text(cells))
    line("noop", "candidates that changed no call", lambda _, cells: _noops(cells))
    column("chosen", f"best of {k} chosen on scoring", estimates.chosen)
    column("cross_fitted", f"best of {k}, cross-fitted", estimates.cross_fitted)
    column("oracle", f"best of {k}, oracle", estimates.oracle)
    gains("gain_mean", f"paired gain of the mean of {k}", MEAN_GAIN)
    gains("gain_chosen", "paired gain of the chosen", CHOSEN_GAIN)
    for key, text, again in (
        ("again_seed", "A/A: the seed once more", estimates.seed_again),
        ("again_winner", "A/A: the winner once more", estimates.winner_again),
    ):
        line(key, text, lambda _, cells, again=again: gain_text(estimate(parts(cells, again))))
    line(
        "zero_call_share",
        "attempts without a call",
        lambda _, cells: share_text(_per(cells, lambda p: p.zero_call_share * p.attempts)),
    )
    line("calls", "calls an attempt", lambda _, cells: number_text(_per(cells, lambda p: p.calls), 2))
    line("tokens", "tokens an attempt", lambda _, cells: number_text(_per(cells, lambda p: p.tokens), 0))
    line("seed_cost", "  the seed's", lambda arm, cells: _seed_cost(rows, arm, cells))
    names = [arm_text(arm, arms) for arm in by_arm]
    notes = (
        *_averaged(by_arm),
        *left_out(everything, by_arm, arms, "context"),
        *_lost(by_arm, k, arms),
        *told(manifest),
    )
    return [Table(f"One step, {title}", ("", *names), tuple(lines), notes, "one_step", ("measure", *names))]


def _with_floor(cells: Sequence[Cell], of: tuple[Any, Any]) -> tuple[Estimate | None, float | None]:
    column, weights = of
    return estimate(parts(cells, column)), noise.floor(cells, weights, family_noise(cells))


def _averaged(by_arm: Mapping[Arm, Sequence[Cell]]) -> list[str]:
    first = next(iter(by_arm.values()))
    families, contexts = len({c.family for c in first}), len(first)
    notes = [
        f"mean over {families} {'family' if families == 1 else 'families'} ({contexts} "
        f"context{'s' * (contexts > 1)}), {span_text(len(c.seed) for c in first)} evaluation questions each",
        "± of the chosen, the cross-fitted and the oracle takes the choice as made: no draw chooses anew",
    ]
    different = {f: len({c.questions for c in first if c.family == f}) for f in [c.family for c in first]}
    few = [f"{f} {n}" for f, n in different.items() if n < sum(c.family == f for c in first)]
    if few:
        notes.append(f"too few questions for contexts that all differ; different ones: {', '.join(few)}")
    if contexts == families:
        notes.append("one context a family: the spread between contexts is unmeasured")
    if len({proposer for _, proposer in by_arm}) > 1 and any(c.again for c in first):
        notes.append("the seed's second measurement is the same one for every proposer")
    return notes


def _lost(by_arm: Mapping[Arm, Sequence[Cell]], k: int, arms: Sequence[Arm]) -> list[str]:
    found = {arm: sum(c.lost for c in cells) for arm, cells in by_arm.items()}
    return [
        f"{arm_text(arm, arms)}: {n} proposal{'s' * (n > 1)} lost through no fault of the proposer, "
        f"so that some means are over fewer than {k}"
        for arm, n in found.items()
        if n
    ]


def _noops(cells: Sequence[Cell]) -> Entry:
    scored = [p for c in cells for p in c.proposals if p.outcome == Outcome.SCORED.value]
    return share_text(sum(p.noop for p in scored) / len(scored) if scored else math.nan)


def _per(cells: Sequence[Cell], value: Callable[[estimates.Proposed], float]) -> float:
    """Per attempt, over the measured candidates; duplicates are not counted twice."""
    measured = [p for c in cells for p in c.proposals if p.attempts and p.outcome == Outcome.SCORED.value]
    total = sum(p.attempts for p in measured)
    return math.fsum(value(p) for p in measured) / total if total else math.nan


def _seed_cost(rows: Sequence[Row], arm: Arm, cells: Sequence[Cell]) -> Entry:
    kept = {(c.family, c.block) for c in cells}
    seeds = [r for r in rows if r.kind == SEED and (r.solver, r.proposer) == arm]
    own = [r.evaluation for r in seeds if r.evaluation is not None and (r.family, r.block) in kept]
    total = sum(e.attempts for e in own)
    if not total:
        return Entry("-", None)
    calls, tokens = sum(e.calls for e in own) / total, sum(e.tokens for e in own) / total
    value = {"calls": round(calls, 6), "tokens": round(tokens, 6)}
    return Entry(f"{calls:.2f} calls, {tokens:.0f} tokens", value)


def family_tables(manifest: Mapping[str, Any], rows: Sequence[Row], arms: Sequence[Arm]) -> list[Table]:
    """One table an arm, one line a family."""
    k = manifest["settings"]["proposals"]
    tables: list[Table] = []
    for arm in arms:
        cells = read_cells(rows, *arm)
        lines: list[tuple[str | Entry, ...]] = []
        for family in dict.fromkeys(c.family for c in cells):
            own = [c for c in cells if c.family == family]
            gain, floor = _with_floor(own, MEAN_GAIN)
            lines.append(
                (
                    family,
                    own[0].role or "-",
                    short_text(estimate(parts(own, estimates.seed))),
                    short_text(estimate(parts(own, estimates.failures_zero))),
                    gain_text(gain),
                    floor_text(floor),
                    above_text(gain, floor),
                    failures_text(own, outcomes=False),
                    short_text(estimate(parts(own, estimates.chosen))),
                    short_text(estimate(parts(own, estimates.cross_fitted))),
                    short_text(estimate(parts(own, estimates.oracle))),
                )
            )
        if lines:
            head = ("family", "role", "seed", f"mean of {k}", "gain", "A/A floor", "above")
            head += ("failed", "chosen", "cross-fitted", "oracle")
            keys = ("family", "role", "seed", "failures_zero", "gain_mean", "floor", "above")
            keys += ("failed", "chosen", "cross_fitted", "oracle")
            title = f"By family, {arm_text(arm, arms)}"
            tables.append(Table(title, head, tuple(lines), (), "by_family", keys))
    return tables


def comparison_tables(rows: Sequence[Row], arms: Sequence[Arm]) -> list[Table]:
    """Proposers against the first one of the same solver, paired question by question in each context."""
    lines: list[tuple[str | Entry, ...]] = []
    for solver in dict.fromkeys(s for s, _ in arms):
        names = [p for s, p in arms if s == solver]
        base = {(c.family, c.block): c for c in read_cells(rows, solver, names[0])}
        for name in names[1:]:
            cells = [c for c in read_cells(rows, solver, name) if (c.family, c.block) in base]
            known = family_noise([*cells, *base.values()])
            for key, what, column, weights in COMPARED:
                found = estimate([_difference(c, base[c.family, c.block], column) for c in cells])
                if found is None:  # chains: they hold no single steps
                    continue
                floor = noise.floor(
                    cells,
                    lambda c, w=weights, b=base: noise.differ(w(c), w(b[c.family, c.block])),
                    known,
                )
                label = f"{name} - {names[0]}" + (f" on {solver}" if len({s for s, _ in arms}) > 1 else "")
                lines.append((label, Entry(what, key), *difference_texts(found, floor)))
    if not lines:
        return []
    head = ("proposers", "of", "paired difference", "95 %, families fixed", "95 %, over clusters")
    keys = ("proposers", "of", "difference", "fixed", "over_clusters", "floor", "above")
    head += ("A/A floor", "above 0 and it")
    return [Table("Paired comparison of proposers", head, tuple(lines), (), "proposers", keys)]


def _difference(cell: Cell, base: Cell, column: Callable[[Cell], estimates.Vector]) -> Part:
    return Part(cell.family, cell.cluster, estimates.minus(column(cell), column(base)))


def baseline_tables(rows: Sequence[Row], solvers: Sequence[str]) -> list[Table]:
    """Hand-made harnesses and the seed on the evaluation set, mean over tasks."""
    lines: list[tuple[str | Entry, ...]] = []
    for solver in solvers:
        own = [r for r in rows if r.kind == BASELINE and r.solver == solver and r.evaluation is not None]
        seeds = {
            r.task: r for r in rows if r.kind == SEED and r.solver == solver and r.evaluation is not None
        }
        known = _noise_on(rows, solver)
        label = f" on {solver}" if len(solvers) > 1 else ""
        for name in dict.fromkeys(r.name for r in own):
            mine = [r for r in own if r.name == name and r.task in seeds]
            values = [_part(r) for r in mine]
            gains = [
                Part(r.family, r.cluster, estimates.minus(v.values, _part(seeds[r.task]).values))
                for r, v in zip(mine, values, strict=True)
            ]
            found = estimate(gains)
            floor = noise.single_floor([r.family for r in mine], known)
            lines.append(
                (
                    name + label,
                    mean_text(estimate(values)),
                    gain_text(found),
                    fixed_text(found),
                    floor_text(floor),
                    above_text(found, floor),
                )
            )
    if not lines:
        return []
    head = (
        "harness",
        "score",
        "paired gain on the seed",
        "95 %, families fixed",
        "A/A floor",
        "above 0 and it",
    )
    keys = ("harness", "score", "gain", "fixed", "floor", "above")
    return [Table("Hand-made harnesses", head, tuple(lines), (), "baselines", keys)]


def _noise_on(rows: Sequence[Row], solver: str) -> Mapping[str, Noise]:
    """From the cells of all proposers."""
    proposers = dict.fromkeys(r.proposer for r in rows if r.solver == solver)
    return family_noise([c for p in proposers for c in read_cells(rows, solver, p)])


def _part(row: Row) -> Part:
    assert row.evaluation is not None  # callers keep such rows only
    return Part(row.family, row.cluster, estimates.vector(row.evaluation.grades))
