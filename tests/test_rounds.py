"""One round through its rooms: real sandbox, scripted solver and proposer."""

import asyncio
import json
from collections.abc import Callable, Sequence
from typing import Any, cast

import pytest

from hl.cache import Cache
from hl.engines.scripted import ScriptedEngine
from hl.errors import EngineError
from hl.evaluate import Evaluator
from hl.proposer.llm import LlmProposer
from hl.rounds import (
    ChainState,
    Event,
    Rooms,
    RoundSettings,
    Stops,
    block_index,
    planned_attempts,
    run_chain,
    run_round,
)
from hl.sandbox.host import Limits, Sandbox
from hl.solver import Meter, MeteredEngine, Solver, SolverSettings
from hl.tasks.graders import TextGrader
from hl.tasks.text_rules import exact
from hl.types import (
    ChatRequest,
    Decision,
    Gold,
    Harness,
    HistoryEntry,
    Message,
    Outcome,
    Question,
    QuestionSet,
    QuestionSets,
    Revision,
    Role,
    Round,
    TaskSpec,
)
from tests.loop import GOOD, IDLE, LOST, NONE, SEED

PARENT = Revision("c" * 40, Harness((("harness.py", SEED),)), "main")
SETTINGS = RoundSettings(proposals=4, feedback=3, scoring=6, confirmation=6, repair=0)


def block(line: str) -> str:
    return GOOD.replace('model("carefully: " + question)', line)


def make_set(role: Role, first: int, n: int) -> QuestionSet:
    ids = [f"{first + i:016x}" for i in range(n)]
    return QuestionSet(
        role,
        tuple(Question(i, f"{int(i, 16)}?") for i in ids),
        tuple(Gold(i, str(int(i, 16)), "{}") for i in ids),
    )


SETS = QuestionSets(
    make_set(Role.FEEDBACK, 0, 6),
    make_set(Role.SCORING, 100, 12),
    make_set(Role.CONFIRMATION, 200, 12),
    make_set(Role.EVALUATION, 300, 4),
)


def careful(messages: Sequence[Message], request: ChatRequest) -> str:
    """Right only where the prompt says `carefully: `."""
    text = messages[-1].content
    return text.removeprefix("carefully: ").rstrip("?") if text.startswith("carefully: ") else "no idea"


def play(
    replies: Sequence[str] | Callable[[Sequence[Message], ChatRequest], str],
    *,
    settings: RoundSettings = SETTINGS,
    known: dict[str, str] | None = None,
    history: Sequence[HistoryEntry] = (),
    solver: Callable[[Sequence[Message], ChatRequest], str] = careful,
    events: list[Event] | None = None,
    number: int = 1,
) -> Round:
    async def go() -> Round:
        cache, meter = Cache(None), Meter()
        if callable(replies):
            writer = ScriptedEngine(function=replies)
        else:
            # A proposal's seed is consecutive within a round: the i-th reply goes to some proposal, each exactly once.
            writer = ScriptedEngine(function=lambda m, r: replies[r.seed % len(replies)])
        async with Sandbox(zygotes=1) as sandbox:
            evaluator = Evaluator(
                sandbox=sandbox,
                solver=Solver(MeteredEngine(ScriptedEngine(function=solver), cache, meter), SolverSettings()),
                grader=TextGrader(exact),
                cache=cache,
                meter=meter,
                limits=Limits(wall_s=5, cpu_s=2),
            )
            proposer = LlmProposer(MeteredEngine(writer, cache, meter))
            rooms = Rooms(TaskSpec("t", "Say the number."), SETS, evaluator, proposer, meter, settings)
            tell = events.append if events is not None else lambda _: None
            return await run_round(PARENT, number, rooms, history=history, known=known, on_event=tell)

    return asyncio.run(go())


def outcomes(result: Round) -> dict[str, Outcome]:
    return {c.proposal.reply.text.splitlines()[0][:20]: c.proposal.outcome for c in result.candidates}


def test_the_best_candidate_is_confirmed_on_fresh_questions_and_accepted() -> None:
    result = play([GOOD, IDLE, LOST, NONE])
    assert outcomes(result) == {
        "Ask carefully": Outcome.SCORED,
        "Ask politely": Outcome.SCORED,
        "Ask the oracle": Outcome.NOT_FOUND,
        "I would not change a": Outcome.NO_EDIT,
    }
    assert result.verdict.decision is Decision.ACCEPTED
    assert result.verdict.confirmed is not None and result.verdict.confirmed.mean == 1.0
    parent, winner = result.confirmation
    assert (
        set(parent.ids)
        == set(winner.ids)
        == {q.id for q in SETS.confirmation.block(block_index("main", 1), 6).questions}
    )
    assert not set(parent.ids) & set(result.scoring.ids)
    assert (
        result.cost.calls == 3 + 6 * 3 + 2 * 6 + 4
    )  # feedback, scoring x 3 harnesses, confirmation x 2, proposals


def test_all_candidates_and_the_parent_meet_the_same_questions() -> None:
    result = play([GOOD, IDLE])
    blocks = {result.scoring.ids} | {c.scoring.ids for c in result.candidates if c.scoring}
    assert len(blocks) == 1


def test_a_candidate_that_only_ties_is_rejected_and_nothing_is_spent_on_confirming_it() -> None:
    result = play([IDLE, NONE])
    assert result.verdict.decision is Decision.REJECTED
    assert result.confirmation == ()


def test_without_confirmation_the_selection_decides() -> None:
    plain = RoundSettings(proposals=2, feedback=3, scoring=6, confirmation=6, repair=0, confirm=False)
    result = play([GOOD, NONE], settings=plain)
    assert result.verdict.decision is Decision.ACCEPTED
    assert result.verdict.confirmed is None and result.confirmation == ()


def test_best_takes_a_candidate_that_does_not_beat_its_parent() -> None:
    rule = RoundSettings(proposals=2, feedback=3, scoring=6, confirmation=6, repair=0, select="best")
    assert play([IDLE, NONE], settings=rule).verdict.decision is Decision.ACCEPTED


@pytest.mark.parametrize(
    ("line", "outcome"),
    [
        ("model(question) +", Outcome.SYNTAX),
        ("model(question)\n\n\nimport nothing_like_it\n\n\ndef more():\n    pass", Outcome.IMPORT),
        ("{}[question]", Outcome.CRASH),
        ("7", Outcome.CRASH),
        ("str(next(i for i in iter(int, 1) if i))", Outcome.TIMEOUT),
    ],
)
def test_a_candidate_that_cannot_run_has_its_outcome_and_costs_no_scoring_call(
    line: str, outcome: Outcome
) -> None:
    one = RoundSettings(proposals=1, feedback=3, scoring=6, confirmation=6, repair=0)
    result = play([block(line)], settings=one)
    (candidate,) = result.candidates
    assert candidate.proposal.outcome is outcome, candidate.proposal.detail
    assert candidate.scoring is None and candidate.proposal.detail
    assert result.cost.calls == 3 + 6 + 1


def test_a_repeat_within_the_round_or_of_an_earlier_one_is_a_duplicate() -> None:
    two = RoundSettings(proposals=2, feedback=3, scoring=6, confirmation=6, repair=0)
    commented = GOOD.replace("question)\n>>>>", "question)  # really\n>>>>")
    first = play([GOOD, commented], settings=two)
    assert sorted(c.proposal.outcome for c in first.candidates) == [Outcome.DUPLICATE, Outcome.SCORED]
    from hl.edits import program_digest

    candidate = next(c.proposal.candidate for c in first.candidates if c.proposal.outcome is Outcome.SCORED)
    assert candidate is not None
    later = play([GOOD, NONE], settings=two, known={program_digest(candidate): candidate.digest})
    duplicate = next(c.proposal for c in later.candidates if c.proposal.outcome is Outcome.DUPLICATE)
    assert duplicate.duplicate_of == candidate.digest


def test_code_that_changes_no_call_is_called_a_behavioural_no_op() -> None:
    one = RoundSettings(proposals=1, feedback=3, scoring=6, confirmation=6, repair=0)
    (candidate,) = play([block('model("guess: " + str(question))')], settings=one).candidates
    assert candidate.behavioural_noop
    (candidate,) = play([IDLE], settings=one).candidates
    assert not candidate.behavioural_noop


def test_one_repair_turn_is_offered_with_the_hint() -> None:
    seen: list[str] = []

    def writer(messages: Sequence[Message], request: ChatRequest) -> str:
        if len(messages) == 2:
            return LOST
        seen.append(messages[-1].content)
        return GOOD

    one = RoundSettings(proposals=1, feedback=3, scoring=6, confirmation=6, repair=1)
    (candidate,) = play(writer, settings=one).candidates
    assert candidate.proposal.outcome is Outcome.SCORED
    assert candidate.proposal.reply.earlier == (LOST,)
    assert "return oracle(question)" in seen[0] and "line" in seen[0]


def test_a_reply_lost_to_the_engine_is_asked_for_again_and_then_recorded() -> None:
    failures = {"left": 2}

    def flaky(messages: Sequence[Message], request: ChatRequest) -> str:
        if request.seed % 2 == 0 and failures["left"]:
            failures["left"] -= 1
            raise EngineError("cut off")
        return GOOD

    two = RoundSettings(proposals=2, feedback=3, scoring=6, confirmation=6, repair=0)
    assert Outcome.LOST not in [c.proposal.outcome for c in play(flaky, settings=two).candidates]
    failures["left"] = 99
    result = play(flaky, settings=two)
    assert sorted(c.proposal.outcome for c in result.candidates) == [Outcome.LOST, Outcome.SCORED]


def test_a_proposer_that_stays_down_is_an_engine_failure() -> None:
    def down(messages: Sequence[Message], request: ChatRequest) -> str:
        raise EngineError("cut off")

    with pytest.raises(EngineError, match="cut off"):
        play(down)


def test_the_proposer_never_sees_scoring_questions_or_their_gold() -> None:
    prompts: list[str] = []

    def writer(messages: Sequence[Message], request: ChatRequest) -> str:
        prompts.extend(m.content for m in messages)
        return NONE

    entry = HistoryEntry(1, "An old idea", Outcome.SCORED, False, -0.1, {"wrong": 5}, {"NameError": 4}, 6)
    play(writer, history=[entry])
    text = "\n".join(prompts)
    assert "An old idea" in text and "NameError 4" in text
    hidden = [q.text for s in (SETS.scoring, SETS.confirmation, SETS.evaluation) for q in s.questions]
    assert not [q for q in hidden if q in text]
    assert SEED in text


def test_rounds_use_other_blocks_and_the_same_ones_again_when_the_pool_ends() -> None:
    index = block_index("main", 1)
    blocks = [SETS.scoring.block(index + i, 6).digest for i in range(3)]
    assert blocks[0] != blocks[1] and blocks[0] == blocks[2]
    assert block_index("main", 1) != block_index("topic", 1)


def test_events_tell_the_round_from_start_to_end() -> None:
    events: list[Event] = []
    result = play([GOOD, IDLE, LOST, NONE], events=events)
    stages = [e.stage for e in events if e.kind == "stage"]
    assert stages == ["measure", "propose", "smoke", "score", "confirm"]
    by_stage = {e.stage: e.total for e in events if e.kind == "stage"}
    for stage in ("measure", "score", "confirm"):
        assert sum(e.kind == "attempt" and e.stage == stage for e in events) == by_stage[stage]
    assert events[-1].kind == "round" and events[-1].result is result


def test_the_plan_is_an_upper_bound() -> None:
    result = play([GOOD, IDLE, LOST, NONE])
    assert result.cost.calls - 4 <= planned_attempts(SETTINGS, 1, SETS)
    assert json.dumps(result.settings)


class Shelf:
    """A ledger that keeps nothing: `run_chain` must not ask it for a round when there is none left to do."""

    def __getattr__(self, name: str) -> object:
        raise AssertionError(f"a round was begun: {name}")


@pytest.mark.parametrize(
    ("stops", "state", "reason"),
    [
        (Stops(9, target=0.8), ChainState(done=2, reached=0.85), "target 0.8 reached"),
        (Stops(9, patience=2), ChainState(done=3, rejected=2), "2 rejected rounds in a row"),
        (Stops(3), ChainState(done=3), "3 rounds done"),
    ],
)
def test_a_chain_continued_after_its_last_round_begins_no_other(
    stops: Stops, state: ChainState, reason: str
) -> None:
    nothing = cast("Any", Shelf())
    assert asyncio.run(run_chain(nothing, nothing, stops, state)) == reason
