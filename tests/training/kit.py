"""A training run that needs no model: the sums of `tests/loop.py`, their scripted solver, and settings for both."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hl.solver import Meter, RunLimits
from hl.types import Reply
from hl.workspace import Switches
from tests.loop import write_loop
from training.background import Background
from training.families import tasks_of
from training.pool import places, seed_contexts
from training.rewards import Judge
from training.rooms import Rooms, open_rooms
from training.settings import Settings, load_settings

ROWS = 4
"""Questions of a scoring block."""


def write_settings(folder: Path, *more: str, delay_s: float = 0.0) -> Settings:
    """Questions, seed and solver script in a folder, and the settings of a run on them."""
    options = write_loop(folder, delay_s=delay_s)[1::2]
    solver = [text for text in options if text.startswith("solver.")]
    return load_settings(
        None,
        [
            *solver,
            f"tasks.rl=['jsonl:{folder / 'sums.jsonl'}?grader=number']",
            f"tasks.seed={folder / 'seed.py'}",
            "tasks.feedback=2",
            f"tasks.scoring={ROWS}",
            *more,
        ],
    )


def edit(search: str, replace: str, note: str = "Try this") -> Reply:
    """A reply with one block."""
    return Reply(f"{note}\n\n<<<<<<< SEARCH\n{search}\n=======\n{replace}\n>>>>>>> REPLACE\n")


@contextmanager
def judging(
    out: Path, settings: Settings, *, contexts: int = 1, limits: RunLimits | None = None
) -> Iterator[tuple[Background, Rooms, Judge, tuple]]:
    """A judge at work on real candidates, with seed contexts."""
    tasks = tasks_of(settings.tasks, "rl")
    with Background() as background:
        opened = open_rooms(out, settings, tasks, contexts, Meter(limits), Switches())
        rooms = background.run(opened.__aenter__())
        try:
            made = background.run(seed_contexts(rooms, places(tasks, contexts, 0)))
            judge = Judge(rooms, noop=settings.grpo.noop, candidate_s=settings.grpo.candidate_s)
            yield background, rooms, judge, made
        finally:
            background.run(opened.__aexit__(None, None, None))
