"""Rows of chains -> curves by round, and the comparison with independent proposals. Pure.

All scores are on the evaluation set. `head` is what the chain would hand over; `chosen` the best so far by scoring
blocks, which is what a user can have; `oracle` the best so far by the evaluation set itself, which nobody can.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from hl.bench.estimates import oracle, read_cells, score
from hl.bench.rows import CHAIN, HEAD, INDEPENDENT, PROPOSAL, SEED, Row, Sample
from hl.types import Outcome


@dataclass(frozen=True, slots=True)
class Point:
    """A chain after one round."""

    head: float
    chosen: float
    oracle: float
    proposals: float
    """Mean of the round's K proposals, failures 0; the seed's score in round 0."""


@dataclass(frozen=True, slots=True)
class Spent:
    """What evaluation and proposals took, replies from the cache included."""

    calls: int
    tokens: int
    proposer_tokens: int


@dataclass(frozen=True, slots=True)
class Curve:
    """The mean over families of the mean over chains."""

    points: tuple[Point, ...]
    """From round 0, the seed."""
    families: int
    chains: int
    first_share: float | None
    """Share of the total gain of the head that round 1 took; None where there was no gain in total."""
    spent: Spent


def curve(rows: Sequence[Row], solver: str, proposer: str) -> Curve | None:
    """The curve of one arm; None where no chain is finished."""
    mine = [r for r in rows if r.protocol == CHAIN and (r.solver, r.proposer) == (solver, proposer)]
    families: dict[str, list[tuple[Point, ...]]] = {}
    for name in dict.fromkeys(r.cell for r in mine):
        own = [r for r in mine if r.cell == name]
        families.setdefault(own[0].family, []).append(points(own))
    if not families:
        return None
    rounds = min(len(chain) for chains in families.values() for chain in chains)
    mean = tuple(
        _mean_point([[chain[n] for chain in chains] for chains in families.values()]) for n in range(rounds)
    )
    total = mean[-1].head - mean[0].head
    first = (mean[1].head - mean[0].head) / total if rounds > 1 and total > 0 else None
    return Curve(mean, len(families), sum(map(len, families.values())), first, spent_on(mine))


def points(rows: Sequence[Row]) -> tuple[Point, ...]:
    """One chain's curve from its rows."""
    seed = next(r for r in rows if r.kind == SEED)
    start = _score(seed.evaluation)
    known = {seed.harness: start}
    best_choice, chosen, oracle_so_far = _score(seed.scoring), start, start
    found = [Point(start, start, start, start)]
    for head in sorted((r for r in rows if r.kind == HEAD), key=lambda r: r.round):
        proposals = [r for r in rows if r.kind == PROPOSAL and r.round == head.round]
        known |= {r.harness: _score(r.evaluation) for r in proposals if r.evaluation is not None}
        for r in proposals:
            if r.evaluation is None:
                continue
            if _order(_score(r.scoring)) > _order(best_choice):
                best_choice, chosen = _score(r.scoring), _score(r.evaluation)
            oracle_so_far = max(oracle_so_far, _score(r.evaluation), key=_order)
        judged = [
            known.get(r.duplicate_of, 0.0)
            if r.outcome == Outcome.DUPLICATE.value
            else _score(r.evaluation, 0.0)
            for r in proposals
            if r.outcome != Outcome.LOST.value
        ]
        mean = math.fsum(judged) / len(judged) if judged else math.nan
        found.append(Point(_score(head.evaluation), chosen, oracle_so_far, mean))
    return tuple(found)


def spent_on(rows: Sequence[Row]) -> Spent:
    """What the distinct harnesses of these rows took, scoring and evaluation."""
    samples: dict[tuple[str, str, str], Sample] = {}
    for r in rows:
        for part in (r.scoring, r.evaluation):
            if part is not None and r.kind in (SEED, PROPOSAL):
                samples[r.cell, r.harness, part.questions] = part
    return Spent(
        sum(s.calls for s in samples.values()),
        sum(s.tokens for s in samples.values()),
        sum(r.proposer_tokens for r in rows),
    )


def independent(rows: Sequence[Row], solver: str, proposer: str) -> tuple[float, int, Spent] | None:
    """Oracle best of the independent proposals (mean over families), their number, and what they took."""
    found = read_cells(rows, solver, proposer, INDEPENDENT)
    if not found:
        return None
    mine = [r for r in rows if r.protocol == INDEPENDENT and (r.solver, r.proposer) == (solver, proposer)]
    best = math.fsum(score(oracle(cell)) for cell in found) / len(found)
    return best, max(len(cell.proposals) for cell in found), spent_on(mine)


def _mean_point(families: Sequence[Sequence[Point]]) -> Point:
    def mean(value: Callable[[Point], float]) -> float:
        return math.fsum(math.fsum(map(value, f)) / len(f) for f in families) / len(families)

    return Point(
        mean(lambda p: p.head),
        mean(lambda p: p.chosen),
        mean(lambda p: p.oracle),
        mean(lambda p: p.proposals),
    )


def _score(part: Sample | None, missing: float = math.nan) -> float:
    value = part.mean if part is not None else None
    return missing if value is None else value


def _order(value: float) -> float:
    return -math.inf if math.isnan(value) else value
