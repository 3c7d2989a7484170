"""One round, and the chain of rounds. The eight rooms in the order of docs/architecture.md; data only moves forward.

`run_round` measures, proposes, applies, executes, selects and confirms; it touches no git. `run_chain` reads the head
and records each round in the ledger. Both report progress by callback and print nothing. Run again after an
interruption, they make no call whose reply was recorded, because every call goes through the cache.
"""

import asyncio
import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from hl.edits import program_digest, propose_from_reply
from hl.errors import EngineError, SandboxError
from hl.evaluate import Evaluator, Progress, Work, same_behaviour
from hl.report import build_report
from hl.selection import decide, pair, select
from hl.solver import Meter
from hl.types import (
    Attempt,
    Candidate,
    Cost,
    Harness,
    HistoryEntry,
    Measurement,
    Outcome,
    Proposal,
    ProposalContext,
    Proposer,
    QuestionSets,
    Reply,
    Revision,
    Role,
    Round,
    Status,
    TaskSpec,
)

LOST_RETRIES = 2
"""How often a proposal lost to the proposer's engine is asked for again (ours)."""
REPAIRABLE = frozenset(
    {
        Outcome.NO_EDIT,
        Outcome.MALFORMED,
        Outcome.TRUNCATED,
        Outcome.EMPTY_SEARCH,
        Outcome.TOO_MANY,
        Outcome.NOT_FOUND,
        Outcome.AMBIGUOUS,
        Outcome.OVERLAP,
        Outcome.NOOP,
        Outcome.SYNTAX,
        Outcome.CONTRACT,
    }
)
"""Outcomes after which a repair turn is offered: the hint says what to change."""


@dataclass(frozen=True, slots=True)
class RoundSettings:
    """How a round is run."""

    proposals: int = 8
    """K (paper)."""
    feedback: int = 16
    """Questions whose runs the proposer sees."""
    scoring: int = 32
    """Questions that select."""
    confirmation: int = 32
    """Questions that confirm."""
    select: str = "improve"
    """`improve`, `best` or `significant`."""
    confirm: bool = True
    """Whether winner and parent are measured again on unused questions."""
    repair: int = 1
    """Repair turns after an edit that does not apply (ours)."""
    show_gold: bool = True
    """Whether the report shows gold answers of feedback questions."""
    trials: int = 1
    """Attempts per scoring and confirmation question; of feedback questions one run is shown."""


@dataclass(frozen=True, slots=True)
class Rooms:
    """The parts that a round runs on, built by the command."""

    task: TaskSpec
    sets: QuestionSets
    evaluator: Evaluator
    proposer: Proposer
    meter: Meter
    settings: RoundSettings


@dataclass(frozen=True, slots=True)
class Event:
    """Progress, told by callback."""

    kind: str
    """`stage`: a room was entered; `attempt`: one attempt ended; `proposal`: a reply got its outcome; `round`: done."""
    round: int
    stage: str = ""
    """`measure`, `propose`, `smoke`, `score`, `confirm` or `evaluate`."""
    total: int = 0
    """Attempts in this stage, for `stage`."""
    attempt: Attempt | None = None
    cached: bool = False
    proposal: Proposal | None = None
    result: Round | None = None


OnEvent = Callable[[Event], None]


def _ignore(_: Event) -> None:
    pass


def block_index(lineage: str, number: int) -> int:
    """Which block of each pool a round uses: a function of lineage and round number alone."""
    return int.from_bytes(hashlib.sha256(lineage.encode()).digest()[:4], "big") + number - 1


async def run_round(
    parent: Revision,
    number: int,
    rooms: Rooms,
    *,
    history: Sequence[HistoryEntry] = (),
    known: Mapping[str, str] | None = None,
    on_event: OnEvent = _ignore,
) -> Round:
    """One round on one parent.

    Args:
        parent: The harness to revise.
        number: The round's number, from 1.
        rooms: The parts.
        history: Earlier edits of the chain, for the report.
        known: Program digest -> harness digest of the chain's earlier candidates: a repeat is a `duplicate`.
        on_event: Told of progress.

    Raises:
        StoppedEarly: A run limit was reached; everything measured is in the cache.
        EngineError: Solver or proposer stays down; likewise.
        SandboxError: The sandbox cannot be trusted any more.
    """
    settings, evaluator = rooms.settings, rooms.evaluator
    before = rooms.meter.cost
    index = block_index(parent.lineage, number)
    feedback_block = rooms.sets.feedback.block(index, settings.feedback)
    scoring_block = rooms.sets.scoring.block(index, settings.scoring)

    # 2 measure
    trials = settings.trials
    works = [Work(parent.harness, feedback_block), Work(parent.harness, scoring_block, trials=trials)]
    (feedback, feedback_runs), (scoring, scoring_runs) = await _score(
        evaluator, works, number, "measure", on_event
    )
    report = build_report(
        rooms.task, feedback, feedback_runs, feedback_block, history, show_gold=settings.show_gold
    )

    # 3 propose, 4 apply
    context = ProposalContext(rooms.task, parent.harness, report, number, seed=index)
    on_event(Event("stage", number, "propose", total=settings.proposals))
    proposals = await _propose(context, rooms, known or {})

    # 5 execute: smoke first, then the scoring block
    on_event(Event("stage", number, "smoke", total=sum(p.outcome is Outcome.SCORED for p in proposals)))
    proposals = await asyncio.gather(*(_smoke(p, evaluator) for p in proposals))
    for proposal in proposals:
        on_event(Event("proposal", number, "smoke", proposal=proposal))
    runnable = [p for p in proposals if p.outcome is Outcome.SCORED and p.candidate is not None]
    works = [Work(p.candidate, scoring_block, trials=trials) for p in runnable if p.candidate is not None]
    scored = await _score(evaluator, works, number, "score", on_event)
    by_index = {p.index: result for p, result in zip(runnable, scored, strict=True)}
    candidates = tuple(
        Candidate(
            p,
            by_index[p.index][0] if p.index in by_index else None,
            p.index in by_index and same_behaviour(scoring_runs, by_index[p.index][1]),
        )
        for p in proposals
    )

    # 6 select, 7 confirm
    selection = select(settings.select, scoring, [c.scoring for c in candidates])
    confirmation: tuple[Measurement, ...] = ()
    if settings.confirm and selection.passed and selection.winner is not None:
        winner = proposals[selection.winner].candidate
        assert winner is not None  # only scored candidates win
        block = rooms.sets.confirmation.block(index, settings.confirmation)
        works = [Work(parent.harness, block, trials=trials), Work(winner, block, trials=trials)]
        measured = await _score(evaluator, works, number, "confirm", on_event)
        confirmation = tuple(m for m, _ in measured)
    # A confirmation of which every attempt was lost confirms nothing.
    measured = len(confirmation) == 2 and all(m.score.n for m in confirmation)
    confirmed = pair(*confirmation) if measured else None
    verdict = decide(settings.select, selection, confirmed, confirm=settings.confirm)

    result = Round(
        lineage=parent.lineage,
        number=number,
        parent=parent,
        feedback=feedback,
        scoring=scoring,
        candidates=candidates,
        verdict=verdict,
        confirmation=confirmation,
        report=report,
        cost=_difference(rooms.meter.cost, before),
        settings={
            "select": settings.select,
            "confirm": str(settings.confirm).lower(),
            "proposals": str(settings.proposals),
            "feedback": str(len(feedback_block.questions)),
            "scoring": str(len(scoring_block.questions)),
            "trials": str(trials),
            "block": str(index),
        },
    )
    on_event(Event("round", number, result=result))
    return result


async def _score(
    evaluator: Evaluator, works: Sequence[Work], number: int, stage: str, on_event: OnEvent
) -> tuple[tuple[Measurement, tuple[Attempt, ...]], ...]:
    on_event(Event("stage", number, stage, total=sum(len(w.block.questions) * w.trials for w in works)))

    def tell(progress: Progress) -> None:
        on_event(Event("attempt", number, stage, attempt=progress.attempt, cached=progress.cached))

    return await evaluator.score(works, tell)


async def _propose(context: ProposalContext, rooms: Rooms, known: Mapping[str, str]) -> list[Proposal]:
    """K proposals, each applied or given its outcome, in index order so that repeats are judged alike every time."""
    count = rooms.settings.proposals
    replies = list(await asyncio.gather(*(_ask(context, rooms, i, count) for i in range(count))))
    for _ in range(rooms.settings.repair):
        broken = [p for p in _judge(context, rooms, replies, known) if p.outcome in REPAIRABLE]
        repaired = await asyncio.gather(*(_repair(context, rooms, p) for p in broken))
        for proposal, reply in zip(broken, repaired, strict=True):
            replies[proposal.index] = reply
    proposals = _judge(context, rooms, replies, known)
    if proposals and all(p.outcome is Outcome.LOST for p in proposals):
        raise EngineError(
            f"The proposer {rooms.proposer.name} failed: {proposals[0].detail}", hint="hl doctor"
        )
    return proposals


def _judge(
    context: ProposalContext, rooms: Rooms, replies: Sequence[Reply], known: Mapping[str, str]
) -> list[Proposal]:
    """Apply every reply; a program that an earlier one made already is a duplicate."""
    seen = dict(known)
    proposals: list[Proposal] = []
    for index, reply in enumerate(replies):
        proposal = _apply(context, rooms, reply, index, seen)
        if proposal.outcome is Outcome.SCORED and proposal.candidate is not None:
            seen[program_digest(proposal.candidate)] = proposal.candidate.digest
        proposals.append(proposal)
    return proposals


async def _repair(context: ProposalContext, rooms: Rooms, proposal: Proposal) -> Reply:
    """The reply after a repair turn, or as it was where the proposer cannot repair or failed."""
    before = proposal.reply
    again = await rooms.proposer.repair(context, proposal.index, before, proposal.detail)
    if again is before or again.error:
        return before
    # What the earlier turns cost belongs to the proposal too.
    return replace(
        again,
        earlier=(*before.earlier, before.text),
        prompt_tokens=again.prompt_tokens + before.prompt_tokens,
        completion_tokens=again.completion_tokens + before.completion_tokens,
        cost=again.cost + before.cost,
        seconds=again.seconds + before.seconds,
    )


async def _ask(context: ProposalContext, rooms: Rooms, index: int, count: int) -> Reply:
    reply = await rooms.proposer.propose(context, index, count)
    for _ in range(LOST_RETRIES):
        if not reply.error:
            break
        reply = await rooms.proposer.propose(context, index, count)
    rooms.meter.check()
    return reply


def _apply(
    context: ProposalContext, rooms: Rooms, reply: Reply, index: int, known: Mapping[str, str]
) -> Proposal:
    if reply.error:
        return Proposal(index, rooms.proposer.name, reply, Outcome.LOST, detail=reply.error)
    return propose_from_reply(context.harness, reply, index=index, proposer=rooms.proposer.name, known=known)


async def _smoke(proposal: Proposal, evaluator: Evaluator) -> Proposal:
    if proposal.outcome is not Outcome.SCORED or proposal.candidate is None:
        return proposal
    outcome, detail = await smoke(proposal.candidate, evaluator)
    return proposal if outcome is Outcome.SCORED else replace(proposal, outcome=outcome, detail=detail)


async def smoke(candidate: Harness, evaluator: Evaluator) -> tuple[Outcome, str]:
    """Whether a candidate can be imported and called once with a stubbed model.

    Returns:
        `scored` when it is ready to run, else `import`, `crash` or `timeout` with the reason.

    Raises:
        SandboxError: The sandbox lost the call again and again: that says nothing about the candidate.
    """
    result = await evaluator.sandbox.smoke(candidate, limits=evaluator.limits)
    for _ in range(LOST_RETRIES):
        if result.status is not Status.LOST:
            break
        result = await evaluator.sandbox.smoke(candidate, limits=evaluator.limits)
    if result.status is Status.LOST:
        raise SandboxError(f"A candidate's stubbed call was lost: {result.error or 'the sandbox broke'}.")
    if result.status is Status.OK:
        return Outcome.SCORED, ""
    if result.status is Status.TIMEOUT:
        outcome = Outcome.TIMEOUT
    else:
        outcome = Outcome.IMPORT if result.value == "import" else Outcome.CRASH
    return outcome, result.error[-2000:]


def _difference(after: Cost, before: Cost) -> Cost:
    return Cost(
        after.calls - before.calls,
        after.prompt_tokens - before.prompt_tokens,
        after.completion_tokens - before.completion_tokens,
        after.money - before.money,
        after.seconds - before.seconds,
    )


# --- the chain -------------------------------------------------------------------------------------------------


class Book(Protocol):
    """The part of the ledger that a chain uses."""

    def head(self) -> Revision:
        """The lineage's current harness."""
        ...

    def next_round(self) -> int:
        """Highest round number ever used + 1."""
        ...

    def history(self, solver: str) -> tuple[HistoryEntry, ...]:
        """Earlier edits of the chain that ends at the head and met this solver, oldest first."""
        ...

    def known_programs(self, solver: str) -> Mapping[str, str]:
        """Program digest -> harness digest of every candidate of the chain that met this solver."""
        ...

    def record(self, result: Round) -> None:
        """Write the round; the branch moves last."""
        ...


@dataclass(frozen=True, slots=True)
class Stops:
    """When a chain ends."""

    rounds: int
    """Rounds to run in all, those of an interrupted run included."""
    patience: int | None = None
    """Rejected rounds in a row."""
    target: float | None = None
    """Mean on the confirmation block (or the scoring block without confirmation) that is good enough."""


@dataclass(slots=True)
class ChainState:
    """What a chain has done so far; saved after every round so that it can go on."""

    done: int = 0
    """Rounds finished."""
    rejected: int = 0
    """Rejected rounds in a row."""
    rounds: list[int] = field(default_factory=list[int])
    """Their numbers in the ledger."""
    reached: float | None = None
    """The head's mean after the last one, on the least biased block at hand."""


async def run_chain(
    book: Book,
    rooms: Rooms,
    stops: Stops,
    state: ChainState,
    *,
    on_event: OnEvent = _ignore,
    on_round: Callable[[Round], None] = lambda _: None,
) -> str:
    """Rounds until a stop; returns the reason in one phrase.

    Args:
        book: The ledger, seen from one lineage.
        rooms: The parts.
        stops: When to end.
        state: Updated in place.
        on_event: Told of progress.
        on_round: Called after a round is recorded.

    Raises:
        StoppedEarly: A run limit was reached.
        EngineError: An engine stays down.
        SandboxError: The sandbox cannot be trusted any more.
    """
    # Asked before a round too: a run that was killed after its last round has none left to do.
    while not (reason := _stopped(stops, state)):
        result = await run_round(
            book.head(),
            book.next_round(),
            rooms,
            history=book.history(rooms.evaluator.identity),
            known=book.known_programs(rooms.evaluator.identity),
            on_event=on_event,
        )
        book.record(result)
        accepted = result.verdict.decision.value == "accepted"
        state.done += 1
        state.rejected = 0 if accepted else state.rejected + 1
        state.rounds.append(result.number)
        winner = result.verdict.winner
        chosen = result.candidates[winner].scoring if winner is not None else None
        state.reached = head_mean(result.scoring, chosen, result.confirmation, accepted=accepted)
        on_round(result)
    return reason


def _stopped(stops: Stops, state: ChainState) -> str:
    """Why the chain is at its end; empty if it is not."""
    if stops.target is not None and state.reached is not None and state.reached >= stops.target:
        return f"target {stops.target:g} reached"
    if stops.patience is not None and state.rejected >= stops.patience:
        return f"{state.rejected} rejected rounds in a row"
    return f"{state.done} rounds done" if state.done >= stops.rounds else ""


def head_mean(
    parent: Measurement, winner: Measurement | None, confirmation: Sequence[Measurement], *, accepted: bool
) -> float:
    """The head's mean after a round, on the least biased block at hand.

    Args:
        parent: On the scoring block.
        winner: On the scoring block, if there is one.
        confirmation: Parent then winner on the confirmation block, or nothing.
        accepted: Whether the winner became the head.
    """
    on_scoring = winner if accepted else parent
    fresh = confirmation[accepted] if len(confirmation) == 2 else None
    measured = fresh if fresh is not None and fresh.score.n else on_scoring
    return measured.score.mean if measured is not None else 0.0


def planned_attempts(settings: RoundSettings, rounds: int, sets: QuestionSets) -> int:
    """Upper bound of attempts that a chain runs, both evaluations included (for `--dry-run`)."""

    def size(role: Role, wanted: int) -> int:
        return min(wanted, len(sets.of(role).questions))

    a_round = size(Role.FEEDBACK, settings.feedback)
    a_round += size(Role.SCORING, settings.scoring) * settings.trials * (1 + settings.proposals)
    if settings.confirm:
        a_round += 2 * size(Role.CONFIRMATION, settings.confirmation) * settings.trials
    return rounds * a_round + 2 * len(sets.evaluation.questions) * settings.trials
