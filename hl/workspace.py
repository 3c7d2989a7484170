"""An hl repository opened for work: configuration, ledger, questions, and the rooms built from them.

Commands and the Python API come in here; everything below takes its parts as arguments. `Workspace.open` is cheap and
reads no questions; `rooms` starts the sandbox and opens the engines, and closes them again. It prints nothing.
"""

import asyncio
import hashlib
from collections.abc import AsyncGenerator, Generator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING

from hl.cache import Cache
from hl.config import Config, load_config
from hl.config.sections import ModelConfig
from hl.errors import HlError
from hl.evaluate import Evaluator
from hl.ledger import Ledger
from hl.rounds import Rooms, RoundSettings
from hl.rules import limits, open_model, solver_settings, task_digest
from hl.sandbox.host import Limits
from hl.solver import Meter, MeteredEngine, Search, Solver
from hl.types import (
    Engine,
    Harness,
    HistoryEntry,
    Proposer,
    Question,
    QuestionSets,
    Revision,
    Round,
    Status,
    TaskSpec,
    TraceEvent,
)

if TYPE_CHECKING:
    from hl.records import Records
    from hl.sandbox.host import Sandbox
    from hl.tasks.base import Progress
    from hl.tasks.questions import Manifest

QUESTIONS = "questions"
"""Folder of the materialised question sets, tracked."""


@dataclass(frozen=True, slots=True)
class Switches:
    """What only the command line may say."""

    unsafe: bool = False
    """`--unsafe-no-sandbox`: recorded with every score."""
    ablation: str = ""
    """`empty`: the solver answers with empty text."""


class Workspace:
    """One repository, one configuration, one command.

    Args:
        ledger: The repository.
        config: Resolved for it.
    """

    def __init__(self, ledger: Ledger, config: Config) -> None:
        self.ledger = ledger
        self.config = config
        self.root: Path = ledger.root

    @classmethod
    def open(
        cls, directory: Path, overrides: Sequence[str] = (), *, profile: str | None = None
    ) -> "Workspace":
        """Open the repository that holds `directory`.

        Raises:
            RepositoryError: There is none, or it needs `hl config trust`.
            UsageError: Its configuration is wrong.
        """
        ledger = Ledger.open(directory)
        return cls(ledger, load_config(ledger.root, overrides, profile=profile))

    @cached_property
    def sets(self) -> QuestionSets:
        """The question sets of the current checkout.

        Raises:
            HlError: They are missing or changed.
        """
        return self._loaded[1]

    @cached_property
    def spec(self) -> TaskSpec:
        """The task as it was when its questions were made."""
        return self._loaded[0].spec

    @cached_property
    def _loaded(self) -> "tuple[Manifest, QuestionSets]":
        from hl.tasks.questions import load_sets

        return load_sets(self.root / QUESTIONS)

    def read(self, rev: str = "HEAD") -> Revision:
        """The harness at a revision, by the files that the current `hl.toml` lists.

        Raises:
            RepositoryError: Unknown revision, or one without these files.
        """
        harness = self.config.harness
        return self.ledger.read(rev, files=harness.files, entry=harness.entry)

    def book(self) -> "LineageBook":
        """The ledger as a chain of rounds sees it."""
        return LineageBook(self)

    @cached_property
    def records(self) -> "Records":
        """Bulk records: transcripts, replies, reports."""
        from hl.records import Records

        return Records(self.ledger.common_dir / "hl" / "records")

    @contextmanager
    def cache(self) -> Generator[Cache, None, None]:
        """The attempt cache, closed at the end."""
        cache = Cache(self.ledger.common_dir / "hl" / "cache.sqlite")
        try:
            yield cache
        finally:
            cache.close()

    def round_settings(self) -> RoundSettings:
        """The `[round]` section, as rounds take it."""
        r = self.config.round
        return RoundSettings(
            r.proposals,
            r.feedback,
            r.scoring,
            r.confirmation,
            r.select,
            r.confirm,
            r.repair,
            self.config.report.gold,
            self.config.solver.trials,
        )

    def search(self, on_index: "Progress | None" = None) -> Search | None:
        """The task's retrieval, or None where it has none; the first time here the corpus is indexed.

        Args:
            on_index: Told how far that is, in thousandths.

        Raises:
            HlError: The corpus is missing, changed or damaged.
        """
        if not self.config.task.name.startswith("qa:"):
            return None
        from hl.tasks.qa import task_corpus

        files = self._loaded[0].files
        return task_corpus(self.config.task.name, files, self.root / QUESTIONS, on_index).search

    @asynccontextmanager
    async def evaluator(
        self, cache: Cache, meter: Meter, switches: Switches = Switches()
    ) -> AsyncGenerator[Evaluator, None]:
        """Sandbox, solver and grader, running.

        Raises:
            SandboxError: No sandbox holds here.
            EngineError: The solver cannot be opened.
        """
        async with self.machines(cache, meter, switches) as machines:
            yield self.evaluator_on(machines, switches)

    @asynccontextmanager
    async def machines(
        self, cache: Cache, meter: Meter, switches: Switches = Switches()
    ) -> AsyncGenerator["Machines", None]:
        """What runs, for this repository's evaluator or for those of several with one solver.

        Raises:
            SandboxError: No sandbox holds here.
            EngineError: The solver cannot be opened.
        """
        from hl.sandbox.host import Sandbox

        async with AsyncExitStack() as stack:
            engine = await _enter_engine(stack, self.config.solver, self.root, cache, meter)
            sandbox = await stack.enter_async_context(Sandbox(unsafe=switches.unsafe))
            graders = await stack.enter_async_context(Sandbox(profile="grader", unsafe=switches.unsafe))
            slots = asyncio.Semaphore(_in_flight(engine))
            yield Machines(engine, sandbox, graders, cache, meter, slots)

    def evaluator_on(self, machines: "Machines", switches: Switches = Switches()) -> Evaluator:
        """This repository's evaluator on machines that run already."""
        from hl.tasks.base import GRADE_CPU_S, GRADE_MEMORY_MB, GRADE_WALL_S, open_grader, selected_grade

        manifest = self._loaded[0]
        bounds = Limits(wall_s=GRADE_WALL_S, cpu_s=GRADE_CPU_S, memory_mb=GRADE_MEMORY_MB)
        return Evaluator(
            sandbox=machines.sandbox,
            solver=Solver(machines.engine, solver_settings(self.config), ablation=switches.ablation),
            grader=open_grader(self.spec, manifest.files, partial(machines.graders.function, limits=bounds)),
            cache=machines.cache,
            meter=machines.meter,
            limits=limits(self.config),
            mode=selected_grade(self.config.task.name, self.config.task.grade),
            task_digest=task_digest(manifest),
            concurrency=_in_flight(machines.engine),
            require_model_call=self.config.attempt.require_model_call,
            search=self.search(),
            slots=machines.slots,
        )

    async def answer(self, harness: Harness, question: str, switches: Switches = Switches()) -> "Answered":
        """Run a harness on one question; replies come from the cache where they can.

        Raises:
            SandboxError: No sandbox holds here.
            EngineError: The solver failed.
        """
        from hl.sandbox.host import Sandbox

        async with AsyncExitStack() as stack:
            search = self.search()
            cache = stack.enter_context(self.cache())
            engine = await _enter_engine(stack, self.config.solver, self.root, cache, Meter())
            sandbox = await stack.enter_async_context(Sandbox(unsafe=switches.unsafe, zygotes=1))
            solver = Solver(engine, solver_settings(self.config), ablation=switches.ablation)
            asked = Question(question_id(question), question)
            bounds = limits(self.config)
            session = solver.session(asked, 0, wall_s=bounds.wall_s, python=sandbox.python, search=search)
            result = await sandbox.run(harness, question, seed=session.seed, session=session, limits=bounds)
            if session.stopped is not None:
                raise session.stopped
            tokens = session.prompt_tokens + session.completion_tokens
            answer = result.value if result.status is Status.OK else ""
            return Answered(result.status, answer, result.error, session.calls, tokens, session.trace)

    @asynccontextmanager
    async def rooms(
        self, cache: Cache, meter: Meter, switches: Switches = Switches()
    ) -> AsyncGenerator[Rooms, None]:
        """Everything a round needs.

        Raises:
            SandboxError: No sandbox holds here.
            EngineError: Solver or proposer cannot be opened.
        """
        async with AsyncExitStack() as stack:
            evaluator = await stack.enter_async_context(self.evaluator(cache, meter, switches))
            proposer = await self._proposer(stack, cache, meter)
            yield Rooms(
                task=self.spec,
                sets=self.sets,
                evaluator=evaluator,
                proposer=proposer,
                meter=meter,
                settings=self.round_settings(),
            )

    async def _proposer(self, stack: AsyncExitStack, cache: Cache, meter: Meter) -> Proposer:
        p = self.config.proposer
        if p.engine == "catalog":
            from hl.proposer.catalog import CatalogProposer

            return CatalogProposer(p.max_tokens)
        from hl.proposer.llm import LlmProposer

        engine = await _enter_engine(stack, p, self.root, cache, meter)
        return LlmProposer(
            engine,
            temperature=p.temperature,
            max_tokens=p.max_tokens,
            context_tokens=p.context_tokens,
            report_tokens=self.config.report.tokens,
            style=p.prompt,
        )


@dataclass(frozen=True, slots=True)
class Machines:
    """What runs while candidates are evaluated: one solver, and the sandboxes of harnesses and of graders."""

    engine: MeteredEngine
    sandbox: "Sandbox"
    graders: "Sandbox"
    cache: Cache
    meter: Meter
    slots: asyncio.Semaphore
    """Bounds the attempts under way, whichever evaluators they belong to."""


class LineageBook:
    """One branch of the ledger, as `hl.rounds.run_chain` uses it."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._ledger = workspace.ledger

    def head(self) -> Revision:
        """The branch's harness."""
        return self._workspace.read("HEAD")

    def next_round(self) -> int:
        """Highest round number ever used + 1."""
        return self._ledger.next_round()

    def history(self, solver: str) -> tuple[HistoryEntry, ...]:
        """Earlier edits, with this solver, of the chain that ends at the head."""
        return self._ledger.history(solver)

    def known_programs(self, solver: str) -> Mapping[str, str]:
        """Programs that the chain has tried with this solver."""
        return self._ledger.known_programs(solver)

    def record(self, result: Round) -> None:
        """Write the round."""
        self._ledger.record_round(result, self._workspace.records)


async def _enter_engine(
    stack: AsyncExitStack, config: ModelConfig, root: Path, cache: Cache, meter: Meter
) -> MeteredEngine:
    metered = MeteredEngine(open_model(config, root), cache, meter)
    stack.push_async_callback(metered.aclose)
    return metered


def _in_flight(engine: Engine) -> int:
    """Attempts under way at once: some more than the engine can serve, since attempts also compute."""
    return 1 if engine.concurrency == 1 else engine.concurrency + max(2, engine.concurrency // 4)


def question_id(text: str) -> str:
    """The id of a question outside any set: content, as everywhere."""
    return hashlib.sha256(" ".join(text.split()).encode("utf-8", "replace")).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class Answered:
    """One question answered outside any question set: nothing is graded."""

    status: Status
    answer: str
    """Empty unless status is ok."""
    error: str
    calls: int
    tokens: int
    trace: tuple[TraceEvent, ...]


class LoadedHarness:
    """A harness of the ledger, ready to answer: what `hl.load` returns."""

    def __init__(self, workspace: Workspace, revision: Revision) -> None:
        self._workspace = workspace
        self.revision = revision

    def solve(self, question: str) -> str:
        """Answer one question in the sandbox.

        Raises:
            HlError: The harness failed; the message is its error.
            SandboxError: No sandbox holds here.
            EngineError: The solver failed.
        """
        answered = asyncio.run(self._workspace.answer(self.revision.harness, question))
        if answered.status is not Status.OK:
            raise HlError(f"The harness failed ({answered.status.value}): {answered.error.strip()[-1500:]}")
        return answered.answer


def load(path: str | Path = ".", rev: str = "HEAD") -> LoadedHarness:
    """Open a harness of a repository for use from Python.

    Args:
        path: The repository, or a folder in it.
        rev: Any git revision.

    Raises:
        RepositoryError: No repository, or an unknown revision.
    """
    workspace = Workspace.open(Path(path))
    return LoadedHarness(workspace, workspace.read(rev))
