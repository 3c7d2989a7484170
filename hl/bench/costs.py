"""Rows -> what a chain took, next to what independent proposals took. Pure.

Two counts stand side by side. What was *asked for* is summed over the measurements in the ledger, whether a reply was
made anew or came from the cache, so it does not depend on what ran before or where a run was interrupted. What was
*paid* is the ledger's own cost of a round, replies from the cache not counted; of an interrupted round, the part after.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from hl.bench.arms import Arm
from hl.bench.rows import PROPOSAL, ROUND, SEED, Row


@dataclass(frozen=True, slots=True)
class Spent:
    """Of one cell, as a mean over cells. All but the last two fields leave the evaluation set out."""

    proposals: float
    calls: float
    """Of the solver, asked for: feedback runs, the parent's and the candidates' scoring, confirmation."""
    tokens: float
    """Of those calls, prompt and completion."""
    proposer_tokens: float
    """Asked for, prompt and completion."""
    paid_calls: float
    """Of solver and proposer."""
    paid_tokens: float
    evaluation_calls: float
    """Of the solver, asked for: the seed and every candidate on the evaluation set, once each."""
    evaluation_tokens: float


def spent(rows: Sequence[Row], arm: Arm, protocol: str) -> Spent | None:
    """What a cell of one arm and protocol took, on average; None where none is finished."""
    mine = [r for r in rows if r.protocol == protocol and (r.solver, r.proposer) == arm]
    count = len({r.cell for r in mine})
    if not count:
        return None
    proposals = [r for r in mine if r.kind == PROPOSAL]
    took = [r.took for r in mine if r.kind == ROUND and r.took is not None]
    measured = {
        (r.cell, r.harness): r.evaluation
        for r in mine
        if r.kind in (SEED, PROPOSAL) and r.evaluation is not None
    }.values()
    return Spent(
        len(proposals) / count,
        sum(t.calls for t in took) / count,
        sum(t.tokens for t in took) / count,
        sum(r.proposer_tokens for r in proposals) / count,
        sum(t.paid_calls for t in took) / count,
        sum(t.paid_tokens for t in took) / count,
        sum(s.calls for s in measured) / count,
        sum(s.tokens for s in measured) / count,
    )
