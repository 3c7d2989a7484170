"""Rows of chains -> curves by round, and how arms compare. Pure.

All scores are on the evaluation set: means over questions, then a family's chains, then families, with the
bootstraps of `estimates`. `head` is what the chain would hand over; `chosen` the best so far by the chain's own
scoring, which is what a user can have; `oracle` the best so far by the evaluation set itself, which nobody can.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from hl.bench.arms import Arm
from hl.bench.estimates import (
    NAN,
    Estimate,
    Part,
    Repeat,
    Vector,
    estimate,
    gain_on_scoring,
    mean_of,
    minus,
    score,
    vector,
)
from hl.bench.noise import differ, family_noise, floor
from hl.bench.rows import AGAIN, CHAIN, HEAD, PROPOSAL, ROUND, SEED, Row, Sample
from hl.types import Outcome


@dataclass(frozen=True, slots=True)
class Measured:
    """A harness on the evaluation set."""

    harness: str
    """Digest."""
    grades: Vector


@dataclass(frozen=True, slots=True)
class Step:
    """A chain after one round."""

    head: Measured
    chosen: Measured
    oracle: Measured
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
    harness: str
    """The seed's digest."""
    again: tuple[Repeat, ...]
    """A/A control: of the seed and the last head."""
    blocks: int
    """Different scoring blocks that its rounds met: fewer than rounds where the pool has no more."""


@dataclass(frozen=True, slots=True)
class Point:
    """The chains of one arm after one round; None where nothing was measured."""

    head: Estimate | None
    gain: Estimate | None
    """Of the head over the seed, paired."""
    floor: float | None
    """How far noise alone takes that gain (A/A); None where it was not measured."""
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
    known = family_noise(chains)
    points = tuple(
        Point(
            mean(chains, lambda c, n=n: c.steps[n].head.grades),
            mean(chains, lambda c, n=n: minus(c.steps[n].head.grades, c.steps[0].head.grades)),
            floor(chains, lambda c, n=n: differ({c.steps[n].head.harness: 1.0}, {c.harness: 1.0}), known),
            mean(chains, lambda c, n=n: c.steps[n].chosen.grades),
            mean(chains, lambda c, n=n: c.steps[n].oracle.grades),
            mean(chains, lambda c, n=n: c.steps[n].proposals),
        )
        for n in range(rounds)
    )
    first = points[1].gain if rounds > 1 else None
    total = points[-1].gain
    share = first.mean / total.mean if first is not None and total is not None and total.mean > 0 else None
    return Curve(points, len({c.family for c in chains}), len(chains), share)


def mean(chains: Sequence[Chain], column: Callable[[Chain], Vector]) -> Estimate | None:
    """A column over families, then chains, then questions; None where no chain has a value."""
    return estimate([Part(c.family, c.cluster, column(c)) for c in chains])


def difference(
    chains: Sequence[Chain], base: Sequence[Chain], column: Callable[[Step], Measured]
) -> tuple[Estimate | None, float | None]:
    """A column after the last round minus that of another arm's chain of the same number, and its noise floor."""
    other = {(c.family, c.block): c for c in base}
    paired = [c for c in chains if (c.family, c.block) in other]

    def last(chain: Chain) -> tuple[Measured, Measured]:
        return column(chain.steps[-1]), column(other[chain.family, chain.block].steps[-1])

    found = mean(paired, lambda c: minus(*(m.grades for m in last(c))))
    known = family_noise([*chains, *base])
    return found, floor(paired, lambda c: differ(*({m.harness: 1.0} for m in last(c))), known)


def _chain(rows: Sequence[Row]) -> Chain:
    seed = next(r for r in rows if r.kind == SEED)
    revised = {r.round: r for r in rows if r.kind == ROUND}
    start = Measured(seed.harness, _grades(seed.evaluation))
    known = {seed.harness: start}
    steps = [Step(start, start, start, start.grades)]
    # Gains over the seed by scoring: of the head, and of the best so far.
    reached, best, chosen, oracle = 0.0, 0.0, start, start
    for head in sorted((r for r in rows if r.kind == HEAD), key=lambda r: r.round):
        own = [r for r in rows if r.kind == PROPOSAL and r.round == head.round]
        gains: dict[str, float] = {}
        for r in sorted(own, key=lambda r: r.index):
            if r.evaluation is None:
                continue
            known[r.harness] = measured = Measured(r.harness, _grades(r.evaluation))
            gain = gain_on_scoring(r.scoring, revised[head.round].scoring)
            if gain is not None:
                # Rounded as selection does, so that the order in which floats were added breaks no tie.
                gains[r.harness] = round(reached + gain, 9)
            if gains.get(r.harness, 0.0) > best:
                best, chosen = gains[r.harness], measured
            if round(score(measured.grades), 9) > round(score(oracle.grades), 9):
                oracle = measured
        reached = gains.get(head.harness, reached)
        steps.append(Step(known[head.harness], chosen, oracle, _mean_of_round(own, known, len(start.grades))))
    blocks = {r.scoring.questions for r in revised.values() if r.scoring is not None}
    again = [
        Repeat(r.harness, known[r.harness].grades, _grades(r.evaluation)) for r in rows if r.kind == AGAIN
    ]
    return Chain(seed.family, seed.cluster, seed.block, tuple(steps), seed.harness, tuple(again), len(blocks))


def _mean_of_round(proposals: Sequence[Row], known: Mapping[str, Measured], size: int) -> Vector:
    """Mean of the proposals, failures 0, a repeat as what it repeats; those lost through our fault are left out."""
    judged: list[Vector] = []
    for r in proposals:
        harness = {Outcome.SCORED.value: r.harness, Outcome.DUPLICATE.value: r.duplicate_of}.get(
            r.outcome, ""
        )
        if r.outcome != Outcome.LOST.value:
            judged.append(known[harness].grades if harness in known else (0.0,) * size)
    return mean_of(judged) or (NAN,) * size


def _grades(part: Sample | None) -> Vector:
    assert part is not None  # every row of these kinds is measured on the evaluation set
    return vector(part.grades)
