"""Families -> contexts, in the order in which training meets them: a materialised schedule, so that resuming is exact.

Promises: the same settings give the same contexts; killed at any instant, no finished attempt is run again. It does
not train and does not judge.
"""

import math
import random
from collections import Counter
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from hl.bench.plan import BenchTask
from training.background import together
from training.chains import Reached
from training.contexts import Context
from training.rooms import Rooms
from training.settings import GrpoSettings

Place = tuple[BenchTask, int]
"""A task and the number of a block: the seed stands there."""


def seed_blocks(settings: GrpoSettings, tasks: int) -> int:
    """Blocks a task on which its seed stands, where contexts are shared out evenly."""
    return math.ceil(settings.contexts / tasks)


def blocks_needed(settings: GrpoSettings, tasks: int) -> int:
    """Blocks a task in all: in multi-step training, reached states stand on blocks of their own."""
    return seed_blocks(settings, tasks) * (2 if settings.mode == "multi" else 1)


def places(tasks: Sequence[BenchTask], settings: GrpoSettings) -> tuple[Place, ...]:
    """Where seeds stand: every family once before any is met again, in an order drawn anew each time."""
    draw = random.Random(f"schedule {settings.seed}")
    found: list[Place] = []
    for block in range(seed_blocks(settings, len(tasks))):
        found += [(task, block) for task in draw.sample(list(tasks), len(tasks))]
    return tuple(found[: settings.contexts])


def mix(seeds: Sequence[Place], states: Sequence[Reached]) -> tuple[Place | Reached, ...]:
    """A phase of seeds and reached states in turns (ours); seeds where there are too few states.

    Args:
        seeds: As many as the phase has contexts.
        states: In the order in which they were reached; the latest are taken.
    """
    latest = list(states[-(len(seeds) // 2) :]) if len(seeds) > 1 else []
    return tuple(latest.pop() if place % 2 and latest else seed for place, seed in enumerate(seeds))


async def make_contexts(
    rooms: Rooms,
    parents: Sequence[Place | Reached],
    spare: int,
    on_context: Callable[[int], None] = lambda done: None,
) -> tuple[Context, ...]:
    """Measure parents, all in one queue.

    Args:
        rooms: Where they are measured.
        parents: Seeds at their places, and states that chains reached.
        spare: The first block for states; a task's states stand on blocks that follow one another.
        on_context: Told how many are done.

    Raises:
        StoppedEarly: A run limit was reached; what was measured is kept.
        EngineError: The solver stays down; likewise.
    """
    done = 0

    async def counted(work: Coroutine[Any, Any, Context]) -> Context:
        nonlocal done
        made = await work
        done += 1
        on_context(done)
        return made

    seeds = {name: room.seed for name, room in rooms.by_task.items()}
    met: Counter[str] = Counter()
    work: list[Coroutine[Any, Any, Context]] = []
    for parent in parents:
        if isinstance(parent, Reached):
            room = rooms.by_task[parent.task]
            at = spare + met[parent.task]
            met[parent.task] += 1
            work.append(room.context(parent.harness, at, number=parent.round, history=parent.history))
        else:
            task, block = parent
            work.append(rooms.by_task[task.name].context(seeds[task.name], block))
    return await together([counted(one) for one in work])
