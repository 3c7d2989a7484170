"""The repositories of a bench run: question sets once a task, and one ordinary hl repository a cell.

A cell's `hl.toml` says what `hl init` would have written; a run opens it with every value on the command line's level,
so that no file in a run directory names a model, an address, a credential or a path.
"""

import shutil
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

from hl.bench.plan import BenchTask, CellPlan, Plan
from hl.bench.rows import CHAIN, INDEPENDENT, SINGLE
from hl.bench.watch import Watch
from hl.config import load_config
from hl.errors import HlError, RepositoryError
from hl.new import create, pool_sizes
from hl.tasks.base import Generated, open_task, prepare
from hl.tasks.questions import Manifest, load_sets, write_sets
from hl.types import QuestionSets
from hl.workspace import Workspace

CELLS = "cells"
QUESTIONS = "questions"


def overrides(plan: Plan, cell: CellPlan) -> tuple[str, ...]:
    """Everything that decides a cell, as `key=value` texts."""
    s = plan.settings
    k = s.independent if cell.protocol == INDEPENDENT else s.proposals
    return (
        *plan.overrides,
        *cell.solver.overrides,
        *cell.proposer.overrides,
        *_sizes(plan),
        f"round.proposals={k}",
        f"round.select={s.select}",
        "round.confirm=false",
        "round.repair=0",
    )


def _sizes(plan: Plan) -> tuple[str, ...]:
    s = plan.settings
    return (
        f"round.feedback={s.feedback}",
        f"round.scoring={s.scoring}",
        # Nothing is confirmed; a set has at least one question.
        "round.confirmation=1",
        f"round.evaluation={s.evaluation}",
        f"round.pool_rounds={s.rounds or s.contexts}",
    )


def make_questions(
    plan: Plan,
    task: BenchTask,
    on_progress: Callable[[int, int], None] | None = None,
    on_index: Callable[[int, int], None] | None = None,
) -> tuple[Generated, Manifest]:
    """A task's sets, with feedback and scoring blocks for every context or round; nothing is written.

    Raises:
        UsageError: The task is wrong.
        HlError: It has too few questions.
    """
    opened = open_task(task.name)
    prepare(task.name, on_index)
    config = load_config(None, [*plan.overrides, *_sizes(plan), f"task.name={task.name}"])
    sizes, _ = pool_sizes(config, opened)
    generated = opened.generate(sizes, on_progress)
    for role, wanted in sizes.items():
        if not generated.sets.of(role).questions:
            raise HlError(f"{task.name}: no question is left for the {role.value} set of {wanted}.")
    empty = Manifest(opened.spec, opened.identity_family, 0, 0, False, "", {}, {})
    return generated, empty


def store_questions(run: Path, task: BenchTask, made: tuple[Generated, Manifest]) -> Mapping[str, str]:
    """Write a task's sets; returns file -> sha256."""
    generated, manifest = made
    return write_sets(run / QUESTIONS / task.slug, generated, manifest.spec, manifest.family).hashes


def index_corpora(run: Path, tasks: Iterable[BenchTask], watch: Watch) -> None:
    """Index the corpora of tasks before their cells, which find the indexes by content.

    Raises:
        RepositoryError: A corpus is missing, or not the one that the questions were made with.
    """
    for task in tasks:
        if task.name.startswith("qa:"):
            from hl.tasks.qa import task_corpus

            questions = run / QUESTIONS / task.slug
            manifest, _ = load_sets(questions)
            task_corpus(task.name, manifest.files, questions, partial(watch.index, task.name))


def open_cell(run: Path, plan: Plan, cell: CellPlan) -> Workspace:
    """The cell's repository, made if it is not there or was left half made.

    Raises:
        RepositoryError: The run's questions are damaged.
    """
    place = run / CELLS / cell.name
    chosen = overrides(plan, cell)
    manifest, sets = load_sets(run / QUESTIONS / cell.task.slug)
    if not _complete(place):
        shutil.rmtree(place, ignore_errors=True)
        own = _share(sets, plan, cell) if cell.protocol == SINGLE else sets
        generated = Generated(
            own, manifest.distinct, manifest.drawn, manifest.exhausted, manifest.note, manifest.files
        )
        made = create(
            place,
            cell.task.name,
            seed=plan.settings.seed,
            overrides=chosen,
            generated=generated,
            branch=_branch(cell),
        )
        return Workspace.open(made.workspace.root, [*chosen, f"task.name={cell.task.name}"])
    return Workspace.open(place, [*chosen, f"task.name={cell.task.name}"])


def _branch(cell: CellPlan) -> str:
    """A lineage of its own for each context and chain: which blocks a chain meets in which order depends on it."""
    return f"chain-{cell.block}" if cell.protocol == CHAIN else f"context-{cell.block}"


def _complete(place: Path) -> bool:
    """Whether `create` came to its first commit here."""
    from hl.ledger import Ledger

    if not (place / ".git").exists():
        return False
    try:
        return Ledger.open(place).head is not None and (place / "hl.toml").is_file()
    except RepositoryError:
        return False


def _share(sets: QuestionSets, plan: Plan, cell: CellPlan) -> QuestionSets:
    """The feedback and scoring block of one context; the evaluation set is everybody's."""
    at, s = cell.block - 1, plan.settings
    return replace(
        sets,
        feedback=sets.feedback.block(at, s.feedback),
        scoring=sets.scoring.block(at, s.scoring),
    )


def shortages(run: Path, plan: Plan) -> list[str]:
    """One sentence for each task that has fewer questions than asked for."""
    found: list[str] = []
    for task in plan.tasks:
        manifest, _ = load_sets(run / QUESTIONS / task.slug)
        if manifest.exhausted:
            found.append(f"{task.name}: {manifest.note}")
    return found
