"""A ledger -> rows. What a bench run, a chain or a person's own work recorded is training data.

Promises: what cannot become a row is counted with its reason, never left out silently; a row's reply is canonical, and
applied again it makes the candidate that was scored; nothing is executed. A repository from elsewhere is data: its
configuration says which files are the harness, and nothing else is taken from it.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from hl.bench.plan import BenchTask
from hl.codec import decode
from hl.config import load_config
from hl.edits import EditError, apply_edits, check_harness, parse_reply, summarise_reply
from hl.errors import HlError, RepositoryError
from hl.ledger import Ledger
from hl.ledger.rounds import ProposalRecord, RoundRecord
from hl.proposer.catalog.blocks import render_reply
from hl.records import Records
from hl.report import estimate_code_tokens
from hl.selection import pair
from hl.tasks.families import FAMILIES
from hl.tasks.tracks import track
from hl.types import Gain, Harness, Measurement, Outcome, Report, Role, TaskSpec
from training.contexts import Context
from training.data import (
    HELD_OUT,
    KEPT,
    NO_GAIN,
    NOT_APPLIED,
    NOT_CONFIRMED,
    NOT_MEASURED,
    OVER_BUDGET,
    REPEATED,
    SCREENED,
    Row,
)
from training.families import tasks_of
from training.patterns import classify
from training.screen import screen
from training.settings import Settings

MAX_BROKEN = 0.05
"""Largest share of scoring attempts that may end at a limit of budget or time (ours)."""
_FRESH = (Role.EVALUATION, Role.CONFIRMATION)


@dataclass(frozen=True, slots=True)
class Place:
    """A repository to read, and what is known of it from outside."""

    root: Path
    teacher: str = ""
    """Label of who wrote there; empty for the proposer's name as each round has it."""
    block: int | None = None
    """Which block of the task's pools its questions are; None for what its rounds say."""
    task: BenchTask | None = None
    """What its questions are; None for what its reports say."""


@dataclass(frozen=True, slots=True)
class Rules:
    """What decides whether a row is kept."""

    track: str
    held_out: frozenset[str]
    """Clusters that supervised rows may not come from: those of reinforcement and of the unseen families."""
    reply_tokens: int
    """Longest reply."""


def rules_of(settings: Settings) -> Rules:
    """As the settings say."""
    unseen = {FAMILIES[f].cluster for f in track(settings.tasks.track).unseen}
    rl = {t.cluster for t in tasks_of(settings.tasks, "rl")}
    return Rules(settings.tasks.track, frozenset(unseen | rl), settings.model.reply_tokens)


@dataclass(slots=True)
class Mined:
    """What was found."""

    rows: list[Row] = field(default_factory=list[Row])
    contexts: dict[str, Context] = field(default_factory=dict[str, Context])
    skipped: Counter[str] = field(default_factory=Counter[str])
    """Reason -> proposals that could not become rows."""


def mine(place: Place, rules: Rules, into: Mined) -> None:
    """Read every round of a repository.

    Args:
        place: The repository.
        rules: What is kept.
        into: Filled; a candidate that it holds already for the same context is a repeat.

    Raises:
        RepositoryError: There is no repository here.
    """
    ledger = Ledger.open(place.root)
    records = Records(ledger.common_dir / "hl" / "records")
    harness = load_config(ledger.root, require_trust=False).harness
    seen = {(r.context.id, r.candidate) for r in into.rows if r.candidate}
    for record in ledger.rounds():
        count = len(record.proposals)
        try:
            parent = ledger.read(record.parent, harness.files, harness.entry).harness
        except RepositoryError:
            into.skipped["the revised harness is not here"] += count
            continue
        if parent.digest != record.parent_harness:
            into.skipped["hl.toml lists other harness files now"] += count
            continue
        try:
            report = _report(records, record)
        except (RepositoryError, ValueError):
            into.skipped["the report's record is damaged"] += count
            continue
        if report is None:
            into.skipped["the report's record is not here (hl fetch --records)"] += count
            continue
        context = _context(record, parent, report, place, rules)
        into.contexts.setdefault(context.id, context)
        digests = [record.parent_harness, *(p.harness for p in record.proposals if p.harness)]
        known = ledger.measurements_of(list(dict.fromkeys(digests)))
        for proposal in record.proposals:
            if proposal.outcome is Outcome.LOST:
                into.skipped["the proposer's engine failed"] += 1
                continue
            text = _text(records, proposal)
            if text is None:
                into.skipped["the reply's record is not here (hl fetch --records)"] += 1
                continue
            row = _row(context, record, proposal, text, known, place.teacher or proposal.proposer, rules)
            key = (context.id, row.candidate)
            if row.candidate and key in seen:
                row = replace(row, verdict=REPEATED, detail="the same candidate was written before.")
            seen.add(key)
            into.rows.append(row)


# --- reading ---------------------------------------------------------------------------------------------------------


def _report(records: Records, record: RoundRecord) -> Report | None:
    """The report that the round's proposer saw; None if it is not here.

    Raises:
        ValueError: It is no report, or one of another harness.
        RepositoryError: The record is damaged.
    """
    found: Any = records.find(record.report)
    if found is None:
        return None
    report = decode(Report, found.get("report") if isinstance(found, dict) else None)
    if report.harness != record.parent_harness:
        raise ValueError("it is of another harness")
    return report


def _text(records: Records, proposal: ProposalRecord) -> str | None:
    """The reply as it came; None if it is not here."""
    try:
        found: Any = records.find(proposal.reply)
    except RepositoryError:
        return None
    text = found.get("text") if isinstance(found, dict) else None
    return text if isinstance(text, str) else None


def _context(record: RoundRecord, parent: Harness, report: Report, place: Place, rules: Rules) -> Context:
    task = place.task or _task(report.task, rules)
    block = record.settings.get("block", "")
    return Context(
        task=task.name,
        family=task.family,
        cluster=task.cluster,
        role=task.role,
        harness=parent,
        report=report,
        round=record.number,
        block=place.block if place.block is not None else int(block) if block.isdecimal() else 0,
        feedback=record.feedback.questions,
        scoring=record.scoring.questions,
        parent=record.scoring.score,
    )


def _task(spec: TaskSpec, rules: Rules) -> BenchTask:
    """A task as its report names it; one that is no family of reasoning-gym is a cluster of its own."""
    name = f"{spec.name}?{urlencode(spec.params)}" if spec.params else spec.name
    family = spec.name.removeprefix("reasoning-gym:")
    if family not in FAMILIES:
        return BenchTask(name, spec.name, spec.name)
    return BenchTask(name, family, FAMILIES[family].cluster, track(rules.track).role(family))


# --- judging ---------------------------------------------------------------------------------------------------------


def canonical(parent: Harness, text: str, *, truncated: bool = False) -> tuple[str, str, Harness]:
    """A reply as a model shall learn to write it: (reply, summary, candidate).

    One line of prose and the blocks; reasoning and everything else around them goes.

    Raises:
        EditError: It does not apply, or what it makes is no harness.
    """
    edits = parse_reply(text, truncated=truncated)
    candidate = apply_edits(parent, edits)
    check_harness(candidate)
    summary = summarise_reply(text) or "Change the harness"
    reply = render_reply(summary, edits)
    if apply_edits(parent, parse_reply(reply)).digest != candidate.digest:
        raise EditError(Outcome.MALFORMED, "its blocks cannot be written down again.")
    return reply, summary, candidate


def _row(
    context: Context,
    record: RoundRecord,
    proposal: ProposalRecord,
    text: str,
    known: Mapping[str, Sequence[Measurement]],
    teacher: str,
    rules: Rules,
) -> Row:
    row = Row(context, teacher, "", proposal.summary, "", NOT_APPLIED)
    at = record.scoring
    row = replace(row, solver=at.solver, solver_name=at.solver_name, grade=at.mode)
    try:
        reply, summary, candidate = canonical(
            context.harness, text, truncated=proposal.finish_reason == "length"
        )
    except EditError as error:
        return replace(row, detail=f"{error.outcome.value}: {error.detail}")
    row = replace(
        row,
        reply=reply,
        summary=summary,
        candidate=candidate.digest,
        pattern=classify(context.harness, candidate),
        tokens=estimate_code_tokens(reply),
    )
    if proposal.outcome in (Outcome.DUPLICATE, Outcome.NOOP):
        return replace(row, verdict=REPEATED, detail=proposal.detail)
    if candidate.digest != proposal.harness:
        return replace(row, detail="its reply makes another harness than the one that was scored.")
    if proposal.outcome is not Outcome.SCORED or proposal.scoring is None:
        return replace(row, detail=f"{proposal.outcome.value}: {proposal.detail}")
    screening = screen(candidate, context.report)
    row = replace(
        row,
        tags=screening.tags,
        gain=_gain(record.scoring, proposal.scoring),
        fresh=_fresh(known.get(record.parent_harness, ()), known.get(proposal.harness, ()), record),
    )
    verdict, detail = _judge(row, proposal.scoring, screening.refused, rules)
    return replace(row, verdict=verdict, detail=detail)


def _judge(row: Row, scoring: Measurement, refused: str, rules: Rules) -> tuple[str, str]:
    """The first filter that a scored row does not pass, with the reason."""
    if row.context.cluster in rules.held_out:
        return HELD_OUT, f"the cluster {row.context.cluster} is kept for reinforcement or tests."
    if row.gain is None or row.gain.mean <= 0:
        return NO_GAIN, "it does not beat its parent on the scoring questions."
    if refused:
        return SCREENED, refused
    attempts = sum(scoring.counts.values())
    broken = scoring.counts.get("budget", 0) + scoring.counts.get("timeout", 0)
    if broken > MAX_BROKEN * attempts:
        return OVER_BUDGET, f"{broken} of {attempts} attempts ended at a limit."
    if row.tokens > rules.reply_tokens:
        return OVER_BUDGET, f"the reply has about {row.tokens} tokens, and {rules.reply_tokens} are allowed."
    if row.fresh is None:
        return (
            NOT_MEASURED,
            "no fresh questions were measured (hl eval REV --set evaluation, of parent and candidate).",
        )
    if row.fresh.mean <= 0:
        return NOT_CONFIRMED, "the gain is gone on fresh questions."
    return KEPT, ""


def _gain(parent: Measurement, candidate: Measurement) -> Gain | None:
    try:
        return pair(parent, candidate)
    except HlError:
        return None


def _fresh(
    parent: Sequence[Measurement], candidate: Sequence[Measurement], record: RoundRecord
) -> Gain | None:
    """The gain on the largest block of held-out or confirmation questions that both were measured on."""
    at = record.scoring
    found = [
        gain
        for a in parent
        for b in candidate
        if a.role == b.role
        and a.role in _FRESH
        and a.questions == b.questions != at.questions
        and {(m.solver, m.mode, m.ablation) for m in (a, b)} == {(at.solver, at.mode, at.ablation)}
        and (gain := _gain(a, b)) is not None
    ]
    return max(found, key=lambda g: g.n, default=None)
