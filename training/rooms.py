"""Where candidates are run while a proposer is trained: one ordinary hl repository a task, one solver for all.

A training run's directory holds `tasks/<slug>/`, made as `hl init` makes a repository, with enough questions for the
wanted number of blocks; `hl log` and `hl eval` work there. All tasks share solver, sandbox, cache, meter and one bound
on the attempts under way. It measures; what a measurement is worth is decided in `rewards.py`.
"""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from hl.bench.plan import BenchTask
from hl.cache import Cache
from hl.errors import RepositoryError
from hl.evaluate import Evaluator, Work
from hl.new import create
from hl.report import build_report
from hl.solver import Meter, RunLimits
from hl.types import Harness, HistoryEntry, QuestionSet
from hl.workspace import Machines, Switches, Workspace
from training.contexts import Context
from training.settings import Settings

TASKS = "tasks"
CACHE = "cache.sqlite"


def overrides(settings: Settings, blocks: int) -> tuple[str, ...]:
    """Everything that decides a task's repository, as `key=value` texts.

    Args:
        settings: Of the run; its `hl` texts come first, and cannot change what training needs.
        blocks: How many feedback and scoring blocks there are questions for.
    """
    t = settings.tasks
    return (
        *(_absolute(text) for text in settings.hl),
        f"task.grade={t.grade}",
        f"round.proposals={settings.grpo.generations}",
        f"round.feedback={t.feedback}",
        f"round.scoring={t.scoring}",
        # Nothing is confirmed and nothing held out here; a set has at least one question.
        "round.confirmation=1",
        "round.evaluation=1",
        f"round.pool_rounds={blocks}",
        "round.select=improve",
        "round.confirm=false",
        "round.repair=0",
    )


def _absolute(text: str) -> str:
    """A path in the user's settings is relative to where the user is, not to a repository of the run."""
    key, _, value = text.partition("=")
    return f"{key}={Path(value).absolute()}" if key.endswith(".path") and value else text


def open_repository(out: Path, settings: Settings, task: BenchTask, blocks: int) -> Workspace:
    """The task's repository, made if it is not there.

    Raises:
        UsageError: Task, seed or configuration is wrong.
        RepositoryError: The directory holds something else.
    """
    place = out / TASKS / task.slug
    chosen = overrides(settings, blocks)
    if not (place / "hl.toml").exists():
        create(place, task.name, seed=settings.tasks.seed, overrides=chosen)
    return Workspace.open(place, [*chosen, f"task.name={task.name}"])


@dataclass(frozen=True, slots=True)
class Room:
    """One task, ready to measure."""

    task: BenchTask
    workspace: Workspace
    evaluator: Evaluator
    feedback: int
    """Questions of a feedback block."""
    scoring: int
    """Questions of a scoring block."""

    @property
    def trials(self) -> int:
        """Attempts a scoring question."""
        return self.workspace.config.solver.trials

    @property
    def seed(self) -> Harness:
        """The harness that the repository was made with."""
        return self.workspace.read("HEAD").harness

    def block(self, context: Context) -> QuestionSet:
        """The scoring questions that a context's parent met.

        Raises:
            RepositoryError: They are not in this repository.
        """
        found = self.workspace.sets.scoring.block(context.block, self.scoring)
        if found.digest != context.scoring:
            raise RepositoryError(
                f"{self.workspace.root} does not hold the scoring questions of context {context.id}.",
                hint="choose another --out",
            )
        return found

    def work(self, context: Context, harness: Harness) -> Work:
        """A harness on the scoring questions of a context: the same trials for all of them."""
        return Work(harness, self.block(context), trials=self.trials)

    async def context(
        self,
        harness: Harness,
        block: int,
        *,
        number: int = 1,
        history: Sequence[HistoryEntry] = (),
    ) -> Context:
        """Measure a parent on a block of its own.

        Args:
            harness: The parent.
            block: Which feedback and scoring block.
            number: Rounds between the seed and this parent, plus one.
            history: Earlier edits of the chain that led to it.

        Raises:
            StoppedEarly: A run limit was reached.
            EngineError: The solver stays down.
        """
        sets, evaluator = self.workspace.sets, self.evaluator
        shown = sets.feedback.block(block, self.feedback)
        chosen = sets.scoring.block(block, self.scoring)
        works = [Work(harness, shown), Work(harness, chosen, trials=self.trials)]
        feedback, scoring = await evaluator.run(works)
        report = build_report(
            self.workspace.spec,
            evaluator.measure(works[0], feedback),
            feedback,
            shown,
            history,
            show_gold=self.workspace.config.report.gold,
        )
        return Context(
            task=self.task.name,
            family=self.task.family,
            cluster=self.task.cluster,
            role=self.task.role,
            harness=harness,
            report=report,
            round=number,
            block=block,
            feedback=shown.digest,
            scoring=chosen.digest,
            parent=evaluator.measure(works[1], scoring).score,
        )


@dataclass(frozen=True, slots=True)
class Rooms:
    """All tasks of a run over the same machines."""

    machines: Machines
    by_task: Mapping[str, Room]
    """By the task's name."""

    def of(self, context: Context) -> Room:
        """The room of a context's task.

        Raises:
            RepositoryError: The run has no such task.
        """
        if context.task not in self.by_task:
            raise RepositoryError(f"the run has no task {context.task}.", hint="hl train --help")
        return self.by_task[context.task]


@asynccontextmanager
async def open_rooms(
    out: Path,
    settings: Settings,
    tasks: Sequence[BenchTask],
    blocks: int,
    limits: RunLimits,
    switches: Switches,
) -> AsyncGenerator[Rooms, None]:
    """Solver and sandbox, running, with a room for each task.

    Args:
        out: The run's directory.
        settings: Of the run.
        tasks: At least one.
        blocks: Blocks a task.
        limits: What the whole run may spend, what its interrupted parts spent included.
        switches: What only the command line may say.

    Raises:
        SandboxError: No sandbox holds here.
        EngineError: The solver cannot be opened.
    """
    workspaces = [open_repository(out, settings, task, blocks) for task in tasks]
    with ExitStack() as stack:
        cache = Cache(out / CACHE)
        stack.callback(cache.close)
        meter = Meter(limits, cache.paid())
        async with workspaces[0].machines(cache, meter, switches) as machines:
            rooms = {
                task.name: Room(
                    task,
                    workspace,
                    workspace.evaluator_on(machines, switches),
                    settings.tasks.feedback,
                    settings.tasks.scoring,
                )
                for task, workspace in zip(tasks, workspaces, strict=True)
            }
            yield Rooms(machines, rooms)
