"""A training run that needs no model: the sums of `tests/loop.py`, their scripted solver, and settings for both."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields, replace
from pathlib import Path

from hl.solver import RunLimits
from hl.types import Reply
from hl.workspace import Switches
from tests.loop import write_loop
from training.background import Background
from training.families import tasks_of
from training.pool import make_contexts, places
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


def small_run(folder: Path, model: Path, *more: str) -> Settings:
    """Settings of a GRPO run of two updates of two contexts, four replies each, on a tiny model."""
    return write_settings(
        folder,
        f"model.base={model}",
        "model.lora_rank=4",
        "model.prompt=brief",
        "model.context_tokens=2048",
        "model.reply_tokens=16",
        "grpo.contexts=4",
        "grpo.contexts_per_update=2",
        "grpo.generations=4",
        "grpo.micro_batch=4",
        "grpo.learning_rate=0.01",
        *more,
    )


def as_toml(settings: Settings) -> str:
    """The same as a file of settings."""
    tables: list[str] = []
    for section in ("model", "tasks", "data", "sft", "grpo", "log"):
        part = getattr(settings, section)
        tables.append(f"[{section}]")
        for f in fields(part):
            value = getattr(part, f.name)
            if not isinstance(value, Mapping):
                tables.append(f"{f.name} = {json.dumps(value)}")
    by_section: dict[str, list[str]] = {}
    for text in settings.hl:
        key, _, value = text.partition("=")
        section, _, name = key.partition(".")
        by_section.setdefault(section, []).append(f"{name} = {json.dumps(value)}")
    for section, lines in by_section.items():
        tables += [f"[hl.{section}]", *lines]
    return "\n".join(tables) + "\n"


def edit(search: str, replace: str, note: str = "Try this") -> Reply:
    """A reply with one block."""
    return Reply(f"{note}\n\n<<<<<<< SEARCH\n{search}\n=======\n{replace}\n>>>>>>> REPLACE\n")


@contextmanager
def judging(
    out: Path, settings: Settings, *, contexts: int = 1, limits: RunLimits | None = None
) -> Iterator[tuple[Background, Rooms, Judge, tuple]]:
    """A judge at work on real candidates, with seed contexts."""
    tasks = tasks_of(settings.tasks, "rl")
    grpo = replace(settings.grpo, contexts=contexts)
    with Background() as background:
        opened = open_rooms(out, settings, tasks, contexts, limits or RunLimits(), Switches())
        rooms = background.run(opened.__aenter__())
        try:
            made = background.run(make_contexts(rooms, places(tasks, grpo), contexts))
            judge = Judge(rooms, noop=settings.grpo.noop, candidate_s=settings.grpo.candidate_s)
            yield background, rooms, judge, made
        finally:
            background.run(opened.__aexit__(None, None, None))
