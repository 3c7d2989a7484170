"""A round in git: `round.json` in the tree of the round's commit, whose parents are the candidates' commits.

`build` makes the objects, `read_round` reads them back. Nothing here moves a reference. The record repeats the
round's measurements, so that a round killed between two writes can be finished from itself.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

from hl.codec import decode, encode
from hl.errors import RepositoryError
from hl.git import Batch, Git, Identity, Objects
from hl.ledger.lines import from_json, to_json
from hl.ledger.messages import candidate_message, clean_line, round_message
from hl.ledger.names import ROUNDS, parse_round_ref
from hl.types import Candidate, Cost, Decision, Measurement, Outcome, Round, Verdict

FILE = "round.json"
VERSION = 1
DETAIL_MAX = 4096


@dataclass(frozen=True, slots=True)
class ProposalRecord:
    """One proposal of a recorded round."""

    commit: str
    """Its commit; one that did not apply has the parent's tree."""
    index: int
    proposer: str
    outcome: Outcome
    detail: str
    """The reason, at most 4 KiB."""
    summary: str
    harness: str
    """Digest of its candidate, or empty."""
    program: str
    """Digest of its candidate's syntax tree, or empty."""
    duplicate_of: str
    """Harness digest of the earlier equal candidate, for `duplicate`."""
    behavioural_noop: bool
    reply: str
    """Address of the reply in the record store: {kind, text, finish_reason, error, earlier}."""
    finish_reason: str
    prompt_tokens: int
    completion_tokens: int
    cost: float
    repairs: int
    """Repair turns it took."""
    scoring: Measurement | None


@dataclass(frozen=True, slots=True)
class RoundRecord:
    """A round as the ledger holds it."""

    lineage: str
    number: int
    commit: str
    """The round's own commit."""
    time: str
    """UTC, ISO 8601."""
    parent: str
    """Commit of the revised harness."""
    parent_harness: str
    """Its digest."""
    parent_program: str
    """Digest of its syntax tree."""
    verdict: Verdict
    feedback: Measurement
    scoring: Measurement
    """Parent on the scoring block."""
    proposals: tuple[ProposalRecord, ...]
    confirmation: tuple[Measurement, ...]
    """Parent then winner on the confirmation block, or nothing."""
    cost: Cost
    report: str
    """Address of the report in the record store: {kind, report}."""
    settings: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def winner(self) -> ProposalRecord | None:
        """The proposal that was best on the scoring block, even if rejected."""
        return next((p for p in self.proposals if p.index == self.verdict.winner), None)

    @property
    def accepted(self) -> ProposalRecord | None:
        """The proposal that became the head, if one did."""
        return self.winner if self.verdict.decision is Decision.ACCEPTED else None

    def measured(self) -> Mapping[str, tuple[Measurement, ...]]:
        """Commit -> measurements that its note holds because of this round."""
        found: dict[str, list[Measurement]] = {self.parent: [self.feedback, self.scoring]}
        for p in self.proposals:
            if p.scoring is not None:
                found[p.commit] = [p.scoring]
        winner = self.winner
        if len(self.confirmation) == 2 and winner is not None:
            found[self.parent].append(self.confirmation[0])
            found.setdefault(winner.commit, []).append(self.confirmation[1])
        return {commit: tuple(ms) for commit, ms in found.items()}


@dataclass(frozen=True, slots=True)
class Addresses:
    """Where the round's bulk went."""

    report: str
    replies: Mapping[int, str]
    """Proposal index -> address."""


def build(
    round: Round, addresses: Addresses, batch: Batch, objects: Objects, who: Identity, time: str
) -> RoundRecord:
    """Make the commits of a round's candidates and of the round itself.

    Args:
        round: With times stamped on its measurements.
        addresses: Of its bulk records.
        batch: To read the parent's tree.
        objects: Receives everything.
        who: Commits.
        time: UTC, ISO 8601.
    """
    from hl.edits import program_digest

    parent = round.parent
    base = batch.get(f"{parent.commit}^{{tree}}")
    if base is None:
        raise RepositoryError(f"the revised commit {parent.commit[:12]} is not in this repository")
    original = dict(parent.harness.files)
    proposals: list[ProposalRecord] = []
    for c in sorted(round.candidates, key=lambda c: c.proposal.index):
        p, tree = c.proposal, base[0]
        if p.candidate is not None:
            changed = {
                name.encode(): objects.blob(text.encode("utf-8", "surrogatepass"))
                for name, text in p.candidate.files
                if original.get(name) != text
            }
            tree = objects.graft(batch, tree, changed) if changed else tree
        commit = objects.commit(tree, [parent.commit], who, candidate_message(round, c))
        program = program_digest(p.candidate) if p.candidate is not None and _parses(p.outcome) else ""
        proposals.append(_record(c, commit, addresses.replies.get(p.index, ""), program))
    record = RoundRecord(
        lineage=round.lineage,
        number=round.number,
        commit="",
        time=time,
        parent=parent.commit,
        parent_harness=parent.harness.digest,
        parent_program=program_digest(parent.harness),
        verdict=round.verdict,
        feedback=round.feedback,
        scoring=round.scoring,
        proposals=tuple(proposals),
        confirmation=round.confirmation,
        cost=round.cost,
        report=addresses.report,
        settings=dict(round.settings),
    )
    data = json.dumps(_render(record), indent=1, sort_keys=True, allow_nan=False).encode("ascii")
    tree = objects.graft(batch, None, {FILE.encode(): objects.blob(data + b"\n")})
    parents = [p.commit for p in proposals] or [parent.commit]
    commit = objects.commit(tree, parents, who, round_message(round))
    return parse_round(commit, data)


def _parses(outcome: Outcome) -> bool:
    return outcome not in (Outcome.SYNTAX, Outcome.CONTRACT)


def _record(c: Candidate, commit: str, address: str, program: str) -> ProposalRecord:
    p = c.proposal
    return ProposalRecord(
        commit=commit,
        index=p.index,
        proposer=p.proposer,
        outcome=p.outcome,
        detail=p.detail[:DETAIL_MAX],
        summary=clean_line(p.summary),
        harness=p.candidate.digest if p.candidate is not None else "",
        program=program,
        duplicate_of=p.duplicate_of,
        behavioural_noop=c.behavioural_noop,
        reply=address,
        finish_reason=p.reply.finish_reason,
        prompt_tokens=p.reply.prompt_tokens,
        completion_tokens=p.reply.completion_tokens,
        cost=p.reply.cost,
        repairs=len(p.reply.earlier),
        scoring=c.scoring,
    )


def _render(r: RoundRecord) -> dict[str, Any]:
    def one(p: ProposalRecord) -> dict[str, Any]:
        return {**encode(replace(p, scoring=None)), "scoring": to_json(p.scoring) if p.scoring else None}

    return {
        "version": VERSION,
        "lineage": r.lineage,
        "number": r.number,
        "time": r.time,
        "parent": r.parent,
        "parent_harness": r.parent_harness,
        "parent_program": r.parent_program,
        "verdict": encode(r.verdict),
        "feedback": to_json(r.feedback),
        "scoring": to_json(r.scoring),
        "proposals": [one(p) for p in r.proposals],
        "confirmation": [to_json(m) for m in r.confirmation],
        "cost": encode(r.cost),
        "report": r.report,
        "settings": dict(r.settings),
    }


def parse_round(commit: str, data: bytes) -> RoundRecord:
    """The record in the `round.json` of a round's commit.

    Raises:
        ValueError: It is not one.
    """
    raw: Any = json.loads(data)
    if not isinstance(raw, dict):
        raise ValueError("not an object")
    r = cast("dict[str, Any]", raw)
    try:
        return RoundRecord(
            lineage=decode(str, r["lineage"]),
            number=decode(int, r["number"]),
            commit=commit,
            time=decode(str, r["time"]),
            parent=_oid(r["parent"]),
            parent_harness=decode(str, r["parent_harness"]),
            parent_program=decode(str, r.get("parent_program", "")),
            verdict=decode(Verdict, r["verdict"]),
            feedback=from_json(r["feedback"]),
            scoring=from_json(r["scoring"]),
            proposals=tuple(_parse_proposal(p) for p in r["proposals"]),
            confirmation=tuple(from_json(m) for m in r["confirmation"]),
            cost=decode(Cost, r["cost"]),
            report=decode(str, r.get("report", "")),
            settings={str(k): str(v) for k, v in cast("dict[str, Any]", r.get("settings", {})).items()},
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{FILE} lacks or misuses {error}") from None


def _parse_proposal(raw: Any) -> ProposalRecord:
    scoring = from_json(raw["scoring"]) if raw["scoring"] is not None else None
    record = decode(ProposalRecord, {**raw, "scoring": None})
    _oid(record.commit)
    return replace(record, scoring=scoring)


def _oid(value: Any) -> str:
    # It is handed to git: nothing but an object name may pass.
    text = decode(str, value)
    if not re.fullmatch(r"[0-9a-f]{40}|[0-9a-f]{64}", text):
        raise ValueError(f"{text[:80]!r} is not a commit")
    return text


def read_round(batch: Batch, commit: str) -> RoundRecord:
    """The round that a round's commit holds.

    Raises:
        RepositoryError: It holds none.
    """
    found = batch.get(f"{commit}:{FILE}")
    try:
        if found is None:
            raise ValueError(f"no {FILE}")
        return parse_round(commit, found[2])
    except ValueError as error:
        raise RepositoryError(f"the round at {commit[:12]} cannot be read: {error}", hint="hl fsck") from None


def round_refs(git: Git, pattern: str = ROUNDS) -> Sequence[tuple[str, int, str]]:
    """(lineage, number, commit) of every round below a reference prefix, by lineage and number."""
    out = git.read("for-each-ref", "--format=%(objectname) %(refname)", f"{pattern}/")
    found: list[tuple[str, int, str]] = []
    for line in out.decode("utf-8", "surrogateescape").splitlines():
        commit, _, ref = line.partition(" ")
        if (name := parse_round_ref(ref)) is not None:
            found.append((*name, commit))
    return sorted(found)


def read_rounds(batch: Batch, commits: Sequence[str]) -> Iterator[RoundRecord]:
    """The readable ones among many rounds; `hl fsck` tells of the others."""
    for commit, found in zip(commits, batch.get_many(f"{c}:{FILE}" for c in commits), strict=True):
        if found is not None:
            try:
                yield parse_round(commit, found[2])
            except ValueError:
                continue
