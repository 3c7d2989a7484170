"""A chain of rounds: its earlier edits for the report, its programs for duplicates."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from hl.ledger.rounds import ProposalRecord, RoundRecord
from hl.types import HistoryEntry, Measurement, Outcome

if TYPE_CHECKING:
    from hl.ledger.repository import Ledger

RAN = frozenset({Outcome.SCORED, Outcome.IMPORT, Outcome.CRASH, Outcome.TIMEOUT})
"""Outcomes of candidates that were run: an equal program would do the same."""


def history(ledger: "Ledger", commit: str, solver: str) -> tuple[HistoryEntry, ...]:
    """The proposals of every round whose parent is the commit or an ancestor of it, oldest round first.

    A round that was accepted and then undone by a reset counts as not accepted. Rounds of another solver or other rules
    are left out: what failed there may work here.
    """
    line = _line(ledger, commit)
    rounds = [r for r in ledger.rounds() if r.parent in line and r.scoring.solver == solver]
    rounds.sort(key=lambda r: (r.time, r.number))
    return tuple(_entry(r, p, line) for r in rounds for p in r.proposals)


def known_programs(ledger: "Ledger", commit: str, solver: str) -> Mapping[str, str]:
    """Program digest -> digest of the harness that first had it, over the rounds of `history` under one solver.

    What was accepted and then undone by a reset is not among them: it may win again. Nor is what was tried with another
    solver or other rules: it was never measured under these.
    """
    line = _line(ledger, commit)
    known: dict[str, str] = {}
    for record in ledger.rounds():
        if record.parent not in line or record.scoring.solver != solver:
            continue
        if record.parent_program:
            known.setdefault(record.parent_program, record.parent_harness)
        for p in record.proposals:
            undone = record.accepted is p and p.commit not in line
            if p.program and p.outcome in RAN and not undone:
                known.setdefault(p.program, p.harness)
    return known


def _line(ledger: "Ledger", commit: str) -> set[str]:
    """The commit and its ancestors."""
    return set(ledger.git.read("rev-list", "--end-of-options", commit, "--").decode().split())


def _entry(record: RoundRecord, p: ProposalRecord, line: set[str]) -> HistoryEntry:
    is_winner = p.index == record.verdict.winner
    gain: float | None = None
    confirmed = is_winner and record.verdict.confirmed is not None
    if is_winner and record.verdict.confirmed is not None:
        gain = record.verdict.confirmed.mean
    elif p.scoring is not None:
        gain = _mean_difference(record.scoring, p.scoring)
    return HistoryEntry(
        round=record.number,
        summary=p.summary,
        outcome=p.outcome,
        accepted=record.accepted is p and p.commit in line,
        gain=gain,
        classes=dict(p.scoring.classes) if p.scoring else {},
        tool_errors=dict(p.scoring.tool_errors) if p.scoring else {},
        n=p.scoring.score.n if p.scoring else 0,
        confirmed=confirmed,
    )


def _mean_difference(parent: Measurement, candidate: Measurement) -> float | None:
    before = dict(zip(parent.ids, parent.grades, strict=True))
    pairs = [(before.get(i), g) for i, g in zip(candidate.ids, candidate.grades, strict=True)]
    differences = [g - b for b, g in pairs if b is not None and g is not None]
    return sum(differences) / len(differences) if differences else None
