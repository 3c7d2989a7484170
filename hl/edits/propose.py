"""One reply -> one Proposal: the edit room's door. Never raises for anything a reply or a parent holds."""

from collections.abc import Mapping
from dataclasses import replace

from hl.edits.error import EditError
from hl.edits.parse import parse_reply, summarise_reply
from hl.edits.program import check_harness, harness_bytes, program_digest
from hl.edits.resolve import apply_edits
from hl.types import HARNESS_MAX_BYTES, Edit, Harness, Outcome, Proposal, Reply


def _fallback_summary(parent: Harness, edits: tuple[Edit, ...]) -> str:
    added = sum(e.replace.count("\n") for e in edits)
    removed = sum(e.search.count("\n") for e in edits)
    names = ", ".join(sorted({e.file or parent.entry for e in edits}))
    return f"+{added} -{removed} lines in {names}"[:100]


def propose_from_reply(
    parent: Harness, reply: Reply, *, index: int, proposer: str, known: Mapping[str, str]
) -> Proposal:
    """Parse, apply and check one reply.

    Args:
        parent: The harness that the reply revises.
        reply: As the engine gave it.
        index: The proposal's place in its round, from 0.
        proposer: Name of the proposer.
        known: `program_digest` of each earlier candidate of the chain -> its harness digest.

    Returns:
        A proposal whose outcome is `scored` when it is ready to run (later rooms may lower that to import,
        crash or timeout). `candidate` is set whenever the edits apply, broken programs included, unless
        oversized.
    """
    if reply.error:
        return Proposal(index, proposer, reply, Outcome.LOST, reply.error)
    proposal = Proposal(index, proposer, reply, Outcome.SCORED, summary=summarise_reply(reply.text))
    try:
        edits = parse_reply(reply.text, truncated=reply.finish_reason == "length")
        summary = proposal.summary or _fallback_summary(parent, edits)
        proposal = replace(proposal, edits=edits, summary=summary)
        candidate = apply_edits(parent, edits)
        if harness_bytes(candidate) <= HARNESS_MAX_BYTES:
            proposal = replace(proposal, candidate=candidate)
        if candidate.files == parent.files:
            raise EditError(Outcome.NOOP, "the edit changes nothing: SEARCH and REPLACE hold the same text.")
        check_harness(candidate)
        program = program_digest(candidate)
        if program == program_digest(parent):
            raise EditError(
                Outcome.NOOP,
                "the edit changes only comments, docstrings or layout: change what the program does.",
            )
    except EditError as error:
        return replace(proposal, outcome=error.outcome, detail=error.detail)
    if program in known:
        first = known[program]
        return replace(
            proposal,
            outcome=Outcome.DUPLICATE,
            detail=f"the same program as the earlier candidate {first[:12]}: try something else.",
            duplicate_of=first,
        )
    return proposal
