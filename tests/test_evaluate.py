"""The queue between harnesses and questions: real sandbox, scripted model."""

import asyncio
from collections.abc import Callable, Sequence

import pytest

from hl.cache import Cache
from hl.engines.scripted import ScriptedEngine
from hl.errors import EngineError, StoppedEarly
from hl.evaluate import Evaluator, Progress, Work, same_behaviour
from hl.sandbox.host import Limits, Sandbox
from hl.solver import Meter, MeteredEngine, RunLimits, Solver, SolverSettings
from hl.tasks.graders import TextGrader
from hl.tasks.text_rules import exact, share
from hl.types import (
    Attempt,
    ChatRequest,
    FailureClass,
    Gold,
    Harness,
    Measurement,
    Message,
    Question,
    QuestionSet,
    Role,
    Status,
)

ECHO = Harness((("harness.py", "def solve(model, question):\n    return model(question)\n"),))
SHOUT = Harness((("harness.py", "def solve(model, question):\n    return model(question).upper()\n"),))
PURE = Harness((("harness.py", "def solve(model, question):\n    return question[-1]\n"),))
Answer = Callable[[Sequence[Message], ChatRequest], str]


def block(n: int) -> QuestionSet:
    ids = [f"{i:016x}" for i in range(n)]
    return QuestionSet(
        Role.SCORING,
        tuple(Question(i, f"say {k}") for k, i in enumerate(ids)),
        tuple(Gold(i, str(k), "{}") for k, i in enumerate(ids)),
    )


class Bench:
    """An evaluator whose parts outlive one event loop's sandbox."""

    def __init__(self, answer: Answer, *, limits: RunLimits | None = None, **options: object) -> None:
        self.asked = 0

        def counted(messages: Sequence[Message], request: ChatRequest) -> str:
            self.asked += 1
            return answer(messages, request)

        self.cache = Cache(None)
        self.meter = Meter(limits)
        self.engine = MeteredEngine(ScriptedEngine(function=counted), self.cache, self.meter)
        self.options = options

    def score(
        self, *works: Work, on_attempt: Callable[[Progress], None] | None = None
    ) -> tuple[tuple[Measurement, tuple[Attempt, ...]], ...]:
        async def go() -> tuple[tuple[Measurement, tuple[Attempt, ...]], ...]:
            async with Sandbox(zygotes=1) as sandbox:
                evaluator = Evaluator(
                    sandbox=sandbox,
                    solver=Solver(self.engine, SolverSettings()),
                    cache=self.cache,
                    meter=self.meter,
                    limits=Limits(wall_s=10),
                    **{"grader": TextGrader(exact), **self.options},  # pyright: ignore[reportArgumentType]
                )
                return await evaluator.score(works, on_attempt)

        return asyncio.run(go())


def last_word(messages: Sequence[Message], request: ChatRequest) -> str:
    return messages[-1].content.split()[-1]


def test_a_harness_is_run_graded_and_measured() -> None:
    ((measurement, attempts),) = Bench(last_word).score(Work(ECHO, block(6)))
    assert [a.answer for a in attempts] == list("012345")
    assert measurement.score.mean == 1.0 and measurement.score.n == 6
    assert measurement.counts == {"ok": 6} and measurement.classes == {}
    assert measurement.calls == 6 and measurement.zero_call_share == 0.0
    assert measurement.ids == tuple(q.id for q in block(6).questions)


def test_attempts_already_stored_are_not_run_again() -> None:
    bench = Bench(last_word)
    seen: list[bool] = []
    first = bench.score(Work(ECHO, block(4)), on_attempt=lambda p: seen.append(p.cached))
    again = bench.score(Work(ECHO, block(4)), on_attempt=lambda p: seen.append(p.cached))
    assert first == again
    assert seen == [False] * 4 + [True] * 4
    assert bench.asked == 4


def test_attempts_hold_both_grades_and_the_score_says_which_it_averages() -> None:
    bench = Bench(lambda messages, request: "say " + last_word(messages, request), grader=TextGrader(share))
    ((raw, attempts),) = bench.score(Work(ECHO, block(4)))
    bench.options["mode"] = "strict"
    seen: list[bool] = []
    ((strict, same),) = bench.score(Work(ECHO, block(4)), on_attempt=lambda p: seen.append(p.cached))
    assert same == attempts and seen == [True] * 4
    assert {(a.grade.raw, a.grade.strict, a.failure) for a in attempts} == {(0.2, 0.0, FailureClass.FORMAT)}
    assert (raw.mode, raw.score.mean) == ("raw", pytest.approx(0.2))
    assert (strict.mode, strict.score.mean) == ("strict", 0.0)
    assert (raw.other_grades, strict.other_grades) == (strict.grades, raw.grades)
    assert raw.solver != strict.solver


def test_candidates_share_the_replies_to_equal_requests() -> None:
    bench = Bench(last_word)
    bench.score(Work(ECHO, block(4)), Work(SHOUT, block(4)))
    assert bench.asked == 4


def test_a_crash_is_a_zero_with_its_class_and_touches_nobody_else() -> None:
    broken = Harness((("harness.py", "def solve(model, question):\n    return {}[question]\n"),))
    (bad, runs), (good, _) = Bench(last_word).score(Work(broken, block(3)), Work(ECHO, block(3)))
    assert bad.score.mean == 0.0 and bad.score.n == 3 and bad.counts == {"crash": 3}
    assert bad.classes == {"crash": 3}
    assert "KeyError" in runs[0].error
    assert good.score.mean == 1.0


def test_trials_are_averaged_within_a_question() -> None:
    def by_seed(messages: Sequence[Message], request: ChatRequest) -> str:
        return last_word(messages, request) if request.seed % 2 else "no"

    ((measurement, attempts),) = Bench(by_seed).score(Work(ECHO, block(5), trials=4))
    assert len(attempts) == 20 and measurement.trials == 4 and measurement.score.n == 5
    by_hand = [sum(a.grade.raw for a in attempts if a.question_id == q.id) / 4 for q in block(5).questions]
    assert list(measurement.grades) == by_hand
    assert 0 < measurement.score.mean < 1


def test_a_fault_of_the_engine_is_retried_and_costs_the_harness_nothing() -> None:
    failures = {"left": 3}

    def flaky(messages: Sequence[Message], request: ChatRequest) -> str:
        if failures["left"]:
            failures["left"] -= 1
            raise EngineError("lost the connection")
        return last_word(messages, request)

    ((measurement, _),) = Bench(flaky).score(Work(ECHO, block(6)))
    assert measurement.score.mean == 1.0 and measurement.counts == {"ok": 6}


def test_an_attempt_that_stays_lost_is_left_out_of_n_and_counted() -> None:
    def one_bad(messages: Sequence[Message], request: ChatRequest) -> str:
        if messages[-1].content == "say 2":
            raise EngineError("lost the connection")
        return last_word(messages, request)

    bench = Bench(one_bad)
    ((measurement, _),) = bench.score(Work(ECHO, block(6)))
    assert measurement.score.n == 5 and measurement.score.mean == 1.0
    assert measurement.counts == {"lost": 1, "ok": 5}
    assert measurement.grades[2] is None
    asked = bench.asked
    bench.score(Work(ECHO, block(6)))
    assert bench.asked > asked  # a lost attempt is not stored: it is tried again


def test_an_engine_that_stays_down_ends_the_work_and_keeps_what_was_measured() -> None:
    def dying(messages: Sequence[Message], request: ChatRequest) -> str:
        if int(last_word(messages, request)) >= 4:
            raise EngineError("the server is down")
        return last_word(messages, request)

    bench = Bench(dying, concurrency=1)
    seen: list[bool] = []
    for _ in range(2):
        with pytest.raises(EngineError, match="the server is down"):
            bench.score(Work(ECHO, block(20)), on_attempt=lambda p: seen.append(p.cached))
    assert seen[:4] == [False] * 4
    assert seen.count(True) == 4


def test_a_run_limit_stops_the_queue() -> None:
    bench = Bench(last_word, limits=RunLimits(calls=3))
    with pytest.raises(StoppedEarly, match="3 of 3 calls"):
        bench.score(Work(ECHO, block(30)))
    assert bench.asked == 3


def test_a_harness_that_never_asks_is_told_apart_and_can_be_refused() -> None:
    ((measurement, _),) = Bench(last_word).score(Work(PURE, block(4)))
    assert measurement.score.mean == 1.0 and measurement.zero_call_share == 1.0
    ((measurement, _),) = Bench(last_word, require_model_call=True).score(Work(PURE, block(4)))
    assert measurement.score.mean == 0.0


def test_the_classifier_asks_the_grader_about_the_last_lines() -> None:
    drop = Harness((("harness.py", "def solve(model, question):\n    model('4 or 7?')\n    return 'x'\n"),))
    alone = QuestionSet(Role.SCORING, (Question("a" * 16, "which?"),), (Gold("a" * 16, "7", "{}"),))
    ((measurement, runs),) = Bench(lambda m, r: "it is\n7").score(Work(drop, alone))
    assert runs[0].failure is FailureClass.EXTRACTION
    assert measurement.classes == {"extraction": 1}


def test_behaviour_is_the_calls_and_the_answer() -> None:
    twin = Harness(
        (("harness.py", "import json\ndef solve(model, question):\n    return model(str(question))\n"),)
    )
    one, two, three = Bench(last_word).score(Work(ECHO, block(3)), Work(twin, block(3)), Work(PURE, block(3)))
    assert same_behaviour(one[1], two[1])
    assert not same_behaviour(one[1], three[1])


def test_scores_under_other_conditions_have_another_identity() -> None:
    ((raw, _),) = Bench(last_word).score(Work(ECHO, block(1)))
    ((strict, _),) = Bench(last_word, mode="strict").score(Work(ECHO, block(1)))
    ((same, _),) = Bench(last_word).score(Work(SHOUT, block(1)))
    assert raw.solver == same.solver != strict.solver


def test_an_endless_loop_is_a_timeout() -> None:
    loop = Harness((("harness.py", "def solve(model, question):\n    while True:\n        pass\n"),))

    async def go() -> Measurement:
        bench = Bench(last_word)
        async with Sandbox(zygotes=1) as sandbox:
            evaluator = Evaluator(
                sandbox=sandbox,
                solver=Solver(bench.engine, SolverSettings()),
                grader=TextGrader(exact),
                cache=bench.cache,
                meter=bench.meter,
                limits=Limits(wall_s=0.5, cpu_s=1),
            )
            return (await evaluator.score([Work(loop, block(2))]))[0][0]

    assert asyncio.run(go()).counts == {Status.TIMEOUT.value: 2}
