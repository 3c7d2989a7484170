"""Rows -> tables of text cells, for the terminal and as Markdown; `estimates` and `curves` work out the numbers.

A table says what it averages over, who made it, and which grade it shows.
"""

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from hl.bench import curves, estimates
from hl.bench.estimates import Cell, Estimate, Part, estimate, parts, read_cells, score
from hl.bench.paper import CURVES, FIGURES, MODELS
from hl.bench.rows import BASELINE, CHAIN, PROPOSAL, SEED, Row
from hl.types import Outcome

VARIED = "answer_format=varied"
"""What the name of a task with format-varied questions holds."""
SEEN = ("sft", "rl")
"""Roles of families that proposers are trained on."""


@dataclass(frozen=True, slots=True)
class Table:
    """Cells of text under a head."""

    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()


def all_tables(manifest: Mapping[str, Any], rows: Sequence[Row]) -> list[Table]:
    """Everything that a run's rows give."""
    arms = [(s, p) for s in manifest["solvers"] for p in manifest["proposers"]]
    found: list[Table] = []
    groups = scopes(rows)
    for title, kept in groups:
        found += _single(manifest, title, kept, arms)
    found += _families(manifest, rows, arms)
    for title, kept in groups:
        means = _comparison(kept, arms) + _chains(manifest, kept, arms)
        means += _baselines(kept, list(manifest["solvers"]))
        found += means if len(groups) == 1 else [replace(t, title=f"{t.title}: {title}") for t in means]
    return found


def scopes(rows: Sequence[Row]) -> list[tuple[str, list[Row]]]:
    """The groups of families that get a mean, canonical and format-varied questions apart.

    Unseen families, training families, both together, and each kind that stands apart from these.
    """
    found: list[tuple[str, list[Row]]] = []
    varied = [r for r in rows if VARIED in r.task]
    canonical = [r for r in rows if VARIED not in r.task]
    for these, suffix in ((canonical, ""), (varied, ", format-varied questions")):
        roles = {r.role for r in these}
        groups = [
            ("unseen families", {"unseen"}),
            ("training families", set(SEEN)),
            ("near: untrained families of training clusters", {"near"}),
            ("excluded: the hard boundary", {"excluded"}),
            ("families of no track" if roles - {""} else "all tasks", {""}),
        ]
        if "unseen" in roles and roles & set(SEEN):
            groups.insert(2, ("training and unseen families", {"unseen", *SEEN}))
        found += [
            (title + suffix, [r for r in these if r.role in wanted])
            for title, wanted in groups
            if roles & wanted
        ]
    return found


def render_cell(rows: Sequence[Row]) -> str:
    """What a finished cell came to: `seed 0.010, mean of 8 0.402, oracle 0.969; scored 6, noop 2`."""
    arm = (rows[0].solver, rows[0].proposer)
    outcomes = Counter(r.outcome for r in rows if r.kind == PROPOSAL)
    counts = ", ".join(f"{name} {n}" for name, n in sorted(outcomes.items(), key=lambda kv: (-kv[1], kv[0])))
    if rows[0].protocol == CHAIN:
        found = curves.points(rows)
        text = " ".join(f"{p.head:.3f}" for p in found)
        return f"head by round {text}; {counts}"
    (cell,) = read_cells(rows, *arm, rows[0].protocol)
    mean, best = score(estimates.failures_zero(cell)), score(estimates.oracle(cell))
    return f"seed {score(cell.seed):.3f}, mean {mean:.3f}, oracle {best:.3f}; {counts}"


# --- single steps -------------------------------------------------------------------------------------------


def _single(
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
        line(name, lambda cells: _mean(estimate(parts(cells, values))))

    column("seed", estimates.seed)
    column(f"mean of {k}, failures 0", estimates.failures_zero)
    column(f"mean of {k}, failures = parent", estimates.failures_parent)
    column("mean over valid only", estimates.valid_only)
    line("failed proposals", _failures)
    column(f"best of {k} chosen on scoring", estimates.chosen)
    column(f"best of {k}, cross-fitted", estimates.cross_fitted)
    column(f"best of {k}, oracle", estimates.oracle)
    gain = estimates.gain(estimates.failures_zero)
    line(f"paired gain of the mean of {k}", lambda cells: _gain(estimate(parts(cells, gain))))
    line("  95 %, families fixed", lambda cells: _fixed(estimate(parts(cells, gain))))
    line("  95 %, over clusters", lambda cells: _clusters(estimate(parts(cells, gain))))
    line("  A/A noise floor", lambda cells: _floor(estimate(parts(cells, estimates.again))))
    best = estimates.gain(estimates.chosen)
    line("  clear of 0 and of the floor", _clear)
    line("paired gain of the chosen", lambda cells: _gain(estimate(parts(cells, best))))
    line("  95 %, families fixed", lambda cells: _fixed(estimate(parts(cells, best))))
    line("  95 %, over clusters", lambda cells: _clusters(estimate(parts(cells, best))))
    line(
        "attempts without a call", lambda cells: _share(_per(cells, lambda p: p.zero_call_share * p.attempts))
    )
    line("calls an attempt", lambda cells: _number(_per(cells, lambda p: p.calls), 2))
    line("tokens an attempt", lambda cells: _number(_per(cells, lambda p: p.tokens), 0))
    line("  the seed's", lambda cells: _seed_cost(rows, by_arm, cells))
    first = next(iter(by_arm.values()))
    families, contexts = len({c.family for c in first}), len(first)
    return [
        Table(
            f"One step, {title}",
            ("", *(_arm(arm, arms) for arm in by_arm)),
            tuple(lines),
            (
                f"mean over {families} {'family' if families == 1 else 'families'} ({contexts} contexts), "
                f"{len(first[0].seed)} evaluation questions each, {_grade(manifest)} grades",
                *_told(manifest),
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


def _arm(arm: tuple[str, str], arms: Sequence[tuple[str, str]]) -> str:
    """The proposer's name, and the solver's where there are several."""
    return arm[1] if len({solver for solver, _ in arms}) == 1 else f"{arm[1]} on {arm[0]}"


def _grade(manifest: Mapping[str, Any]) -> str:
    return str(manifest.get("grade", "raw"))


def _told(manifest: Mapping[str, Any]) -> tuple[str, ...]:
    told = manifest["settings"].get("report", "full")
    return () if told == "full" else (f"control: the proposer's report was {told}",)


def _failures(cells: Sequence[Cell]) -> str:
    outcomes = Counter(p.outcome for c in cells for p in c.proposals if p.grades is None)
    total = sum(len(c.proposals) for c in cells)
    if not total:
        return "-"
    named = ", ".join(f"{name} {n}" for name, n in sorted(outcomes.items(), key=lambda kv: (-kv[1], kv[0])))
    return f"{sum(outcomes.values()) / total:.0%}" + (f" ({named})" if named else "")


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


def _families(
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
                    _short(estimate(parts(own, estimates.seed))),
                    _short(estimate(parts(own, estimates.failures_zero))),
                    _gain(estimate(parts(own, estimates.gain(estimates.failures_zero)))),
                    _failures(own).split(" ")[0],
                    _short(estimate(parts(own, estimates.chosen))),
                    _short(estimate(parts(own, estimates.cross_fitted))),
                    _short(estimate(parts(own, estimates.oracle))),
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
            tables.append(Table(f"By family, {_arm(arm, arms)}", head, tuple(lines)))
    return tables


def _comparison(rows: Sequence[Row], arms: Sequence[tuple[str, str]]) -> list[Table]:
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
                lines.append((label, what, _gain(found), _fixed(found), _clusters(found)))
    if not lines:
        return []
    head = ("proposers", "of", "paired difference", "95 %, families fixed", "95 %, over clusters")
    return [Table("Paired comparison of proposers", head, tuple(lines))]


# --- chains -------------------------------------------------------------------------------------------------


def _chains(manifest: Mapping[str, Any], rows: Sequence[Row], arms: Sequence[tuple[str, str]]) -> list[Table]:
    tables: list[Table] = []
    for arm in arms:
        found = curves.curve(rows, *arm)
        if found is None:
            continue
        lines = [
            (str(n), *(f"{value:.3f}" for value in (p.head, p.chosen, p.oracle, p.proposals)))
            for n, p in enumerate(found.points)
        ]
        share = "none in total" if found.first_share is None else f"{found.first_share:.0%}"
        notes = [
            f"mean over {found.families} task(s) and {found.chains} chain(s), on the evaluation set, "
            f"{_grade(manifest)} grades; the oracle is chosen on the evaluation set itself",
            f"share of the head's total gain that round 1 took: {share}",
            f"the chains took {_cost(found.spent)}",
        ]
        alone = curves.independent(rows, *arm)
        if alone is not None:
            best, count, cost = alone
            notes.append(f"oracle best of {count} independent proposals: {best:.3f}; they took {_cost(cost)}")
        k = manifest["settings"]["proposals"]
        head = ("round", "head", "best so far, by scoring", "best so far, oracle", f"mean of {k}, failures 0")
        tables.append(Table(f"Chains, {_arm(arm, arms)}", head, tuple(lines), (*notes, *_told(manifest))))
    return tables


def _cost(spent: curves.Spent) -> str:
    text = f"{spent.calls:,} solver calls, {spent.tokens:,} tokens"
    return text + (f", {spent.proposer_tokens:,} proposer tokens" if spent.proposer_tokens else "")


def _baselines(rows: Sequence[Row], solvers: Sequence[str]) -> list[Table]:
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
            lines.append((name + label, _mean(estimate(values)), _gain(found), _fixed(found)))
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


# --- several runs, and the paper ----------------------------------------------------------------------------


def models_of(manifest: Mapping[str, Any]) -> str:
    """Which models made a run, in one line."""

    def name(model: Mapping[str, Any]) -> str:
        what = model.get("model") or model.get("path") or ""
        words = f"{model.get('engine', '?')} {what}".strip()
        return words + (f" at {model['base_url']}" if model.get("base_url") else "")

    def names(models: Mapping[str, Any]) -> str:
        return "; ".join(f"{label} = {name(model)}" for label, model in models.items())

    return f"solver {names(manifest['solvers'])}; proposer {names(manifest['proposers'])}"


def compare(runs: Sequence[tuple[str, Mapping[str, Any], Sequence[Row]]]) -> Table:
    """One line a run, arm and group of families.

    Args:
        runs: (name, manifest, rows) of each.
    """
    lines: list[tuple[str, ...]] = []
    for name, manifest, rows in runs:
        arms = [(s, p) for s in manifest["solvers"] for p in manifest["proposers"]]
        for title, kept in scopes(rows):
            for arm in arms:
                cells = read_cells(kept, *arm)
                label = (name, f"{arm[1]} on {arm[0]}", title)
                if cells:
                    lines.append(
                        (
                            *label,
                            _short(estimate(parts(cells, estimates.seed))),
                            _mean(estimate(parts(cells, estimates.failures_zero))),
                            _gain(estimate(parts(cells, estimates.gain(estimates.failures_zero)))),
                            _short(estimate(parts(cells, estimates.chosen))),
                            _failures(cells).split(" ")[0],
                        )
                    )
                chain = curves.curve(kept, *arm)
                if chain is not None:
                    last = chain.points[-1]
                    start = chain.points[0].head
                    lines.append(
                        (
                            *label,
                            f"{start:.3f}",
                            f"{last.head:.3f} after {len(chain.points) - 1} rounds",
                            f"{last.head - start:+.3f}",
                            f"{last.chosen:.3f}",
                            "-",
                        )
                    )
    notes = tuple(f"{name}: {models_of(manifest)}" for name, manifest, _ in runs)
    head = ("run", "arm", "families", "seed", "mean, failures 0", "paired gain", "chosen", "failed")
    return Table("Runs", head, tuple(lines), notes)


def paper_tables() -> list[Table]:
    """The paper's own numbers, each with its source and mark."""
    lines = [
        (
            f.benchmark,
            f.proposer,
            f.measure,
            f"{f.value:.3f}" + (f" ± {f.se:.3f}" if f.se is not None else ""),
            f.source,
            f.mark,
        )
        for f in FIGURES
    ]
    rounds = max(len(c.values) for c in CURVES)
    curve_lines = [(str(n), *(f"{c.values[n]:.3f}" for c in CURVES)) for n in range(rounds)]
    return [
        Table(
            "The paper's figures",
            ("benchmark", "proposer", "measure", "value", "source", "mark"),
            tuple(lines),
            (f"arXiv:2609.35738, not measured by hl; {MODELS}",),
        ),
        Table(
            f"The paper's curves: {CURVES[0].measure}",
            ("round", *(c.proposer for c in CURVES)),
            tuple(curve_lines),
            tuple(f"{c.proposer}: {c.source} ({c.mark})" for c in CURVES),
        ),
    ]


# --- cells --------------------------------------------------------------------------------------------------


def _mean(found: Estimate | None) -> str:
    return "-" if found is None else f"{found.mean:.3f} ± {found.fixed.se:.3f}"


def _short(found: Estimate | None) -> str:
    return "-" if found is None else f"{found.mean:.3f}"


def _gain(found: Estimate | None) -> str:
    return "-" if found is None else f"{found.mean:+.3f} ± {found.fixed.se:.3f}"


def _fixed(found: Estimate | None) -> str:
    return "-" if found is None else f"[{found.fixed.low:+.3f}, {found.fixed.high:+.3f}]"


def _clusters(found: Estimate | None) -> str:
    if found is None or found.clusters is None:
        return "-"
    return f"[{found.clusters.low:+.3f}, {found.clusters.high:+.3f}] ± {found.clusters.se:.3f}"


def _floor(found: Estimate | None) -> str:
    return "-" if found is None else f"{estimates.floor_of(found):.3f} ({found.mean:+.3f} measured)"


def _share(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.0%}"


def _number(value: float, digits: int) -> str:
    return "-" if math.isnan(value) else f"{value:.{digits}f}"
