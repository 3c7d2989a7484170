"""Rows of chains -> curves by round, and how arms compare. Pure.

All scores are on the evaluation set: means over questions, then a family's chains, then families, with the
bootstraps of `estimates`. `head` is what the chain would hand over; `chosen` the best so far by the chain's own
scoring, which is what a user can have; `oracle` the best so far by the evaluation set itself, which nobody can.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from hl.bench.estimates import NAN, Estimate, Part, Vector, estimate, mean_of, minus, score, vector
from hl.bench.rows import AGAIN, CHAIN, HEAD, PROPOSAL, ROUND, SEED, Row, Sample
from hl.types import Outcome

Arm = tuple[str, str]
"""(solver, proposer)."""


@dataclass(frozen=True, slots=True)
class Step:
    """A chain after one round: grades on the evaluation set."""

    head: Vector
    chosen: Vector
    oracle: Vector
    proposals: Vector
    """Mean of the round's K proposals, failures 0; the seed's in round 0; no value where none was judged."""


@dataclass(frozen=True, slots=True)
class Chain:
    """One chain of one family."""

    family: str
    cluster: str
    block: int
    """Its number, from 1."""
    steps: tuple[Step, ...]
    """From round 0, the seed."""
    again: Vector
    """A/A control: the seed's second measurement minus its first; empty where it was not measured twice."""
    blocks: int
    """Different scoring blocks that its rounds met: fewer than rounds where the pool has no more."""


@dataclass(frozen=True, slots=True)
class Point:
    """The chains of one arm after one round; None where nothing was measured."""

    head: Estimate | None
    gain: Estimate | None
    """Of the head over the seed, paired."""
    chosen: Estimate | None
    oracle: Estimate | None
    proposals: Estimate | None


@dataclass(frozen=True, slots=True)
class Curve:
    """The chains of one arm."""

    points: tuple[Point, ...]
    """From round 0, the seed."""
    families: int
    chains: int
    first_share: float | None
    """Share of the head's total gain that round 1 took; None where there was no gain in total."""
    floor: Estimate | None
    """The seed against itself (A/A): what a gain comes to by noise alone. None where it was not measured."""


def read_chains(rows: Sequence[Row], arm: Arm) -> tuple[Chain, ...]:
    """The finished chains of one arm."""
    cells: dict[str, list[Row]] = {}
    for row in rows:
        if row.protocol == CHAIN and (row.solver, row.proposer) == arm:
            cells.setdefault(row.cell, []).append(row)
    return tuple(map(_chain, cells.values()))


def curve(chains: Sequence[Chain]) -> Curve | None:
    """The curve of one arm, up to the last round that all its chains have; None where there is no chain."""
    if not chains:
        return None
    rounds = min(len(c.steps) for c in chains)
    points = tuple(
        Point(
            mean(chains, lambda c, n=n: c.steps[n].head),
            mean(chains, lambda c, n=n: minus(c.steps[n].head, c.steps[0].head)),
            mean(chains, lambda c, n=n: c.steps[n].chosen),
            mean(chains, lambda c, n=n: c.steps[n].oracle),
            mean(chains, lambda c, n=n: c.steps[n].proposals),
        )
        for n in range(rounds)
    )
    first = points[1].gain if rounds > 1 else None
    total = points[-1].gain
    share = first.mean / total.mean if first is not None and total is not None and total.mean > 0 else None
    floor = mean([c for c in chains if c.again], lambda c: c.again)
    return Curve(points, len({c.family for c in chains}), len(chains), share, floor)


def mean(chains: Sequence[Chain], column: Callable[[Chain], Vector]) -> Estimate | None:
    """A column over families, then chains, then questions; None where no chain has a value."""
    return estimate([Part(c.family, c.cluster, column(c)) for c in chains])


def difference(
    chains: Sequence[Chain], base: Sequence[Chain], column: Callable[[Chain], Vector]
) -> Estimate | None:
    """A column minus that of another arm's chain of the same number, question by question."""
    other = {(c.family, c.block): c for c in base}
    pairs = [(c, other[c.family, c.block]) for c in chains if (c.family, c.block) in other]
    return estimate([Part(c.family, c.cluster, minus(column(c), column(b))) for c, b in pairs])


def last_head(chain: Chain) -> Vector:
    """The head after the last round."""
    return chain.steps[-1].head


def last_chosen(chain: Chain) -> Vector:
    """The best so far by scoring, after the last round."""
    return chain.steps[-1].chosen


def last_oracle(chain: Chain) -> Vector:
    """The best so far by the evaluation set itself, after the last round."""
    return chain.steps[-1].oracle


def _chain(rows: Sequence[Row]) -> Chain:
    seed = next(r for r in rows if r.kind == SEED)
    revised = {r.round: r for r in rows if r.kind == ROUND}
    start = _grades(seed.evaluation)
    again = [
        minus(_grades(r.evaluation), start) for r in rows if r.kind == AGAIN and r.harness == seed.harness
    ]
    known = {seed.harness: start}
    steps = [Step(start, start, start, start)]
    # Gains over the seed by scoring: of the head, and of the best so far.
    reached, best, chosen, oracle = 0.0, 0.0, start, start
    for head in sorted((r for r in rows if r.kind == HEAD), key=lambda r: r.round):
        parent = revised[head.round].scoring
        proposals = sorted(
            (r for r in rows if r.kind == PROPOSAL and r.round == head.round), key=lambda r: r.index
        )
        gains: dict[str, float] = {}
        for r in proposals:
            if r.evaluation is None:
                continue
            known[r.harness] = _grades(r.evaluation)
            gains[r.harness] = _rounded(reached + _paired(r.scoring, parent))
            if gains[r.harness] > best:
                best, chosen = gains[r.harness], known[r.harness]
            if _rounded(score(known[r.harness])) > _rounded(score(oracle)):
                oracle = known[r.harness]
        reached = gains.get(head.harness, reached)
        zero = (0.0,) * len(start)
        judged = [
            known.get(r.duplicate_of if r.outcome == Outcome.DUPLICATE.value else r.harness, zero)
            if r.outcome in (Outcome.DUPLICATE.value, Outcome.SCORED.value)
            else zero
            for r in proposals
            if r.outcome != Outcome.LOST.value
        ]
        steps.append(Step(_grades(head.evaluation), chosen, oracle, mean_of(judged) or (NAN,) * len(start)))
    blocks = {r.scoring.questions for r in revised.values() if r.scoring is not None}
    return Chain(
        seed.family, seed.cluster, seed.block, tuple(steps), mean_of(again) if again else (), len(blocks)
    )


def _grades(part: Sample | None) -> Vector:
    assert part is not None  # every row of these kinds is measured on the evaluation set
    return vector(part.grades)


def _paired(candidate: Sample | None, parent: Sample | None) -> float:
    """Candidate minus parent on the scoring block, as selection compares them; not a number if all was lost."""
    if candidate is None or parent is None:
        return NAN
    return score(minus(vector(candidate.grades), vector(parent.grades)))


def _rounded(value: float) -> float:
    # As selection does, so that the order in which floats were added breaks no tie.
    return -math.inf if math.isnan(value) else round(value, 9)
