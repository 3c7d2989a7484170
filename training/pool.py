"""Families -> contexts, in the order in which training meets them: a materialised schedule, so that resuming is exact.

Promises: the same settings give the same contexts; killed at any instant, no finished attempt is run again. It does
not train and does not judge.
"""

import asyncio
import math
import random
from collections.abc import Callable, Sequence

from hl.bench.plan import BenchTask
from hl.evaluate import first_error
from training.contexts import Context
from training.rooms import Rooms

Place = tuple[BenchTask, int]
"""A task and the number of a block."""


def blocks_needed(contexts: int, tasks: int) -> int:
    """Blocks a task, where contexts are shared out evenly."""
    return math.ceil(contexts / tasks)


def places(tasks: Sequence[BenchTask], contexts: int, seed: int) -> tuple[Place, ...]:
    """Where each seed context stands: every family once before any is met again, in an order drawn anew each time.

    Args:
        tasks: Of the run.
        contexts: How many.
        seed: Of the order.
    """
    draw = random.Random(f"schedule {seed}")
    found: list[Place] = []
    for block in range(blocks_needed(contexts, len(tasks))):
        found += [(task, block) for task in draw.sample(list(tasks), len(tasks))]
    return tuple(found[:contexts])


async def seed_contexts(
    rooms: Rooms, wanted: Sequence[Place], on_context: Callable[[int], None] = lambda done: None
) -> tuple[Context, ...]:
    """The seed harness at each place, all measured in one queue.

    Args:
        rooms: Where they are measured.
        wanted: The places.
        on_context: Told how many are done.

    Raises:
        StoppedEarly: A run limit was reached; what was measured is kept.
        EngineError: The solver stays down; likewise.
    """
    done = 0

    async def one(task: BenchTask, block: int) -> Context:
        nonlocal done
        room = rooms.by_task[task.name]
        made = await room.context(seeds[task.name], block, slots=rooms.slots)
        done += 1
        on_context(done)
        return made

    seeds = {task.name: rooms.by_task[task.name].seed for task, _ in wanted}
    try:
        async with asyncio.TaskGroup() as group:
            made = [group.create_task(one(task, block)) for task, block in wanted]
    except BaseExceptionGroup as failures:
        raise first_error(failures) from None
    return tuple(task.result() for task in made)
