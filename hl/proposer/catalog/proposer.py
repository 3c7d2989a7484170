"""The catalog as a proposer: evidence -> ranked revisions -> the index-th that applies, as a reply.

Promises: the same context gives the same replies; a reply with an edit applies to the parent, changes its program and
keeps the contract (checked by `hl.edits`, as every proposer's reply is); no model is asked.
"""

import asyncio
import threading

from hl.edits import EditError, apply_edits, check_harness, parse_reply, program_digest
from hl.proposer.catalog.blocks import edit_blocks, render_reply
from hl.proposer.catalog.compact import BELOW_TOKENS
from hl.proposer.catalog.evidence import Evidence, read_evidence
from hl.proposer.catalog.order import Revision, revisions
from hl.proposer.catalog.source import parse_source
from hl.report import estimate_code_tokens
from hl.types import ProposalContext, Reply

SUMMARY_CHARS = 100
"""A summary's length in the ledger (hl.edits cuts there)."""
NOTHING_LEFT = "The catalog has no further revision for this harness and report."


class CatalogProposer:
    """A fixed library of general revisions; needs no model.

    Args:
        max_tokens: Replies of at most so many tokens, estimated, come before longer ones; 0 for no preference.
    """

    name = "catalog 1"

    def __init__(self, max_tokens: int = 0) -> None:
        self._max_tokens = max_tokens
        self._lock = threading.Lock()
        self._context: ProposalContext | None = None
        self._replies: list[str] = []

    async def propose(self, context: ProposalContext, index: int, count: int) -> Reply:
        """The index-th best revision for this context; a reply without an edit where there are no more."""
        # The search for demonstrations takes seconds: the event loop goes on meanwhile.
        replies = await asyncio.to_thread(self._ranked, context, count)
        return Reply(replies[index] if index < len(replies) else NOTHING_LEFT)

    def _ranked(self, context: ProposalContext, count: int) -> list[str]:
        """All replies for a context, made once for its K proposals."""
        with self._lock:
            if self._context != context or len(self._replies) < count:
                self._replies = propose_all(context, count, self._max_tokens)
                self._context = context
            return self._replies

    async def repair(self, context: ProposalContext, index: int, reply: Reply, hint: str) -> Reply:
        """The reply unchanged: the catalog proposes only what applies."""
        return reply


def propose_all(context: ProposalContext, count: int, max_tokens: int = 0) -> list[str]:
    """At most `count` replies, best first, each another program.

    Args:
        context: What to revise.
        count: How many are wanted.
        max_tokens: Replies that fit come first; 0 for no preference.
    """
    evidence = read_evidence(context)
    if evidence is None:
        return []
    seen = {program_digest(context.harness)}
    fitting: list[str] = []
    longer: list[str] = []
    for revision in revisions(evidence, compact=0 < max_tokens < BELOW_TOKENS):
        if len(fitting) >= count:
            break
        reply = render_revision(evidence, revision)
        if reply is None:
            continue
        digest = _result(context, reply)
        if digest and digest not in seen:
            seen.add(digest)
            fits = not max_tokens or estimate_code_tokens(reply) <= max_tokens
            (fitting if fits else longer).append(reply)
    return [*fitting, *longer][:count]


def render_revision(evidence: Evidence, revision: Revision) -> str | None:
    """The reply that makes a revision, or None where one of its steps does not fit or nothing changes."""
    source = evidence.source
    for step in revision:
        changed = step.change(source)
        source = None if changed is None else parse_source(changed)
        if source is None:
            return None
    entry = evidence.context.harness.text(evidence.context.harness.entry)
    edits = edit_blocks(evidence.source.text, source.text)
    if not edits or not entry.strip():
        return None
    return render_reply(summarise(revision), edits)


def summarise(revision: Revision) -> str:
    """`name + name: words`, from which the history is read again."""
    head = " + ".join(step.name for step in revision)
    summary = f"{head}: {'; '.join(step.words for step in revision)}"
    if len(summary) <= SUMMARY_CHARS:
        return summary
    return head[:SUMMARY_CHARS]


def _result(context: ProposalContext, reply: str) -> str:
    """Digest of the program that a reply makes; empty if it makes none."""
    try:
        candidate = apply_edits(context.harness, parse_reply(reply))
        check_harness(candidate)
    except EditError:
        return ""
    return program_digest(candidate)
