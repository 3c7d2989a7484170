"""Rooms 2, 5 and 7: harnesses x questions -> attempts and measurements, through one bounded queue.

Promises: every candidate meets the same questions under the same trial seeds (paired); finished attempts are stored
and never run again; an attempt lost through our fault is retried, then left out and counted, never graded 0; an engine
that stays down ends the work with what was measured kept. It does not choose between candidates and knows no git.
"""

import asyncio
import contextlib
import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Protocol

from hl.cache import Cache, cache_key
from hl.errors import EngineError, HlError, SandboxError, StoppedEarly
from hl.report import SOLVED, classify, tool_error
from hl.sandbox.host import JobResult, Limits, PythonResult, Session
from hl.solver import AttemptSession, Meter, Search, Solver
from hl.types import (
    Attempt,
    Gold,
    Grade,
    Grader,
    Harness,
    Measurement,
    Question,
    QuestionSet,
    Status,
)

LOST_RETRIES = 2
"""How often an attempt lost through our fault is run again (ours)."""
LOST_IN_A_ROW = 8
"""Lost attempts without one success between them after which the engine counts as down (ours)."""


Slots = AbstractAsyncContextManager[object]
"""Such as a semaphore."""


class Runner(Protocol):
    """The part of the sandbox that this room uses."""

    @property
    def tier(self) -> str:
        """How runs are confined."""
        ...

    async def run(
        self, harness: Harness, question: str, *, seed: int, session: Session, limits: Limits
    ) -> JobResult:
        """Run one harness on one question."""
        ...

    async def smoke(self, harness: Harness, *, limits: Limits) -> JobResult:
        """Import a harness and make one call with a stubbed model."""
        ...

    async def python(self, code: str, *, timeout_s: float) -> PythonResult:
        """Run code with no model."""
        ...


@dataclass(frozen=True, slots=True)
class Work:
    """One harness to run on one block."""

    harness: Harness
    block: QuestionSet
    trials: int = 1
    first_trial: int = 0
    """Trials are numbered from here; other numbers draw other seeds."""


@dataclass(frozen=True, slots=True)
class Progress:
    """Told after each attempt."""

    work: int
    """Index into the works given to `run`."""
    attempt: Attempt
    cached: bool


def rules_of(task_digest: str, limits: Limits, *, unsafe: bool, call: bool) -> str:
    """Digest of what decides an attempt beside harness, question, trial and solver.

    Args:
        task_digest: Identity of task and grader.
        limits: Of one attempt.
        unsafe: Whether harnesses run unconfined.
        call: Whether an attempt without a call grades 0.
    """
    return hashlib.sha256(repr((task_digest, limits, call, unsafe)).encode()).hexdigest()


def identity_of(solver: str, rules: str, mode: str) -> str:
    """What scores must share to be compared, from the solver's digest, `rules_of` and the grade that is averaged."""
    return hashlib.sha256(f"{solver} {rules} {mode}".encode()).hexdigest()[:16]


class Evaluator:
    """Runs attempts. One per command; owns no process, only the queue.

    Args:
        sandbox: Where harnesses run.
        solver: Who answers them.
        grader: Who grades the answers.
        cache: Where attempts are stored.
        meter: Shared with the proposer; its limits stop the queue.
        limits: Of one attempt.
        mode: `raw` or `strict` grades make the score.
        task_digest: Identity of task and grader version, part of the cache key.
        concurrency: Attempts under way at once.
        require_model_call: Grade an attempt that never asked the model 0.
        search: The task's retrieval, if it has any.
        slots: Entered around each attempt that is really run: a bound that evaluators share.
    """

    def __init__(
        self,
        *,
        sandbox: Runner,
        solver: Solver,
        grader: Grader,
        cache: Cache,
        meter: Meter,
        limits: Limits,
        mode: str = "raw",
        task_digest: str = "",
        concurrency: int = 16,
        require_model_call: bool = False,
        search: Search | None = None,
        slots: Slots | None = None,
    ) -> None:
        self.sandbox = sandbox
        self.solver = solver
        self.limits = limits
        self.mode = mode
        self._grader = grader
        self._cache = cache
        self._meter = meter
        self._concurrency = max(1, concurrency)
        self._require_model_call = require_model_call
        self._search = search
        self._rules = rules_of(task_digest, limits, unsafe=sandbox.tier == "unsafe", call=require_model_call)
        self._slots = slots or contextlib.nullcontext()
        self._lost_in_a_row = 0

    @property
    def identity(self) -> str:
        """What scores must share to be compared: solver, limits, grader and mode."""
        return identity_of(self.solver.digest, self._rules, self.mode)

    async def run(
        self,
        works: Sequence[Work],
        on_attempt: Callable[[Progress], None] | None = None,
        *,
        slots: Slots | None = None,
    ) -> tuple[tuple[Attempt, ...], ...]:
        """Run every work; attempts come back in set order, trial by trial within a question.

        Args:
            works: What to run.
            on_attempt: Told of every attempt, stored ones included.
            slots: Instead of the evaluator's own.

        Raises:
            StoppedEarly: A run limit was reached; what was finished is stored.
            EngineError: The engine stays down; likewise.
            SandboxError: The sandbox broke and could not be restarted.
        """
        results: list[list[Attempt | None]] = [[None] * (len(w.block.questions) * w.trials) for w in works]
        todo: list[tuple[int, int, Question, Gold, int]] = []
        for w, work in enumerate(works):
            pairs = zip(work.block.questions, work.block.golds, strict=True)
            for place, (question, gold, trial) in enumerate(
                (q, g, work.first_trial + t) for q, g in pairs for t in range(work.trials)
            ):
                stored = self._cache.attempt(self._key(work.harness, question, trial))
                if stored is None:
                    todo.append((w, place, question, gold, trial))
                    continue
                results[w][place] = stored
                if on_attempt:
                    on_attempt(Progress(w, stored, cached=True))
        queue = iter(todo)

        async def worker() -> None:
            # Workers share one iterator: candidate by candidate, so that equal prompt prefixes meet at the engine.
            for w, place, question, gold, trial in queue:
                async with slots or self._slots:
                    attempt = await self._attempt(works[w].harness, question, gold, trial)
                results[w][place] = attempt
                if on_attempt:
                    on_attempt(Progress(w, attempt, cached=False))

        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(min(self._concurrency, len(todo))):
                    group.create_task(worker())
        except BaseExceptionGroup as failures:
            raise first_error(failures) from None
        return tuple(tuple(a for a in row if a is not None) for row in results)

    async def _attempt(self, harness: Harness, question: Question, gold: Gold, trial: int) -> Attempt:
        tries = 0
        while True:
            self._meter.check()
            session = self.solver.session(
                question, trial, wall_s=self.limits.wall_s, python=self.sandbox.python, search=self._search
            )
            result = await self.sandbox.run(
                harness, question.text, seed=session.seed, session=session, limits=self.limits
            )
            if isinstance(session.stopped, StoppedEarly):
                raise session.stopped
            if session.stopped is None and result.status is not Status.LOST:
                attempt = await self._graded(question, gold, trial, session, result)
                self._lost_in_a_row = 0
                self._cache.put_attempt(self._key(harness, question, trial), attempt)
                return attempt
            self._lost_in_a_row += 1
            fault = session.stopped or SandboxError(
                f"An attempt was lost: {result.error or 'the sandbox broke'}."
            )
            if self._lost_in_a_row >= LOST_IN_A_ROW:
                raise fault
            if tries == LOST_RETRIES:
                return _lost(question, trial, session, str(fault))
            tries += 1

    async def _graded(
        self, question: Question, gold: Gold, trial: int, session: AttemptSession, result: JobResult
    ) -> Attempt:
        grade = Grade(0.0, 0.0)
        if result.status is Status.OK:
            grade = await self._grader.grade(gold, result.value)
            if self._require_model_call and session.calls == 0:
                grade = Grade(0.0, 0.0, "the harness never asked the model")

        async def accepts(text: str) -> bool:
            return (await self._grader.grade(gold, text)).strict >= SOLVED

        failure = None
        if grade.strict < SOLVED:
            failure = await classify(result.status, result.value, session.trace, question, gold, accepts)
        return Attempt(
            question_id=question.id,
            trial=trial,
            status=result.status,
            answer=result.value if result.status is Status.OK else "",
            grade=grade,
            calls=session.calls,
            prompt_tokens=session.prompt_tokens,
            completion_tokens=session.completion_tokens,
            seconds=round(result.seconds, 3),
            cost=session.cost,
            error=result.error[-4096:],
            trace=session.trace,
            failure=failure,
            behaviour=session.behaviour(result.value),
        )

    def _key(self, harness: Harness, question: Question, trial: int) -> str:
        # Without the mode: an attempt holds both grades, and a table in the other one costs nothing.
        return cache_key(
            {
                "harness": harness.digest,
                "question": question.id,
                "trial": trial,
                "solver": self.solver.digest,
                "rules": self._rules,
            }
        )

    def measure(self, work: Work, attempts: Sequence[Attempt]) -> Measurement:
        """The measurement of one work from its attempts, in the order `run` gave them."""
        graded = [a for a in attempts if a.status is not Status.LOST]
        own: dict[str, list[Grade]] = {q.id: [] for q in work.block.questions}
        for attempt in graded:
            own[attempt.question_id].append(attempt.grade)
        raw = tuple(_mean([g.raw for g in own[q.id]]) for q in work.block.questions)
        strict = tuple(_mean([g.strict for g in own[q.id]]) for q in work.block.questions)
        return Measurement(
            harness=work.harness.digest,
            role=work.block.role,
            questions=work.block.digest,
            ids=tuple(q.id for q in work.block.questions),
            grades=raw if self.mode == "raw" else strict,
            solver=self.identity,
            solver_name=self.solver.name,
            mode=self.mode,
            counts=_count(a.status.value for a in attempts),
            classes=_count(a.failure.value for a in graded if a.failure is not None),
            tool_errors=_count(e for a in graded if a.failure is not None and (e := tool_error(a.trace))),
            trials=work.trials,
            calls=sum(a.calls for a in attempts),
            tokens=sum(a.prompt_tokens + a.completion_tokens for a in attempts),
            seconds=round(sum(a.seconds for a in attempts), 3),
            zero_call_share=sum(a.calls == 0 for a in graded) / len(graded) if graded else 0.0,
            sandbox=self.sandbox.tier,
            cost=sum(a.cost for a in attempts),
            ablation=self.solver.ablation,
            other_grades=strict if self.mode == "raw" else raw,
        )

    async def score(
        self, works: Sequence[Work], on_attempt: Callable[[Progress], None] | None = None
    ) -> tuple[tuple[Measurement, tuple[Attempt, ...]], ...]:
        """`run`, then `measure`: one pair per work.

        Raises:
            StoppedEarly: See `run`.
            EngineError: See `run`.
        """
        attempts = await self.run(works, on_attempt)
        return tuple((self.measure(w, a), a) for w, a in zip(works, attempts, strict=True))


def same_behaviour(a: Sequence[Attempt], b: Sequence[Attempt]) -> bool:
    """Whether two harnesses made the same calls and gave the same answers on every shared question and trial."""
    known = {(x.question_id, x.trial): x.behaviour for x in a}
    return all(known.get((x.question_id, x.trial)) == x.behaviour for x in b)


def _lost(question: Question, trial: int, session: AttemptSession, why: str) -> Attempt:
    return Attempt(
        question_id=question.id,
        trial=trial,
        status=Status.LOST,
        answer="",
        grade=Grade(0.0, 0.0),
        calls=session.calls,
        prompt_tokens=session.prompt_tokens,
        completion_tokens=session.completion_tokens,
        seconds=session.seconds,
        error=why[-4096:],
        trace=session.trace,
    )


def _mean(grades: Sequence[float]) -> float | None:
    return sum(grades) / len(grades) if grades else None


def _count(names: Iterable[str]) -> dict[str, int]:
    return dict(sorted(Counter(names).items()))


def first_error(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """The error that matters: ours before a cancellation, a budget stop before an engine's death."""
    leaves: list[BaseException] = []

    def walk(error: BaseException) -> None:
        if isinstance(error, BaseExceptionGroup):
            for inner in error.exceptions:
                walk(inner)
        else:
            leaves.append(error)

    walk(group)
    for kind in (StoppedEarly, EngineError, HlError, KeyboardInterrupt):
        for error in leaves:
            if isinstance(error, kind):
                return error
    return leaves[0]
