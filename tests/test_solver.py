"""Budgets, clamps and the cache at the one way to a model."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from hl.cache import Cache
from hl.engines.scripted import ScriptedEngine
from hl.errors import EngineError, HlError, StoppedEarly
from hl.sandbox.host import Answer, PythonResult
from hl.solver import (
    MAX_PYTHON_RUNS,
    MAX_QUERY_CHARS,
    MAX_REFUSALS,
    MAX_SEARCHES,
    AttemptSession,
    Meter,
    MeteredEngine,
    RunLimits,
    Solver,
    SolverSettings,
    abridge,
    trial_seed,
)
from hl.types import ChatReply, ChatRequest, Message, Question, Status

QUESTION = Question("0123456789abcdef", "What?")


async def no_python(code: str, *, timeout_s: float) -> PythonResult:
    return PythonResult(f"ran {code} for {timeout_s:g}", "", 0.25)


class Desk:
    """A solver over a recording scripted engine."""

    def __init__(
        self, *, settings: SolverSettings | None = None, limits: RunLimits | None = None, ablation: str = ""
    ) -> None:
        self.requests: list[ChatRequest] = []

        def answer(messages: Sequence[Message], request: ChatRequest) -> str:
            self.requests.append(request)
            return f"reply {len(self.requests)}"

        self.cache = Cache(None)
        self.meter = Meter(limits)
        engine = MeteredEngine(ScriptedEngine(function=answer), self.cache, self.meter)
        self.solver = Solver(engine, settings or SolverSettings(), ablation=ablation)

    def session(self, trial: int = 0) -> AttemptSession:
        return self.solver.session(QUESTION, trial, wall_s=60, python=no_python, search=None)


def chat(text: str = "hi", **more: Any) -> Mapping[str, Any]:
    return {"messages": [{"role": "user", "content": text}], **more}


def play(script: Callable[[AttemptSession], Any], desk: Desk) -> Any:
    return asyncio.run(script(desk.session()))


def test_a_harness_cannot_buy_settings_that_the_user_did_not_allow() -> None:
    desk = Desk(settings=SolverSettings(temperature=0.0, temperature_max=0.5, max_tokens=100))
    asyncio.run(desk.session().call("chat", chat(max_tokens=10**9, temperature=99)))
    asyncio.run(desk.session().call("chat", chat("b", max_tokens=-4, temperature=-1)))
    asyncio.run(desk.session().call("chat", chat("c")))
    assert [(r.max_tokens, r.temperature) for r in desk.requests] == [(100, 0.5), (1, 0.0), (100, 0.0)]


def test_calls_over_budget_are_refused_and_then_end_the_attempt() -> None:
    desk = Desk(settings=SolverSettings(calls=2))

    async def spam(session: AttemptSession) -> list[Answer]:
        return [await session.call("chat", chat(str(i))) for i in range(3 + MAX_REFUSALS)]

    answers = play(spam, desk)
    assert [a.kind for a in answers[:3]] == ["", "", "budget"]
    assert answers[2].fatal is None
    assert answers[-1].fatal is Status.BUDGET
    assert len(desk.requests) == 2


def test_parallel_calls_cannot_slip_past_the_budget() -> None:
    desk = Desk(settings=SolverSettings(calls=4))

    async def burst(session: AttemptSession) -> list[Answer]:
        return await asyncio.gather(*(session.call("chat", chat(str(i))) for i in range(12)))

    assert sum(a.kind == "" for a in play(burst, desk)) == 4
    assert len(desk.requests) == 4


def test_tokens_are_counted_and_bounded() -> None:
    desk = Desk(settings=SolverSettings(calls=100, tokens=10))

    async def talk(session: AttemptSession) -> tuple[int, str]:
        for i in range(50):
            answer = await session.call("chat", chat(f"one two three {i}"))
            if answer.kind:
                return session.prompt_tokens + session.completion_tokens, answer.kind
        return 0, "never refused"

    used, kind = play(talk, desk)
    assert kind == "budget"
    assert 10 <= used < 30


@pytest.mark.parametrize(
    "args",
    [
        {},
        {"messages": []},
        {"messages": "hi"},
        {"messages": [{"role": "root", "content": "x"}]},
        {"messages": [{"role": "user", "content": 3}]},
        {"messages": [None]},
        chat(max_tokens="many"),
        chat(temperature=float("nan")),
        chat(stop=[1]),
        chat(stop=[""]),
        chat("x" * 300_000),
    ],
)
def test_bad_arguments_are_the_harness_s_error_and_cost_nothing(args: Mapping[str, Any]) -> None:
    desk = Desk()
    session = desk.session()
    assert asyncio.run(session.call("chat", args)).kind == "value"
    assert session.calls == 0 and not desk.requests


def test_equal_requests_of_a_trial_are_paid_once_and_samples_differ() -> None:
    desk = Desk()

    async def twice(session: AttemptSession) -> list[Any]:
        return [(await session.call("chat", chat(temperature=1.0))).value for _ in range(2)]

    first, again = play(twice, desk), play(twice, desk)
    assert first == again
    assert first[0] != first[1]
    assert len(desk.requests) == 2
    assert desk.requests[0].seed != desk.requests[1].seed
    assert desk.meter.cost.calls == 2 and desk.meter.cached == 2


def test_equal_requests_in_flight_make_one_call() -> None:
    desk = Desk()
    request = ChatRequest((Message("user", "hi"),), 10, 0.0)

    async def both() -> list[ChatReply]:
        return await asyncio.gather(desk.solver.engine.chat(request), desk.solver.engine.chat(request))

    one, two = asyncio.run(both())
    assert one == two and len(desk.requests) == 1


def test_another_trial_draws_another_seed_and_another_reply() -> None:
    desk = Desk()
    for trial in (0, 1):
        asyncio.run(desk.session(trial).call("chat", chat(temperature=1.0)))
    assert len({r.seed for r in desk.requests}) == 2
    assert trial_seed("a", 0) == trial_seed("a", 0) != trial_seed("a", 1)


def test_a_run_limit_stops_new_calls_but_not_recorded_ones() -> None:
    desk = Desk(limits=RunLimits(calls=1))
    asyncio.run(desk.session().call("chat", chat("first")))
    session = desk.session()
    with pytest.raises(StoppedEarly, match="1 of 1 calls"):
        asyncio.run(session.call("chat", chat("second")))
    assert isinstance(session.stopped, StoppedEarly)
    assert asyncio.run(desk.session().call("chat", chat("first"))).value == "reply 1"


class Gate:
    """An engine whose replies come when told."""

    name, digest, concurrency = "gate", "0" * 64, 8

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.open = asyncio.Event()
        self.cancelled = 0

    async def chat(self, request: ChatRequest) -> ChatReply:
        self.asked.append(request.messages[-1].content)
        try:
            await self.open.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        return ChatReply("done", "stop", 1, 1, 0.1)

    async def aclose(self) -> None:
        pass


def ask(text: str) -> ChatRequest:
    return ChatRequest((Message("user", text),), 8, 0.0)


def test_calls_in_flight_count_against_the_limit_and_are_kept_when_it_stops_the_run() -> None:
    async def run() -> None:
        gate, cache = Gate(), Cache(None)
        engine = MeteredEngine(gate, cache, Meter(RunLimits(calls=3)))
        first = [asyncio.ensure_future(engine.chat(ask(str(i)))) for i in range(3)]
        await asyncio.sleep(0)
        with pytest.raises(StoppedEarly, match="3 of 3 calls"):
            await engine.chat(ask("one too many"))
        for task in first:  # what a stopped run does with its attempts
            task.cancel()
        await asyncio.gather(*first, return_exceptions=True)
        gate.open.set()
        await engine.aclose()
        assert (len(gate.asked), gate.cancelled) == (3, 0)
        again = MeteredEngine(gate, cache, Meter(RunLimits(calls=0)))
        assert [(await again.chat(ask(str(i)))).text for i in range(3)] == ["done"] * 3

    asyncio.run(run())


def test_a_call_that_nobody_wants_any_more_is_given_up() -> None:
    async def run() -> None:
        gate = Gate()
        engine = MeteredEngine(gate, Cache(None), Meter())
        one, two = (asyncio.ensure_future(engine.chat(ask("same"))) for _ in range(2))
        await asyncio.sleep(0)
        one.cancel()
        await asyncio.gather(one, return_exceptions=True)
        assert gate.cancelled == 0  # the other caller still waits for it
        two.cancel()
        late = asyncio.ensure_future(engine.chat(ask("same")))
        await asyncio.gather(two, return_exceptions=True)
        assert (gate.asked, gate.cancelled) == (["same", "same"], 1)
        gate.open.set()
        assert (await late).text == "done"
        await engine.aclose()

    asyncio.run(run())


def test_an_engine_failure_marks_the_attempt_as_not_its_fault() -> None:
    def fail(messages: Sequence[Message], request: ChatRequest) -> str:
        raise EngineError("down")

    engine = MeteredEngine(ScriptedEngine(function=fail), Cache(None), Meter())
    session = Solver(engine, SolverSettings()).session(QUESTION, 0, wall_s=1, python=no_python, search=None)
    with pytest.raises(EngineError):
        asyncio.run(session.call("chat", chat()))
    assert isinstance(session.stopped, EngineError)


def test_the_ablation_answers_empty_text_without_a_call() -> None:
    desk = Desk(ablation="empty")
    session = desk.session()
    assert asyncio.run(session.call("chat", chat())).value == ""
    assert session.calls == 1 and not desk.requests
    assert desk.solver.digest != Desk().solver.digest


def test_python_runs_are_bounded_and_traced() -> None:
    desk = Desk()

    async def run(session: AttemptSession) -> tuple[list[str], int]:
        kinds = [
            (await session.call("python", {"code": "x", "timeout_s": 900})).kind
            for _ in range(MAX_PYTHON_RUNS + 1)
        ]
        return kinds, len(session.trace)

    kinds, traced = play(run, desk)
    assert kinds == [""] * MAX_PYTHON_RUNS + ["budget"]
    assert traced == MAX_PYTHON_RUNS


def test_search_without_a_corpus_is_a_clear_error() -> None:
    answer = asyncio.run(Desk().session().call("search", {"query": "x"}))
    assert answer.kind == "unavailable" and "no corpus" in answer.message


def test_searches_are_clamped_traced_and_cut() -> None:
    asked: list[tuple[str, int]] = []

    async def find(query: str, k: int) -> tuple[list[tuple[str, str]], float]:
        asked.append((query, k))
        return [("Lamp", "It was lit.")], 0.25

    async def search(session: AttemptSession) -> list[Answer]:
        calls = [("a\ud800" * 5000, 10**9), ("b", -3), ("c", True), (7, 5), ("d", "5")]
        return [await session.call("search", {"query": q, "k": k}) for q, k in calls]

    desk = Desk()
    session = desk.solver.session(QUESTION, 0, wall_s=60.0, python=no_python, search=find)
    answers = asyncio.run(search(session))
    assert [a.kind for a in answers] == ["", "", "", "value", "value"]
    assert [(len(q), k) for q, k in asked] == [(MAX_QUERY_CHARS, 100), (1, 1), (1, 1)]
    assert answers[0].value == [{"title": "Lamp", "text": "It was lit."}]
    # What the search says it took is billed, not the wait for it.
    assert [a.seconds for a in answers[:3]] == [0.25] * 3 and session.seconds == 0.75
    assert [(e.kind, e.reply) for e in session.trace] == [("search", "Lamp: It was lit.")] * 3


def test_searches_are_bounded_like_other_budgets() -> None:
    async def find(query: str, k: int) -> tuple[list[tuple[str, str]], float]:
        return [], 0.0

    async def search(session: AttemptSession) -> list[Answer]:
        wrong = await session.call("search", {"query": 7})
        return [wrong, *[await session.call("search", {"query": "a"}) for _ in range(MAX_SEARCHES + 9)]]

    session = Desk().solver.session(QUESTION, 0, wall_s=60.0, python=no_python, search=find)
    answers = asyncio.run(search(session))
    assert [a.kind for a in answers] == ["value", *[""] * MAX_SEARCHES, *["budget"] * 9]
    assert "budget of 64 searches is used up" in answers[-1].message
    assert answers[-2].fatal is None and answers[-1].fatal is Status.BUDGET
    assert [e.kind for e in session.trace] == ["search"] * MAX_SEARCHES


def test_a_broken_index_is_not_the_harness_s_fault() -> None:
    async def broken(query: str, k: int) -> tuple[list[tuple[str, str]], float]:
        raise HlError("the index does not fit its corpus")

    desk = Desk()
    session = desk.solver.session(QUESTION, 0, wall_s=60.0, python=no_python, search=broken)
    with pytest.raises(HlError, match="does not fit"):
        asyncio.run(session.call("search", {"query": "a", "k": 5}))
    assert session.stopped is not None


def test_the_trace_keeps_the_order_of_asking() -> None:
    async def slow_first(code: str, *, timeout_s: float) -> PythonResult:
        await asyncio.sleep(0.05 if code == "1" else 0)
        return PythonResult(code, "", 0.0)

    session = Desk().solver.session(QUESTION, 0, wall_s=1, python=slow_first, search=None)

    async def both() -> None:
        await asyncio.gather(*(session.call("python", {"code": c}) for c in "12"))

    asyncio.run(both())
    assert [e.request for e in session.trace] == ["1", "2"]


def test_what_is_left_is_told() -> None:
    desk = Desk(settings=SolverSettings(calls=3, tokens=100))

    async def ask(session: AttemptSession) -> Mapping[str, float]:
        await session.call("chat", chat())
        return (await session.call("budget", {})).value

    left = play(ask, desk)
    assert left["calls"] == 2 and left["tokens"] < 100 and left["seconds"] <= 60


def test_abridging_keeps_both_ends_and_says_how_much_went() -> None:
    text = abridge("a" * 500 + "b" * 500, 100)
    assert text.startswith("aaa") and text.endswith("bbb") and "characters cut" in text
    assert abridge("\ud800") == "?"
