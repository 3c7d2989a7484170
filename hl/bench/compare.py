"""Several runs side by side, what one gained on another, and the paper's numbers below."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from hl.bench import estimates, noise
from hl.bench.arms import Placed
from hl.bench.curves import Chain, Measured, curve, read_chains
from hl.bench.estimates import Cell, Estimate, Part, estimate, minus, parts, read_cells
from hl.bench.noise import family_noise, less
from hl.bench.paper import CURVES, FIGURES, MODELS
from hl.bench.rows import SEED, Row
from hl.bench.step_tables import COMPARED
from hl.bench.table import Entry, Table
from hl.bench.tables import scopes
from hl.bench.text import (
    NONE,
    above_text,
    difference_texts,
    failures_text,
    floor_text,
    gain_text,
    grade_of,
    mean_text,
    short_text,
)

Run = tuple[str, Mapping[str, Any], Sequence[Row]]
"""(name, manifest, rows in the manifest's grade)."""
_T = TypeVar("_T", bound=Placed)


def models_of(manifest: Mapping[str, Any]) -> str:
    """Which models made a run, in one line."""

    def name(model: Mapping[str, Any]) -> str:
        what = model.get("model") or model.get("path") or ""
        words = f"{model.get('engine', '?')} {what}".strip()
        return words + (f" at {model['base_url']}" if model.get("base_url") else "")

    def names(models: Mapping[str, Any]) -> str:
        return "; ".join(f"{label} = {name(model)}" for label, model in models.items())

    return f"solver {names(manifest['solvers'])}; proposer {names(manifest['proposers'])}"


def compare(runs: Sequence[Run]) -> list[Table]:
    """One line a run, arm and group of families; of several runs the paired differences to the first one too."""
    lines: list[tuple[str | Entry, ...]] = []
    for name, manifest, rows in runs:
        for title, kept in scopes(rows):
            for arm in _arms(manifest):
                label = (name, f"{arm[1]} on {arm[0]}", title)
                cells = read_cells(kept, *arm)
                if cells:
                    gain = estimate(parts(cells, estimates.gain(estimates.failures_zero)))
                    floor = noise.floor(
                        cells, less(noise.mean_weights, noise.seed_weights), family_noise(cells)
                    )
                    lines.append(
                        (
                            *label,
                            short_text(estimate(parts(cells, estimates.seed))),
                            mean_text(estimate(parts(cells, estimates.failures_zero))),
                            gain_text(gain),
                            floor_text(floor),
                            above_text(gain, floor),
                            short_text(estimate(parts(cells, estimates.chosen))),
                            failures_text(cells, outcomes=False),
                        )
                    )
                chain = curve(read_chains(kept, arm))
                if chain is not None:
                    last = chain.points[-1]
                    lines.append(
                        (
                            *label,
                            short_text(chain.points[0].head),
                            _after(last.head, len(chain.points) - 1),
                            gain_text(last.gain),
                            floor_text(last.floor),
                            above_text(last.gain, last.floor),
                            short_text(last.chosen),
                            NONE,
                        )
                    )
    grades = list(dict.fromkeys(grade_of(manifest) for _, manifest, _ in runs))
    notes = (
        *(f"{name}: {models_of(manifest)}" for name, manifest, _ in runs),
        *_questions(runs),
        *(["the runs show different grades: hl bench show --grade raw|strict"] if len(grades) > 1 else []),
    )
    head = (
        "run",
        "arm",
        "families",
        "seed",
        "mean, failures 0, or head",
        "paired gain",
        "A/A floor",
        "above",
    )
    keys = ("run", "arm", "families", "seed", "score", "gain", "floor", "above")
    head, keys = (*head, "chosen", "failed"), (*keys, "chosen", "failed")
    title = f"Runs; {', '.join(grades)} grades"
    table = Table(title, head, tuple(lines), notes, "runs", keys, ", ".join(grades))
    return [table, *_differences(runs)]


def _after(head: Estimate | None, rounds: int) -> Entry:
    if head is None:
        return NONE
    found = mean_text(head)
    return Entry(f"{found.text} after {rounds} round{'s' * (rounds > 1)}", {**found.value, "rounds": rounds})


def _arms(manifest: Mapping[str, Any]) -> list[tuple[str, str]]:
    return [(s, p) for s in manifest["solvers"] for p in manifest["proposers"]]


def _asked(rows: Sequence[Row]) -> dict[str, str]:
    """Family -> digest of its evaluation questions."""
    return {r.family: r.evaluation.questions for r in rows if r.kind == SEED and r.evaluation is not None}


def _questions(runs: Sequence[Run]) -> list[str]:
    """Whether each later run was asked what the first one was."""
    notes: list[str] = []
    for name, _, rows in runs[1:]:
        base, own = _asked(runs[0][2]), _asked(rows)
        shared = base.keys() & own.keys()
        other = sorted(f for f in shared if base[f] != own[f])
        alone = sorted(base.keys() ^ own.keys())
        if other:
            notes.append(
                f"{name} and {runs[0][0]} measured different questions of {', '.join(other)}: "
                "their scores there are not comparable"
            )
        if alone:
            notes.append(
                f"only one of {name} and {runs[0][0]} has {', '.join(alone)}: their means differ by that"
            )
        if shared and not other and not alone:
            notes.append(f"{name} and {runs[0][0]} measured the same questions")
    return notes


def _differences(runs: Sequence[Run]) -> list[Table]:
    """Later runs minus the first, paired question by question, over the contexts and questions that both have."""
    first, manifest, rows = runs[0]
    lines: list[tuple[str | Entry, ...]] = []
    for name, other, theirs in runs[1:]:
        if grade_of(other) != grade_of(manifest):
            continue
        base, own = _asked(rows), _asked(theirs)
        same = {f for f in base.keys() & own.keys() if base[f] == own[f]}
        for one, two in _pairs(_arms(manifest), _arms(other)):
            label = f"{name} - {first}" + ("" if len(_arms(other)) == 1 else f", {two[1]} on {two[0]}")
            for title, kept in scopes([r for r in theirs if r.family in same]):
                lines += [
                    (label, title, *line)
                    for line in (
                        *_step_lines(read_cells(rows, *one), read_cells(kept, *two)),
                        *_chain_lines(read_chains(rows, one), read_chains(kept, two)),
                    )
                ]
    if not lines:
        return []
    head = ("runs", "families", "of", "paired difference", "95 %, families fixed", "95 %, over clusters")
    keys = ("runs", "families", "of", "difference", "fixed", "over_clusters", "floor", "above")
    notes = ("over the contexts or chains that both have, where both measured the same questions",)
    grade = grade_of(manifest)
    title = f"Paired comparison of runs; {grade} grades"
    head += ("A/A floor", "above 0 and it")
    return [Table(title, head, tuple(lines), notes, "run_differences", keys, grade)]


def _pairs(
    ones: Sequence[tuple[str, str]], twos: Sequence[tuple[str, str]]
) -> list[tuple[tuple[str, str], tuple[str, str]]]:
    """Arms of one name; two runs of one arm each are compared whatever their names."""
    if len(ones) == len(twos) == 1:
        return [(ones[0], twos[0])]
    return [(arm, arm) for arm in ones if arm in twos]


def _common(a: Sequence[_T], b: Sequence[_T]) -> tuple[tuple[_T, ...], tuple[_T, ...]]:
    """The contexts or chains that both have, in one order."""
    known = {(c.family, c.block): c for c in b}
    mine = tuple(c for c in a if (c.family, c.block) in known)
    return mine, tuple(known[c.family, c.block] for c in mine)


def _step_lines(a: Sequence[Cell], b: Sequence[Cell]) -> list[tuple[Entry, ...]]:
    known = family_noise(a), family_noise(b)
    a, b = _common(a, b)
    lines: list[tuple[Entry, ...]] = []
    for key, what, column, weights in COMPARED:
        found = estimate(
            [Part(x.family, x.cluster, minus(column(y), column(x))) for x, y in zip(a, b, strict=True)]
        )
        floors = noise.floor(a, weights, known[0]), noise.floor(b, weights, known[1])
        if found is not None:
            lines.append((Entry(what, key), *difference_texts(found, _apart(*floors))))
    return lines


def _chain_lines(a: Sequence[Chain], b: Sequence[Chain]) -> list[tuple[Entry, ...]]:
    """After as many rounds as both have."""
    known = family_noise(a), family_noise(b)
    a, b = _common(a, b)
    if not a:
        return []
    n = min(len(c.steps) for c in (*a, *b)) - 1

    def head(chain: Chain) -> Measured:
        return chain.steps[n].head

    def chosen(chain: Chain) -> Measured:
        return chain.steps[n].chosen

    lines: list[tuple[Entry, ...]] = []
    for key, what, column in (("head", "head", head), ("chosen", "best so far, by scoring", chosen)):

        def weights(chain: Chain, column: Callable[[Chain], Measured] = column) -> noise.Weights:
            return {column(chain).harness: 1.0}

        found = estimate(
            [
                Part(x.family, x.cluster, minus(column(y).grades, column(x).grades))
                for x, y in zip(a, b, strict=True)
            ]
        )
        floors = noise.floor(a, weights, known[0]), noise.floor(b, weights, known[1])
        label = Entry(f"{what}, after {n} round{'s' * (n > 1)}", key)
        lines.append((label, *difference_texts(found, _apart(*floors))))
    return lines


def _apart(one: float | None, two: float | None) -> float | None:
    """Of a difference between runs: they measure even one harness twice, so nothing cancels."""
    return None if one is None or two is None else math.hypot(one, two)


def paper_tables() -> list[Table]:
    """The paper's own numbers, each with its source and mark."""
    lines = [
        (
            f.benchmark,
            f.proposer,
            f.measure,
            Entry(
                f"{f.value:.3f}" + (f" ± {f.se:.3f}" if f.se is not None else ""),
                {"mean": f.value, "se": f.se},
            ),
            f.source,
            f.mark,
        )
        for f in FIGURES
    ]
    rounds = max(len(c.values) for c in CURVES)
    curve_lines = [
        (Entry(str(n), n), *(Entry(f"{c.values[n]:.3f}", c.values[n]) for c in CURVES)) for n in range(rounds)
    ]
    return [
        Table(
            "The paper's figures",
            ("benchmark", "proposer", "measure", "value", "source", "mark"),
            tuple(lines),
            (f"arXiv:2609.35738, not measured by hl; {MODELS}",),
            "paper_figures",
        ),
        Table(
            f"The paper's curves: {CURVES[0].measure}",
            ("round", *(c.proposer for c in CURVES)),
            tuple(curve_lines),
            tuple(f"{c.proposer}: {c.source} ({c.mark})" for c in CURVES),
            "paper_curves",
        ),
    ]
