"""Billed time."""

import asyncio
from collections.abc import Mapping
from typing import Any

from hl.errors import EngineError
from hl.sandbox.conversation import Clock
from hl.sandbox.host import Answer, JobResult, Limits
from hl.types import Status
from tests.sandbox.kit import Box, harness

CALL = "def solve(model, question): return model('x')"


def test_clock_bills_the_childs_own_time() -> None:
    clock = Clock(10.0)
    assert clock.billed(13.0) == 3.0


def test_clock_bills_service_instead_of_waiting() -> None:
    clock = Clock(0.0)
    began = clock.begin(1.0)
    assert clock.billed(50.0) == 1.0  # waiting costs nothing
    clock.end(began, 2.0, 100.0)
    assert clock.billed(100.0) == 3.0
    assert clock.billed(101.0) == 4.0


def test_clock_bills_calls_side_by_side_once() -> None:
    clock = Clock(0.0)
    first, second = clock.begin(0.0), clock.begin(0.0)
    clock.end(first, 2.0, 5.0)
    third = clock.begin(5.0)  # a thread goes on after the first while the second is open
    clock.end(third, 2.0, 6.0)
    clock.end(second, 3.0, 9.0)
    assert clock.billed(9.0) == 4.0


def test_clock_never_runs_backwards() -> None:
    clock = Clock(0.0)
    clock.end(clock.begin(1.0), -5.0, 2.0)
    assert clock.billed(2.0) == 1.0


class Timed:
    """Answers after some time and bills another."""

    def __init__(self, wait_s: float, seconds: float) -> None:
        self._wait_s, self._seconds = wait_s, seconds

    async def call(self, op: str, args: Mapping[str, Any]) -> Answer:
        await asyncio.sleep(self._wait_s)
        return Answer("reply", seconds=self._seconds)


def test_queueing_is_not_billed(best: Box) -> None:
    result = best.solve(CALL, session=Timed(0.8, 0.01), limits=Limits(wall_s=0.5))
    assert (result.status, result.value) == (Status.OK, "reply")
    assert result.seconds < 0.5


def test_service_is_billed(best: Box) -> None:
    result = best.solve(CALL, session=Timed(0.0, 5.0), limits=Limits(wall_s=3))
    assert (result.status, result.value) == (Status.TIMEOUT, "")
    assert result.seconds >= 5.0


def test_parallel_service_is_billed_once(best: Box) -> None:
    source = "def solve(model, question): return str(len(model.sample('x', 8)))"
    result = best.solve(source, session=Timed(0.0, 5.0), limits=Limits(wall_s=20))
    assert result.value == "8"
    assert 5.0 <= result.seconds < 20.0


def test_side_by_side_beyond_one_frame(best: Box) -> None:
    """64 prompts of 30 kB need three frames, each answered before the next is sent at the latest."""
    source = (
        "def solve(model, question):\n"
        "    prompts = [f'{i} ' + 'x' * 30_000 for i in range(100)]\n"
        "    replies = model.map(prompts)\n"
        "    return str([reply[:9] for reply in replies] == [f'echo {p}'[:9] for p in prompts])\n"
    )
    assert best.solve(source).value == "True"


def test_the_clock_runs_again_after_a_call(best: Box) -> None:
    source = "def solve(model, question):\n    model('x')\n    while True: pass\n"
    result = best.solve(source, session=Timed(0.3, 0.0), limits=Limits(wall_s=0.5))
    assert result.status is Status.TIMEOUT


class Failing:
    """Raises."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    async def call(self, op: str, args: Mapping[str, Any]) -> Answer:
        raise self._error


def test_a_failed_engine_loses_the_attempt(best: Box) -> None:
    result = best.solve(CALL, session=Failing(EngineError("the server is down")))
    assert result.status is Status.LOST
    assert "the server is down" in result.error


def test_our_own_bugs_are_not_swallowed(best: Box) -> None:
    try:
        best.solve(CALL, session=Failing(ZeroDivisionError("a bug")))
    except ZeroDivisionError as error:
        assert str(error) == "a bug"
    else:
        raise AssertionError("swallowed")
    assert best.solve("def solve(model, question): return 'fine'").value == "fine"


def test_cancelling_kills_the_child_and_the_call(best: Box) -> None:
    class Waiting:
        started = asyncio.Event()
        cancelled = False

        async def call(self, op: str, args: Mapping[str, Any]) -> Answer:
            self.started.set()
            try:
                await asyncio.sleep(3600)
            except asyncio.CancelledError:
                Waiting.cancelled = True
                raise
            return Answer("")

    async def cancel() -> JobResult | None:
        session = Waiting()
        task = asyncio.ensure_future(
            best.sandbox.run(harness(CALL), "q", seed=1, session=session, limits=Limits())
        )
        await session.started.wait()
        task.cancel()
        try:
            return await task
        except asyncio.CancelledError:
            return None

    assert best.runner.run(cancel()) is None
    assert Waiting.cancelled
    assert best.solve("def solve(model, question): return 'fine'").value == "fine"
