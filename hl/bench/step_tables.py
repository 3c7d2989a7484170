"""Rows of single steps -> their tables: one step, by family, proposers against each other, hand-made harnesses."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from hl.bench import estimates
from hl.bench.estimates import Cell, Part, estimate, parts, read_cells
from hl.bench.rows import BASELINE, SEED, Row
from hl.bench.table import Table
from hl.bench.text import (
    arm_text,
    clusters_text,
    failures_text,
    fixed_text,
    floor_text,
    gain_text,
    grade_of,
    mean_text,
    number_text,
    share_text,
    short_text,
    told,
)
from hl.types import Outcome


def one_step_tables(
    manifest: Mapping[str, Any], title: str, rows: Sequence[Row], arms: Sequence[tuple[str, str]]
) -> list[Table]:
    by_arm = {arm: found for arm in arms if (found := read_cells(rows, *arm))}
    if not by_arm:
        return []
    k = manifest["settings"]["proposals"]
    lines: list[tuple[str, ...]] = []

    def line(name: str, value: Callable[[tuple[Cell, ...]], str]) -> None:
        lines.append((name, *(value(cells) for cells in by_arm.values())))

    def column(name: str, values: Callable[[Cell], estimates.Vector]) -> None:
        line(name, lambda cells: mean_text(estimate(parts(cells, values))))

    column("seed", estimates.seed)
    column(f"mean of {k}, failures 0", estimates.failures_zero)
    column(f"mean of {k}, failures = parent", estimates.failures_parent)
    column("mean over valid only", estimates.valid_only)
    line("failed proposals", failures_text)
    column(f"best of {k} chosen on scoring", estimates.chosen)
    column(f"best of {k}, cross-fitted", estimates.cross_fitted)
    column(f"best of {k}, oracle", estimates.oracle)
    gain = estimates.gain(estimates.failures_zero)
    line(f"paired gain of the mean of {k}", lambda cells: gain_text(estimate(parts(cells, gain))))
    line("  95 %, families fixed", lambda cells: fixed_text(estimate(parts(cells, gain))))
    line("  95 %, over clusters", lambda cells: clusters_text(estimate(parts(cells, gain))))
    line("  A/A noise floor", lambda cells: floor_text(estimate(parts(cells, estimates.again))))
    best = estimates.gain(estimates.chosen)
    line("  clear of 0 and of the floor", _clear)
    line("paired gain of the chosen", lambda cells: gain_text(estimate(parts(cells, best))))
    line("  95 %, families fixed", lambda cells: fixed_text(estimate(parts(cells, best))))
    line("  95 %, over clusters", lambda cells: clusters_text(estimate(parts(cells, best))))
    line(
        "attempts without a call",
        lambda cells: share_text(_per(cells, lambda p: p.zero_call_share * p.attempts)),
    )
    line("calls an attempt", lambda cells: number_text(_per(cells, lambda p: p.calls), 2))
    line("tokens an attempt", lambda cells: number_text(_per(cells, lambda p: p.tokens), 0))
    line("  the seed's", lambda cells: _seed_cost(rows, by_arm, cells))
    first = next(iter(by_arm.values()))
    families, contexts = len({c.family for c in first}), len(first)
    return [
        Table(
            f"One step, {title}",
            ("", *(arm_text(arm, arms) for arm in by_arm)),
            tuple(lines),
            (
                f"mean over {families} {'family' if families == 1 else 'families'} ({contexts} contexts), "
                f"{len(first[0].seed)} evaluation questions each, {grade_of(manifest)} grades",
                *told(manifest),
            ),
        )
    ]


def _clear(cells: Sequence[Cell]) -> str:
    """Whether the lower end of the gain's interval, families fixed, lies above 0 and above the A/A noise floor."""
    found = estimate(parts(cells, estimates.gain(estimates.failures_zero)))
    noise = estimate(parts(cells, estimates.again))
    if found is None or noise is None:
        return "-"
    return "yes" if found.fixed.low > estimates.floor_of(noise) else "no"


def _per(cells: Sequence[Cell], value: Callable[[estimates.Proposed], float]) -> float:
    """Per attempt, over the measured candidates; duplicates are not counted twice."""
    measured = [p for c in cells for p in c.proposals if p.attempts and p.outcome == Outcome.SCORED.value]
    total = sum(p.attempts for p in measured)
    return math.fsum(value(p) for p in measured) / total if total else math.nan


def _seed_cost(rows: Sequence[Row], by_arm: Mapping[tuple[str, str], tuple[Cell, ...]], cells: Any) -> str:
    arm = next(a for a, found in by_arm.items() if found is cells)
    own = [r.evaluation for r in rows if r.kind == SEED and (r.solver, r.proposer) == arm and r.evaluation]
    total = sum(e.attempts for e in own)
    if not total:
        return "-"
    return f"{sum(e.calls for e in own) / total:.2f} calls, {sum(e.tokens for e in own) / total:.0f} tokens"


def family_tables(
    manifest: Mapping[str, Any], rows: Sequence[Row], arms: Sequence[tuple[str, str]]
) -> list[Table]:
    k = manifest["settings"]["proposals"]
    tables: list[Table] = []
    for arm in arms:
        cells = read_cells(rows, *arm)
        lines: list[tuple[str, ...]] = []
        for family in dict.fromkeys(c.family for c in cells):
            own = [c for c in cells if c.family == family]
            lines.append(
                (
                    family,
                    own[0].role or "-",
                    short_text(estimate(parts(own, estimates.seed))),
                    short_text(estimate(parts(own, estimates.failures_zero))),
                    gain_text(estimate(parts(own, estimates.gain(estimates.failures_zero)))),
                    failures_text(own).split(" ")[0],
                    short_text(estimate(parts(own, estimates.chosen))),
                    short_text(estimate(parts(own, estimates.cross_fitted))),
                    short_text(estimate(parts(own, estimates.oracle))),
                )
            )
        if lines:
            head = (
                "family",
                "role",
                "seed",
                f"mean of {k}",
                "gain",
                "failed",
                "chosen",
                "cross-fitted",
                "oracle",
            )
            tables.append(Table(f"By family, {arm_text(arm, arms)}", head, tuple(lines)))
    return tables


def comparison_tables(rows: Sequence[Row], arms: Sequence[tuple[str, str]]) -> list[Table]:
    """Proposers against the first one of the same solver, paired question by question in each context."""
    lines: list[tuple[str, ...]] = []
    for solver in dict.fromkeys(s for s, _ in arms):
        names = [p for s, p in arms if s == solver]
        base = {(c.family, c.block): c for c in read_cells(rows, solver, names[0])}
        for name in names[1:]:
            pairs = [
                (c, base[c.family, c.block])
                for c in read_cells(rows, solver, name)
                if (c.family, c.block) in base
            ]
            for what, column in (("mean, failures 0", estimates.failures_zero), ("chosen", estimates.chosen)):
                found = estimate(
                    [Part(c.family, c.cluster, estimates.minus(column(c), column(b))) for c, b in pairs]
                )
                if found is None:  # chains: they hold no single steps
                    continue
                label = f"{name} - {names[0]}" + (f" on {solver}" if len({s for s, _ in arms}) > 1 else "")
                lines.append((label, what, gain_text(found), fixed_text(found), clusters_text(found)))
    if not lines:
        return []
    head = ("proposers", "of", "paired difference", "95 %, families fixed", "95 %, over clusters")
    return [Table("Paired comparison of proposers", head, tuple(lines))]


def baseline_tables(rows: Sequence[Row], solvers: Sequence[str]) -> list[Table]:
    """Hand-made harnesses and the seed on the evaluation set, mean over tasks."""
    lines: list[tuple[str, ...]] = []
    for solver in solvers:
        own = [r for r in rows if r.kind == BASELINE and r.solver == solver and r.evaluation is not None]
        seeds = {
            r.task: r for r in rows if r.kind == SEED and r.solver == solver and r.evaluation is not None
        }
        label = f" on {solver}" if len(solvers) > 1 else ""
        for name in dict.fromkeys(r.name for r in own):
            mine = [r for r in own if r.name == name and r.task in seeds]
            values = [_part(r) for r in mine]
            gains = [
                Part(r.family, r.cluster, estimates.minus(v.values, _part(seeds[r.task]).values))
                for r, v in zip(mine, values, strict=True)
            ]
            found = estimate(gains)
            lines.append((name + label, mean_text(estimate(values)), gain_text(found), fixed_text(found)))
    if not lines:
        return []
    return [
        Table(
            "Hand-made harnesses",
            ("harness", "score", "paired gain on the seed", "95 %, families fixed"),
            tuple(lines),
        )
    ]


def _part(row: Row) -> Part:
    assert row.evaluation is not None  # callers keep such rows only
    return Part(row.family, row.cluster, estimates.vector(row.evaluation.grades))
