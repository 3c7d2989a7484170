"""Rows of single steps -> the columns of the tables, and how sure they are. Pure.

Every column is a vector of one value a question for each cell; its estimate is the mean over questions, then over a
family's contexts, then over families. Two bootstraps (Efron 1979): families fixed (contexts, then questions), and
over clusters too (clusters, then contexts, then questions). A family's contexts share their evaluation questions, so
one draw of questions serves all of them. Resampling within clusters counts their inner noise twice, so the second is
on the wide side (Davison and Hinkley 1997, 3.8).
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from hl.bench.rows import AGAIN, PROPOSAL, SEED, SINGLE, Row, Sample
from hl.selection import rank
from hl.types import Outcome

DRAWS = 2000
"""Resamples (ours)."""
STRIDE = 97
"""Apart from place to place of a draw of clusters; prime to `DRAWS`."""
LEVEL = 0.95
FEW_CLUSTERS = 5
"""With fewer an interval over clusters says little (ours)."""
Vector = tuple[float, ...]
"""One value a question; not a number where there is none."""
NAN = math.nan


@dataclass(frozen=True, slots=True)
class Proposed:
    """One proposal of a cell."""

    outcome: str
    scoring: float | None
    """Paired gain on the seed on the scoring block, what selection goes by; a duplicate has that of what it repeats."""
    grades: Vector | None
    """On the evaluation set; likewise. None where it failed."""
    attempts: int = 0
    calls: int = 0
    tokens: int = 0
    zero_call_share: float = 0.0
    harness: str = ""
    """Digest of what was measured."""
    noop: bool = False
    """Whether its code differs from the seed's and none of its calls does."""


@dataclass(frozen=True, slots=True)
class Repeat:
    """A/A control: one harness measured twice on the evaluation set, under other trial seeds."""

    harness: str
    """Digest."""
    first: Vector
    second: Vector


@dataclass(frozen=True, slots=True)
class Cell:
    """One context of one family with its K proposals."""

    family: str
    cluster: str
    role: str
    block: int
    seed: Vector
    """The seed's grades on the evaluation set."""
    proposals: tuple[Proposed, ...]
    """Without those that were lost through our fault: they are not of the K."""
    again: tuple[Repeat, ...] = ()
    """Of the seed and the winner."""
    harness: str = ""
    """The seed's digest."""
    lost: int = 0
    """Proposals that were lost through our fault."""
    questions: str = ""
    """Digest of the scoring block: contexts of a family that has too few questions meet the same one."""


@dataclass(frozen=True, slots=True)
class Interval:
    """What a bootstrap says."""

    se: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean over families, with its errors."""

    mean: float
    fixed: Interval
    """Families fixed: contexts and questions resampled."""
    clusters: Interval | None
    """Clusters, contexts and questions resampled; None with fewer than two clusters."""
    families: int
    contexts: int
    groups: int
    """Clusters."""


def vector(grades: Sequence[float | None]) -> Vector:
    """Grades as numbers, lost ones as not-a-number."""
    return tuple(NAN if g is None else float(g) for g in grades)


def read_cells(rows: Sequence[Row], solver: str, proposer: str, protocol: str = SINGLE) -> tuple[Cell, ...]:
    """The finished cells of one arm."""
    cells: list[Cell] = []
    mine = [r for r in rows if r.solver == solver and r.proposer == proposer and r.protocol == protocol]
    for name in dict.fromkeys(r.cell for r in mine):
        own = [r for r in mine if r.cell == name]
        seed = next((r for r in own if r.kind == SEED), None)
        if seed is None or seed.evaluation is None:
            continue
        proposals = [r for r in own if r.kind == PROPOSAL and r.round == 1]
        first = {r.harness: r for r in proposals if r.evaluation is not None}
        first[seed.harness] = seed
        again = [
            Repeat(r.harness, vector(first[r.harness].evaluation.grades), vector(r.evaluation.grades))  # pyright: ignore[reportOptionalMemberAccess]
            for r in own
            if r.kind == AGAIN and r.evaluation is not None and r.harness in first
        ]
        judged = tuple(
            _proposed(r, first, seed.scoring) for r in proposals if r.outcome != Outcome.LOST.value
        )
        cells.append(
            Cell(
                seed.family,
                seed.cluster,
                seed.role,
                seed.block,
                vector(seed.evaluation.grades),
                judged,
                tuple(again),
                seed.harness,
                len(proposals) - len(judged),
                seed.scoring.questions if seed.scoring is not None else "",
            )
        )
    return tuple(cells)


def _proposed(row: Row, first: Mapping[str, Row], parent: Sample | None) -> Proposed:
    measured = first.get(row.duplicate_of) if row.outcome == Outcome.DUPLICATE.value else row
    if measured is None or measured.evaluation is None:
        return Proposed(row.outcome, None, None)
    e = measured.evaluation
    return Proposed(
        row.outcome,
        gain_on_scoring(measured.scoring, parent),
        vector(e.grades),
        e.attempts,
        e.calls,
        e.tokens,
        e.zero_call_share,
        measured.harness,
        row.behavioural_noop,
    )


def gain_on_scoring(own: Sample | None, parent: Sample | None) -> float | None:
    """Paired gain over the parent on the scoring block, what selection goes by; None where no question is shared."""
    if own is None or parent is None or (own.questions, len(own.raw)) != (parent.questions, len(parent.raw)):
        return None
    found = score(minus(vector(own.grades), vector(parent.grades)))
    return None if math.isnan(found) else found


# --- columns ------------------------------------------------------------------------------------------------


def mean_of(vectors: Sequence[Vector]) -> Vector:
    """Question by question, over the vectors that have a value there."""
    if not vectors:
        return ()
    out: list[float] = []
    for values in zip(*vectors, strict=True):
        present = [v for v in values if not math.isnan(v)]
        out.append(math.fsum(present) / len(present) if present else NAN)
    return tuple(out)


def score(values: Vector) -> float:
    """Mean over the questions that have a value; not a number where none has."""
    present = [v for v in values if not math.isnan(v)]
    return math.fsum(present) / len(present) if present else NAN


def nothing(cell: Cell) -> Vector:
    """No value at any question."""
    return (NAN,) * len(cell.seed)


def seed(cell: Cell) -> Vector:
    """The seed itself."""
    return cell.seed


def failures_zero(cell: Cell) -> Vector:
    """Mean of the K proposals; one that failed scores 0 on every question (paper)."""
    zero = (0.0,) * len(cell.seed)
    return mean_of([zero if p.grades is None else p.grades for p in cell.proposals]) or nothing(cell)


def failures_parent(cell: Cell) -> Vector:
    """Mean of the K proposals; one that failed scores what the seed scores."""
    return mean_of([cell.seed if p.grades is None else p.grades for p in cell.proposals]) or nothing(cell)


def valid_only(cell: Cell) -> Vector:
    """Mean of the proposals that gave a candidate; no value where none did."""
    return mean_of(_valid(cell)) or nothing(cell)


def oracle(cell: Cell) -> Vector:
    """The candidate that is best on the evaluation set itself; the seed where no proposal gave one."""
    return max(_valid(cell), key=lambda g: _order(score(g)), default=cell.seed)


def choice(cell: Cell) -> Proposed | None:
    """The proposal that selection ranks first, better than the seed or not; None where none was scored."""
    scored = [
        (rank(p.scoring, place), p)
        for place, p in enumerate(cell.proposals)
        if p.outcome == Outcome.SCORED.value and p.scoring is not None
    ]
    return max(scored, key=lambda pair: pair[0])[1] if scored else None


def chosen(cell: Cell) -> Vector:
    """The candidate that is best on the scoring block; the seed where no proposal gave one."""
    best = choice(cell)
    return cell.seed if best is None or best.grades is None else best.grades


def cross_fitted(cell: Cell) -> Vector:
    """Best on one half of the evaluation questions, taken on the other, both ways; halves are even and odd places."""
    candidates = _valid(cell)
    if not candidates:
        return cell.seed
    half = [max(candidates, key=lambda g, h=h: _order(score(g[h::2]))) for h in (0, 1)]
    return tuple(half[1 - place % 2][place] for place in range(len(cell.seed)))


def gain(column: Callable[[Cell], Vector]) -> Callable[[Cell], Vector]:
    """The paired difference of a column to the seed, question by question."""

    def differences(cell: Cell) -> Vector:
        return minus(column(cell), cell.seed)

    return differences


def seed_again(cell: Cell) -> Vector:
    """A/A: the seed's second measurement minus its first."""
    return _again(cell, [r for r in cell.again if r.harness == cell.harness])


def winner_again(cell: Cell) -> Vector:
    """A/A: the winner's second measurement minus its first; no value where no proposal was scored."""
    return _again(cell, [r for r in cell.again if r.harness != cell.harness])


def _again(cell: Cell, repeats: Sequence[Repeat]) -> Vector:
    return mean_of([minus(r.second, r.first) for r in repeats]) or nothing(cell)


def minus(a: Vector, b: Vector) -> Vector:
    """Question by question."""
    return tuple(x - y for x, y in zip(a, b, strict=True))


def _valid(cell: Cell) -> list[Vector]:
    return [p.grades for p in cell.proposals if p.grades is not None]


def _order(value: float) -> float:
    return -math.inf if math.isnan(value) else value


# --- errors -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Part:
    """A column's vector in one cell."""

    family: str
    cluster: str
    values: Vector


def parts(cells: Sequence[Cell], column: Callable[[Cell], Vector]) -> tuple[Part, ...]:
    """The column, cell by cell."""
    return tuple(Part(c.family, c.cluster, column(c)) for c in cells)


def estimate(given: Sequence[Part], *, draws: int = DRAWS, seed: int = 0) -> Estimate | None:
    """Mean over families of the mean over contexts of the mean over questions, with both bootstraps.

    Args:
        given: One a cell; cells without any value are left out.
        draws: Resamples.
        seed: Same seed, same intervals.

    Returns:
        None where no cell has a value.
    """
    import numpy as np

    present = [p for p in given if not math.isnan(score(p.values))]
    if not present:
        return None
    rng: Any = np.random.default_rng(seed)
    families: dict[str, list[Part]] = {}
    for part in present:
        families.setdefault(part.family, []).append(part)
    point: list[float] = []
    drawn: list[Any] = []
    for place, members in enumerate(families.values()):
        point.append(math.fsum(score(p.values) for p in members) / len(members))
        drawn.append(_resampled(members, draws, (seed, place)))
    stack: Any = np.stack(drawn)
    groups: dict[str, list[int]] = {}
    for place, members in enumerate(families.values()):
        groups.setdefault(members[0].cluster, []).append(place)
    across = None
    if len(groups) > 1:
        sums: Any = np.stack([stack[places].sum(axis=0) for places in groups.values()])
        sizes: Any = np.array([len(places) for places in groups.values()])
        picks: Any = rng.integers(0, len(groups), size=(draws, len(groups)))
        # Each place in a draw takes an inner draw of its own: a cluster that comes twice is drawn anew inside.
        rows: Any = (np.arange(draws)[:, None] + np.arange(len(groups)) * STRIDE) % draws
        across = _interval(sums[picks, rows].sum(axis=1) / sizes[picks].sum(axis=1))
    mean = math.fsum(point) / len(point)
    return Estimate(mean, _interval(stack.mean(axis=0)), across, len(families), len(present), len(groups))


def _resampled(members: Sequence[Part], draws: int, key: tuple[int, int]) -> Any:
    """A family's mean in every draw of contexts and questions; the same key gives the same draws."""
    import numpy as np

    means: list[Any] = []
    for part in members:
        times: Any = _drawn(len(part.values), draws, key)
        values: Any = np.array(part.values)
        counted: Any = times @ ~np.isnan(values)
        total: Any = times @ np.nan_to_num(values)
        # A draw of lost questions only, out of many, says nothing of the score: it takes the mean.
        means.append(np.where(counted > 0, total / np.maximum(counted, 1), score(part.values)))
    table: Any = np.stack(means)
    rng: Any = np.random.default_rng(key)
    picks: Any = rng.integers(0, len(members), size=(draws, len(members)))
    return table[picks, np.arange(draws)[:, None]].mean(axis=1)


@lru_cache(maxsize=32)
def _drawn(size: int, draws: int, key: tuple[int, int]) -> Any:
    """How often each of `size` questions is in each draw: (draws, size). Kept, since every column asks for the same."""
    import numpy as np

    rng: Any = np.random.default_rng((*key, size))
    places: Any = rng.integers(0, size, size=(draws, size)) + np.arange(draws)[:, None] * size
    return np.bincount(places.ravel(), minlength=draws * size).reshape(draws, size).astype(float)


def _interval(means: Any) -> Interval:
    import numpy as np

    cut = (1.0 - LEVEL) / 2.0
    low, high = np.quantile(means, [cut, 1.0 - cut])
    return Interval(float(means.std(ddof=1)), float(low), float(high))
