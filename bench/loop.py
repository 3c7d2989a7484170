"""The evaluate room around a scripted solver: what hl itself costs when the model costs nothing, or exactly so much.

Everything but the model is the real thing: sandbox, broker, budgets, cache on disk, grader, bounded queue.
"""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.clock import descendants_s
from hl.cache import Cache
from hl.engines.scripted import ScriptedEngine
from hl.evaluate import Evaluator, Work
from hl.sandbox.host import Limits, Sandbox
from hl.solver import Meter, MeteredEngine, Solver, SolverSettings
from hl.tasks.graders import TextGrader
from hl.tasks.text_rules import exact
from hl.types import (
    Attempt,
    ChatReply,
    ChatRequest,
    Engine,
    Gold,
    Harness,
    Question,
    QuestionSet,
    Role,
    Status,
)
from hl.workspace import _in_flight as in_flight  # pyright: ignore[reportPrivateUsage]

CONCURRENCY = 64
"""Requests that the solver serves at once."""


class SlowEngine:
    """A scripted solver whose every reply takes the same time, and that serves so many at once and no more."""

    name = "scripted, slow"
    digest = "bench"

    def __init__(self, latency_s: float, concurrency: int = CONCURRENCY) -> None:
        self._engine = ScriptedEngine.from_rules({"rules": [{"when": "", "replies": ["The answer is 42."]}]})
        self._latency_s = latency_s
        self._slots = asyncio.Semaphore(concurrency)
        self.concurrency = concurrency

    async def chat(self, request: ChatRequest) -> ChatReply:
        """Wait for a slot, then for the latency."""
        async with self._slots:
            if self._latency_s:
                await asyncio.sleep(self._latency_s)
            return await self._engine.chat(request)

    async def aclose(self) -> None:
        """Nothing to free."""


@dataclass(frozen=True, slots=True)
class Ran:
    """One run of candidates x questions x calls."""

    attempts: int
    calls: int
    wall_s: float
    host_cpu_s: float
    """Processor time of hl's own process over that wall time."""
    sandbox_cpu_s: float
    """Processor time of the sandbox's processes over that wall time."""
    memory_mb: int
    """Limit of one attempt, by which memory admits attempts."""
    tier: str


def harness(candidate: int, calls: int) -> Harness:
    """A harness that asks the model so many times, one after the other, never twice the same."""
    text = (
        "def solve(model, question):\n"
        "    reply = ''\n"
        f"    for step in range({calls}):\n"
        f"        reply = model(f'candidate {candidate}, step {{step}}: {{question}}')\n"
        "    return reply.split()[-1].strip('.')\n"
    )
    return Harness((("harness.py", text),))


def questions(count: int) -> QuestionSet:
    """Questions that are all answered by 42."""
    ids = [f"{i:016x}" for i in range(count)]
    return QuestionSet(
        Role.SCORING,
        tuple(Question(i, f"What is {n} + {42 - n}?") for n, i in enumerate(ids)),
        tuple(Gold(i, "42", "{}") for i in ids),
    )


def evaluate(folder: Path, *, candidates: int, count: int, calls: int, latency_s: float) -> Ran:
    """Run candidates x questions once, from an empty cache, and time it.

    Args:
        folder: Empty; receives the attempt cache.
        candidates: How many harnesses.
        count: Questions.
        calls: Model calls an attempt makes.
        latency_s: Of each call.

    Raises:
        RuntimeError: An attempt did not end well, so the time means nothing.
    """
    works = [Work(harness(c, calls), questions(count)) for c in range(candidates)]
    ran, attempts = asyncio.run(run(folder, SlowEngine(latency_s), works))
    bad = [a for a in attempts if a.grade.strict != 1.0 or a.calls != calls]
    if bad:
        raise RuntimeError(f"{len(bad)} of {len(attempts)} attempts went wrong: {bad[:1]}")
    return ran


async def run(
    folder: Path, engine: Engine, works: Sequence[Work], settings: SolverSettings | None = None
) -> tuple[Ran, Sequence[Attempt]]:
    """Run works through the evaluate room and time it; the sandbox is started before.

    Args:
        folder: Empty; receives the attempt cache.
        engine: Left open.
        works: What to run.
        settings: Of the solver.

    Raises:
        RuntimeError: An attempt did not end in an answer, so the time means nothing.
    """
    limits = Limits()
    cache, meter = Cache(folder / "cache.sqlite"), Meter()
    async with Sandbox() as sandbox:
        evaluator = Evaluator(
            sandbox=sandbox,
            solver=Solver(MeteredEngine(engine, cache, meter), settings or SolverSettings()),
            grader=TextGrader(exact),
            cache=cache,
            meter=meter,
            limits=limits,
            concurrency=in_flight(engine),
        )
        before, started, used = descendants_s(), time.perf_counter(), time.process_time()
        attempts = [a for row in await evaluator.run(works) for a in row]
        wall_s, host_s = time.perf_counter() - started, time.process_time() - used
        inside_s, tier = descendants_s() - before, sandbox.tier
    cache.close()
    bad = [a for a in attempts if a.status is not Status.OK]
    if bad or len(attempts) != sum(len(w.block.questions) for w in works):
        raise RuntimeError(f"{len(bad)} of {len(attempts)} attempts failed: {bad[:1]}")
    calls = sum(a.calls for a in attempts)
    return Ran(len(attempts), calls, wall_s, host_s, inside_s, limits.memory_mb, tier), attempts
