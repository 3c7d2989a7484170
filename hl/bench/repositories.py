"""The repositories of a bench run: question sets once a task, and one ordinary hl repository a cell.

A cell's `hl.toml` says what `hl init` would have written, for the verbs that are used in it; the run itself takes every
value from its plan, so that no file in a run directory decides about a model, an address, a path, a budget or a grade.
"""

import shutil
from collections.abc import Callable, Container, Iterable
from dataclasses import replace
from functools import partial
from pathlib import Path

from hl.bench.plan import BenchTask, CellPlan, Plan, cells
from hl.bench.rows import CHAIN, INDEPENDENT, SINGLE
from hl.bench.watch import Watch
from hl.config import load_config
from hl.errors import HlError, RepositoryError
from hl.new import create, load_seed, pool_sizes
from hl.tasks.base import Generated, Task, open_task
from hl.tasks.questions import Manifest, load_sets, write_sets
from hl.types import QuestionSets, Role
from hl.workspace import Workspace

Questions = tuple[Manifest, QuestionSets]
"""A task's question sets, and what is known of them."""

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


def plan_questions(plan: Plan, task: BenchTask) -> tuple[Task, dict[Role, int]]:
    """A task, and how many questions of each role a run takes of it; no question is read.

    Raises:
        UsageError: The task is wrong.
    """
    config = load_config(None, [*plan.overrides, *_sizes(plan), f"task.name={task.name}"])
    opened = open_task(task.name)
    return opened, pool_sizes(config, opened)[0]


def make_questions(
    plan: Plan, task: BenchTask, on_progress: Callable[[int, int], None] | None = None
) -> tuple[Task, Generated]:
    """A task's sets, with feedback and scoring blocks for every context or round; nothing is written.

    Raises:
        UsageError: The task is wrong.
        HlError: It has too few questions.
    """
    opened, sizes = plan_questions(plan, task)
    generated = opened.generate(sizes, on_progress)
    for role, wanted in sizes.items():
        if not generated.sets.of(role).questions:
            raise HlError(f"{task.name}: no question is left for the {role.value} set of {wanted}.")
    return opened, generated


def store_questions(run: Path, task: BenchTask, made: tuple[Task, Generated]) -> Questions:
    """Write a task's sets."""
    opened, generated = made
    place = run / QUESTIONS / task.slug
    return write_sets(place, generated, opened.spec, opened.identity_family), generated.sets


def load_questions(run: Path, plan: Plan) -> dict[str, Questions]:
    """Task -> its sets, as they lie in the run.

    Raises:
        RepositoryError: They are damaged.
    """
    return {task.name: load_sets(run / QUESTIONS / task.slug) for task in plan.tasks}


def cell_sets(sets: QuestionSets, plan: Plan, cell: CellPlan) -> QuestionSets:
    """A cell's share of its task's sets: a context has blocks of its own, and the evaluation set is everybody's."""
    if cell.protocol != SINGLE:
        return sets
    at, s = cell.block - 1, plan.settings
    return replace(
        sets,
        feedback=sets.feedback.block(at, s.feedback),
        scoring=sets.scoring.block(at, s.scoring),
    )


def digests(sets: QuestionSets) -> dict[str, str]:
    """Role -> digest of its questions."""
    return {role.value: sets.of(role).digest for role in Role}


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


def check_corpora(run: Path, plan: Plan, finished: Container[str]) -> None:
    """See that what unfinished cells search is what their questions were made with; nothing is indexed.

    Raises:
        UsageError: A corpus cannot be read.
        RepositoryError: It is another.
    """
    for task in dict.fromkeys(c.task for c in cells(plan) if c.name not in finished):
        if task.name.startswith("qa:"):
            from hl.tasks.qa import corpus_path

            questions = run / QUESTIONS / task.slug
            corpus_path(task.name, load_sets(questions)[0].files, questions)


def open_cell(run: Path, plan: Plan, cell: CellPlan) -> Workspace:
    """The cell's repository, made if it is not there or was left half made.

    Its `hl.toml` is not read: a run directory may come from elsewhere, and everything follows from the plan.

    Raises:
        RepositoryError: The questions of run or cell are damaged, or the cell is another run's.
    """
    from hl.ledger import Ledger

    place = run / CELLS / cell.name
    seed = load_seed(plan.settings.seed)
    manifest, sets = load_sets(run / QUESTIONS / cell.task.slug)
    own = cell_sets(sets, plan, cell)
    if not _complete(place):
        shutil.rmtree(place, ignore_errors=True)
        generated = Generated(
            own, manifest.distinct, manifest.drawn, manifest.exhausted, manifest.note, manifest.files
        )
        create(
            place,
            cell.task.name,
            seed=plan.settings.seed,
            overrides=overrides(plan, cell),
            generated=generated,
            branch=_branch(cell),
        )
    files = ",".join(name for name, _ in seed.files)
    explicit = (*overrides(plan, cell), f"task.name={cell.task.name}", f"harness.files={files}")
    workspace = Workspace(Ledger.open(place), load_config(None, explicit))
    if digests(workspace.sets) != digests(own):
        raise RepositoryError(f"{place} holds other questions than its run.", hint=f"rm -r {place}")
    if workspace.read(first_commit(workspace)).harness.digest != seed.digest:
        raise RepositoryError(f"{place} starts from another harness than its run.", hint=f"rm -r {place}")
    return workspace


def first_commit(workspace: Workspace) -> str:
    """The seed's commit: the parent of the first round, or the head while there is none."""
    ledger = workspace.ledger
    return ledger.round(ledger.require_lineage(), 1).parent if ledger.next_round() > 1 else "HEAD"


def check_cells(run: Path, plan: Plan, finished: Container[str]) -> None:
    """See that every cell that a run will open again is its own.

    Raises:
        RepositoryError: One is not.
    """
    for cell in cells(plan):
        if cell.name not in finished and _complete(run / CELLS / cell.name):
            open_cell(run, plan, cell)


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


def shortages(run: Path, plan: Plan) -> list[str]:
    """One sentence for each task that has fewer questions than asked for."""
    found: list[str] = []
    for task in plan.tasks:
        manifest, _ = load_sets(run / QUESTIONS / task.slug)
        if manifest.exhausted:
            found.append(f"{task.name}: {manifest.note}")
    return found
