"""A reply -> what it earns: p, b, c and J, in the rooms that rounds and benchmarks use. No torch.

    r = J + 0.05 p + 0.10 b + 0.15 c        (paper)

    p   every block parses, and there is one            J   mean grade on the context's scoring questions
    b   the edits apply and the candidate builds        c   share of scoring attempts that ended with an answer

`b` asks for what a round asks before it scores: the edits apply, the program imports, and one call with a stubbed model
returns a text. What is our fault earns nothing at all (None in every part), never zero. All candidates of all contexts
stand in one bounded queue, and an evaluation begins when its reply is submitted.
"""

import asyncio
import contextlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Any

from hl.codec import decode, encode
from hl.edits import propose_from_reply
from hl.errors import HlError, StoppedEarly
from hl.evaluate import Work
from hl.rounds import smoke
from hl.types import Attempt, FailureClass, Grade, Harness, Measurement, Outcome, Reply, Status
from training.contexts import Context
from training.rooms import Room, Rooms

WEIGHTS: Mapping[str, float] = {"J": 1.0, "parse": 0.05, "build": 0.10, "complete": 0.15}
"""Part -> its weight in the reward (paper)."""
LOST_SHARE = 0.1
"""Share of a candidate's attempts lost through our fault beyond which it has no reward (ours)."""
CUT = "the candidate's time was over"
CUT_FILE = "cut.jsonl"
PROPOSER = "policy"


@dataclass(frozen=True, slots=True)
class Parts:
    """What the reward is summed from; each part in [0, 1]."""

    J: float = 0.0
    """Mean grade; an attempt that did not complete is a zero."""
    parse: float = 0.0
    build: float = 0.0
    complete: float = 0.0
    """Share of attempts that completed."""

    @property
    def reward(self) -> float:
        """In [0, 1.3]."""
        return sum(weight * getattr(self, name) for name, weight in WEIGHTS.items())


@dataclass(frozen=True, slots=True)
class Judged:
    """One reply and what it earns."""

    context: str
    """Id of the context."""
    outcome: Outcome
    """As a round would record it; `lost` where there is no reward."""
    detail: str = ""
    """Why the outcome is what it is."""
    candidate: str = ""
    """Digest of the candidate, where the edits apply."""
    parts: Parts | None = None
    """None: our fault, and no reward."""
    strict: float = 0.0
    """Mean strict grade."""
    parent: float = 0.0
    """The parent's mean grade on the same questions."""
    classes: Mapping[str, int] | None = None
    """Failed attempts by failure class, where it was scored."""
    calls: int = 0
    """Of the solver, replies from the cache included."""
    tokens: int = 0
    """Likewise, prompt and reply."""
    cut: bool = False
    """Whether the candidate's time ended before its attempts did."""

    @property
    def reward(self) -> float | None:
        """The sum of the parts, or None."""
        return None if self.parts is None else self.parts.reward

    @property
    def gain(self) -> float | None:
        """Mean grade above the parent's, of a candidate that was scored."""
        return self.parts.J - self.parent if self.parts is not None and self.parts.build else None


def reward_columns(judged: Sequence[Judged]) -> dict[str, list[float | None]]:
    """Part -> its value for each reply, as columns that `reward_functions` read. None in one part is None in all."""
    return {
        f"hl_{part}": [None if j.parts is None else float(getattr(j.parts, part)) for j in judged]
        for part in WEIGHTS
    }


def reward_functions(
    tell: Callable[[Mapping[str, Any]], None],
) -> list[Callable[..., list[float | None]]]:
    """TRL's `reward_funcs`: one a part, under its name, in the order of `WEIGHTS`; TRL weighs, sums and logs them.

    Args:
        tell: Called once an update with all columns, TRL's ways to log among them.
    """

    def function(part: str) -> Callable[..., list[float | None]]:
        def read(**columns: Any) -> list[float | None]:
            if part == next(iter(WEIGHTS)):
                tell(columns)
            return list(columns[f"hl_{part}"])

        read.__name__ = part
        return read

    return [function(part) for part in WEIGHTS]


@dataclass(frozen=True, slots=True)
class Execution:
    """What running a candidate found."""

    outcome: Outcome
    detail: str = ""
    measurement: Measurement | None = None
    strict: float = 0.0
    cut: bool = False


class Judge:
    """Judges replies. Lives on the event loop of its rooms.

    Args:
        rooms: Where candidates run.
        noop: `zero`, or `parent`: what an edit that changes nothing earns.
        candidate_s: Seconds of one candidate, counted while at least one of its attempts is under way.
        cut: File that keeps what was found of candidates whose time ended: on another day they might come further, and
            a run that is resumed would differ. None forgets.
    """

    def __init__(
        self, rooms: Rooms, *, noop: str = "zero", candidate_s: float = 600.0, cut: Path | None = None
    ) -> None:
        self._rooms = rooms
        self._noop = noop
        self._candidate_s = candidate_s
        self._known: dict[tuple[str, str], asyncio.Task[Execution]] = {}
        self._cut_file = cut
        self._cut = _load_cut(cut)

    async def submit(self, context: Context, reply: Reply) -> Judged:
        """Judge one reply; nothing that a reply or a candidate does, and no fault of ours, raises.

        Raises:
            StoppedEarly: A limit of the run was reached: the one thing that ends it from here.
        """
        base = Judged(context.id, Outcome.LOST, parent=context.parent.mean)
        try:
            return await self._judge(base, context, reply)
        except StoppedEarly:
            raise
        except Exception as error:
            told = error.message if isinstance(error, HlError) else f"{type(error).__name__}: {error}"
            return replace(base, detail=told)

    async def aclose(self) -> None:
        """End what is still being run."""
        running = list(self._known.values())
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    async def _judge(self, base: Judged, context: Context, reply: Reply) -> Judged:
        # No earlier candidates: a duplicate earns what its first earned, from the same execution.
        proposal = propose_from_reply(context.harness, reply, index=0, proposer=PROPOSER, known={})
        candidate = proposal.candidate
        base = replace(
            base,
            outcome=proposal.outcome,
            detail=proposal.detail,
            candidate=candidate.digest if candidate is not None else "",
        )
        if proposal.outcome is Outcome.LOST:
            return base
        if proposal.outcome is Outcome.NOOP:
            if self._noop == "zero":
                return replace(base, parts=Parts())
            return replace(
                self._scored(base, await self._execution(context, context.harness)), outcome=Outcome.NOOP
            )
        if proposal.outcome is not Outcome.SCORED or candidate is None:
            return replace(base, parts=Parts(parse=float(bool(proposal.edits))))
        return self._scored(base, await self._execution(context, candidate))

    def _scored(self, base: Judged, found: Execution) -> Judged:
        base = replace(base, outcome=found.outcome, detail=found.detail, cut=found.cut)
        measured = found.measurement
        if measured is None:
            return base if found.outcome is Outcome.LOST else replace(base, parts=Parts(parse=1.0))
        counted = sum(measured.counts.values()) - measured.counts.get(Status.LOST, 0)
        return replace(
            base,
            parts=Parts(measured.score.mean, 1.0, 1.0, measured.counts.get(Status.OK, 0) / counted),
            strict=found.strict,
            classes=measured.classes,
            calls=measured.calls,
            tokens=measured.tokens,
        )

    async def _execution(self, context: Context, harness: Harness) -> Execution:
        """The candidate's run: begun once for all replies that come to it."""
        key = (context.id, harness.digest)
        if key in self._cut:
            return self._cut[key]
        task = self._known.get(key)
        if task is None:
            task = asyncio.ensure_future(self._execute(context, harness))
            self._known[key] = task
            task.add_done_callback(lambda done: self._keep(key, done))
        return await asyncio.shield(task)

    def _keep(self, key: tuple[str, str], task: "asyncio.Task[Execution]") -> None:
        # What was lost is tried anew when it is met again.
        if task.cancelled() or task.exception() is not None or task.result().outcome is Outcome.LOST:
            self._known.pop(key, None)
        elif task.result().cut and self._cut_file is not None:
            line = json.dumps([*key, encode(task.result())], allow_nan=False)
            with self._cut_file.open("a", encoding="utf-8") as file:
                file.write(line + "\n")

    async def _execute(self, context: Context, harness: Harness) -> Execution:
        room = self._rooms.of(context)
        work = room.work(context, harness)
        attempts: list[Attempt] = []

        async def run() -> tuple[Outcome, str]:
            async with clock:
                built, detail = await smoke(harness, room.evaluator)
            if built is Outcome.SCORED:
                await room.evaluator.run([work], lambda told: attempts.append(told.attempt), slots=clock)
            return built, detail

        clock = Clock(self._rooms.machines.slots, self._candidate_s, lambda: running.cancel())
        running = asyncio.ensure_future(run())
        try:
            built, detail = await running
        except asyncio.CancelledError:
            if not clock.over:  # we are cancelled, and it with us
                raise
            built, detail = Outcome.SCORED, CUT
        if built is not Outcome.SCORED:
            return Execution(built, detail)
        return _measured(room, work, attempts, cut=clock.over)


def _load_cut(path: Path | None) -> dict[tuple[str, str], Execution]:
    """(context, candidate) -> what was found; a line that a kill cut off is left out."""
    found: dict[tuple[str, str], Execution] = {}
    if path is None or not path.exists():
        return found
    for line in path.read_text(encoding="utf-8").splitlines():
        with contextlib.suppress(ValueError):
            context, candidate, execution = json.loads(line)
            found[context, candidate] = decode(Execution, execution)
    return found


def _measured(room: Room, work: Work, finished: Sequence[Attempt], *, cut: bool) -> Execution:
    """What a run came to; attempts that its time did not reach are there as timeouts."""
    by_place = {(a.question_id, a.trial): a for a in finished}
    attempts = [
        by_place.get((q.id, trial)) or _unfinished(q.id, trial)
        for q in work.block.questions
        for trial in range(work.trials)
    ]
    lost = sum(a.status is Status.LOST for a in attempts)
    if lost > LOST_SHARE * len(attempts):
        told = next((a.error for a in attempts if a.status is Status.LOST), "")
        return Execution(Outcome.LOST, f"{lost} of {len(attempts)} attempts were lost: {told}")
    measured = room.evaluator.measure(work, attempts)
    graded = [a.grade.strict for a in attempts if a.status is not Status.LOST]
    return Execution(Outcome.SCORED, CUT if cut else "", measured, sum(graded) / len(graded), cut)


def _unfinished(question: str, trial: int) -> Attempt:
    return Attempt(
        question_id=question,
        trial=trial,
        status=Status.TIMEOUT,
        answer="",
        grade=Grade(0.0, 0.0),
        calls=0,
        prompt_tokens=0,
        completion_tokens=0,
        seconds=0.0,
        error=CUT,
        failure=FailureClass.TIMEOUT,
    )


class Clock:
    """A shared bound entered once an attempt, and the time in which at least one of a candidate's holds a place.

    Waiting for a place does not count: a candidate is not cut for standing behind others.

    Args:
        slots: The bound.
        limit_s: Seconds until `on_over` is called.
        on_over: Called once.
    """

    def __init__(self, slots: asyncio.Semaphore, limit_s: float, on_over: Callable[[], object]) -> None:
        self._slots = slots
        self._left_s = limit_s
        self._on_over = on_over
        self._inside = 0
        self._since = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self.over = False
        """Whether the time ended."""

    async def __aenter__(self) -> None:
        await self._slots.acquire()
        if self._inside == 0:
            loop = asyncio.get_running_loop()
            self._since = loop.time()
            self._timer = loop.call_later(self._left_s, self._end)
        self._inside += 1

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._slots.release()
        self._inside -= 1
        if self._inside == 0 and self._timer is not None:
            self._left_s -= asyncio.get_running_loop().time() - self._since
            self._timer.cancel()

    def _end(self) -> None:
        self.over = True
        self._on_over()
