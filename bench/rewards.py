"""The rewards of one GRPO update, without the model that is trained: replies go in, candidates run, rewards come out.

Everything but the solver is the real thing: edits, smoke calls, sandbox, budgets, cache on disk, grader, the one queue
of all candidates. The solver takes exactly its latency a call and serves so many at once, so the ideal is known.
"""

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.clock import descendants_s, machine_s
from bench.loop import SlowEngine, in_flight
from hl.bench.plan import BenchTask
from hl.cache import Cache
from hl.sandbox.host import Sandbox
from hl.solver import Meter, MeteredEngine
from hl.types import Outcome, Reply
from hl.workspace import Machines
from training.background import Background
from training.families import tasks_of
from training.pool import make_contexts, places, seed_blocks
from training.rewards import Judge, Judged
from training.rooms import Room, Rooms, open_repository
from training.settings import Settings, load_settings

FAMILIES = ("number_filtering", "gcd", "lcm", "count_bits", "letter_counting")
"""Five whose answers hl grades in its own process."""
LATENCY_S = 0.05
"""Of a call of the solver."""
ASKS = r'    return model(question + "\n\n" + INSTRUCTION)'
"""A line of the seed `minimal`; every reply puts other words in front of the question."""


@dataclass(frozen=True, slots=True)
class Ran:
    """The rewards of one update."""

    candidates: int
    calls: int
    """Of the solver, each paid for."""
    ideal_s: float
    """All calls, so many at a time, each exactly its latency."""
    wall_s: float
    """From the first reply to the last reward."""
    host_cpu_s: float
    """Processor time of hl's own process over that time."""
    sandbox_cpu_s: float
    """Processor time of the sandbox's processes over that time."""
    idle: float
    """Share of the machine's processor time that nobody used: where it is 0, others may have been the bound."""

    @property
    def ratio(self) -> float:
        """Wall time over the ideal."""
        return self.wall_s / self.ideal_s

    def bound(self, processors: int) -> float:
        """Calls that a solver serves at once where so many processors, and no longer the solver, are the bound."""
        return processors * LATENCY_S * self.calls / (self.host_cpu_s + self.sandbox_cpu_s)


def run(folder: Path, *, contexts: int, generations: int, questions: int, concurrency: int) -> Ran:
    """Judge contexts x generations replies, no two of them alike.

    Args:
        folder: Empty; receives the repositories.
        contexts: Seeds on blocks of their own, over all of `FAMILIES`.
        generations: Replies a context.
        questions: Of a scoring block.
        concurrency: Calls that the solver serves at once.

    Raises:
        RuntimeError: A candidate was not scored with one call an attempt, so the time means nothing.
    """
    settings = load_settings(
        None,
        [
            "solver.engine=scripted",
            "solver.model=reader",
            f"tasks.rl={list(FAMILIES)}",
            "tasks.feedback=1",
            f"tasks.scoring={questions}",
            f"grpo.contexts={contexts}",
            f"grpo.generations={generations}",
        ],
    )
    with Background() as background:
        opened = _rooms(folder, settings, tasks_of(settings.tasks, "rl"), concurrency)
        rooms = background.run(opened.__aenter__())
        try:
            return _judge(background, rooms, settings, concurrency)
        finally:
            background.run(opened.__aexit__(None, None, None))


def _judge(background: Background, rooms: Rooms, settings: Settings, concurrency: int) -> Ran:
    g = settings.grpo
    tasks = [room.task for room in rooms.by_task.values()]
    made = background.run(make_contexts(rooms, places(tasks, g), seed_blocks(g, len(tasks))))
    judge = Judge(rooms, candidate_s=g.candidate_s)
    paid = rooms.machines.meter.cost.calls
    idle_s, all_s = machine_s()
    before, started, used = descendants_s(), time.perf_counter(), time.process_time()
    # As the trainer does it: context by context, from another thread than the one that runs them.
    under_way = [
        background.start(judge.submit(context, reply(place * g.generations + i)))
        for place, context in enumerate(made)
        for i in range(g.generations)
    ]
    judged: list[Judged] = [future.result() for future in under_way]
    wall_s, host_s = time.perf_counter() - started, time.process_time() - used
    inside_s, calls = descendants_s() - before, rooms.machines.meter.cost.calls - paid
    idle_s, all_s = (now - then for now, then in zip(machine_s(), (idle_s, all_s), strict=True))
    bad = [j for j in judged if j.outcome is not Outcome.SCORED or j.calls != settings.tasks.scoring]
    if (
        bad
        or calls != len(judged) * settings.tasks.scoring
        or len({j.candidate for j in judged}) != len(judged)
    ):
        raise RuntimeError(f"{len(bad)} of {len(judged)} candidates went wrong, {calls} calls: {bad[:1]}")
    return Ran(len(judged), calls, calls * LATENCY_S / concurrency, wall_s, host_s, inside_s, idle_s / all_s)


def reply(number: int) -> Reply:
    """A reply that makes a candidate of its own."""
    text = ASKS.replace("model(", f"model('Try {number}. ' + ")
    return Reply(f"Try {number}\n\n<<<<<<< SEARCH\n{ASKS}\n=======\n{text}\n>>>>>>> REPLACE\n")


@asynccontextmanager
async def _rooms(
    folder: Path, settings: Settings, tasks: tuple[BenchTask, ...], concurrency: int
) -> AsyncGenerator[Rooms, None]:
    """As `training.rooms.open_rooms`, around the slow solver."""
    blocks = seed_blocks(settings.grpo, len(tasks))
    spaces = [open_repository(folder, settings, task, blocks) for task in tasks]
    cache, meter = Cache(folder / "cache.sqlite"), Meter()
    engine = MeteredEngine(SlowEngine(LATENCY_S, concurrency), cache, meter)
    async with Sandbox() as sandbox, Sandbox(profile="grader") as graders:
        slots = asyncio.Semaphore(in_flight(engine))
        machines = Machines(engine, sandbox, graders, cache, meter, slots)
        t = settings.tasks
        yield Rooms(
            machines,
            {
                task.name: Room(task, space, space.evaluator_on(machines), t.feedback, t.scoring)
                for task, space in zip(tasks, spaces, strict=True)
            },
        )
    cache.close()
