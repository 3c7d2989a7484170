"""Runs of harnesses on questions: their ends, costs and scores."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from hl.types.questions import Grade, Role


class FailureClass(StrEnum):
    """Why a question failed. Most failures are broken hand-overs, not wrong algorithms (paper)."""

    CRASH = "crash"
    TIMEOUT = "timeout"
    BUDGET = "budget"
    EMPTY = "empty"
    EXTRACTION = "extraction"
    """The grader accepts the last line of a model reply or tool output, but not the answer."""
    UNKNOWN = "unknown"
    """As extraction, but the gold already stands in the question, so it proves nothing."""
    FORMAT = "format"
    """The answer holds the gold's words or number in another shape."""
    WRONG = "wrong"


HAND_OVER = frozenset(
    {
        FailureClass.CRASH,
        FailureClass.TIMEOUT,
        FailureClass.BUDGET,
        FailureClass.EMPTY,
        FailureClass.EXTRACTION,
        FailureClass.FORMAT,
    }
)
"""Failure classes that are not a wrong algorithm."""


class Status(StrEnum):
    """How an attempt ended."""

    OK = "ok"
    CRASH = "crash"
    """The harness raised, ran out of memory or died."""
    TIMEOUT = "timeout"
    BUDGET = "budget"
    """It went on asking after BudgetExceeded, or let it escape."""
    CONTRACT = "contract"
    """solve returned something that is not a string, or is missing."""
    LOST = "lost"
    """Our fault (engine down, sandbox broken): not a zero, left out of n and counted."""


@dataclass(frozen=True, slots=True)
class TraceEvent:
    """One call that a harness made on `model`."""

    kind: str
    """`chat`, `python` or `search`."""
    request: str
    """The prompt (the last user message), the code, or the query."""
    reply: str
    """The reply text, stdout, or the passages."""
    error: str = ""
    """Traceback of `python`, or why the call was refused."""
    tokens: int = 0
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Attempt:
    """One harness run on one question."""

    question_id: str
    trial: int
    """0-based; the trial seed is a function of (question id, trial), the same for all candidates."""
    status: Status
    answer: str
    """Empty unless status is ok."""
    grade: Grade
    calls: int
    prompt_tokens: int
    completion_tokens: int
    seconds: float
    """Time billed to the attempt: without queueing on the host and engine retries."""
    cost: float = 0.0
    error: str = ""
    """Traceback or reason, at most 4 KiB."""
    trace: tuple[TraceEvent, ...] = ()
    failure: "FailureClass | None" = None
    """Why it failed; None for a success and for a lost attempt."""
    behaviour: str = ""
    """Digest of the calls it made and the answer it gave: equal behaviour, equal digest."""


@dataclass(frozen=True, slots=True)
class Cost:
    """What work used. Cached replies cost nothing."""

    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    money: float = 0.0
    seconds: float = 0.0

    def __add__(self, other: "Cost") -> "Cost":
        return Cost(
            self.calls + other.calls,
            self.prompt_tokens + other.prompt_tokens,
            self.completion_tokens + other.completion_tokens,
            self.money + other.money,
            self.seconds + other.seconds,
        )


@dataclass(frozen=True, slots=True)
class Score:
    """J(h; Q): mean grade with standard error (sd / sqrt(n), sample sd)."""

    mean: float
    se: float
    n: int


@dataclass(frozen=True, slots=True)
class Measurement:
    """A score and all that makes it comparable: one line of `refs/notes/hl/evals`."""

    harness: str
    """Harness digest."""
    role: Role
    questions: str
    """Digest of the question block."""
    ids: tuple[str, ...]
    """Question ids in set order."""
    grades: tuple[float | None, ...]
    """Mean grade over trials per question, in set order; None where every trial was lost."""
    solver: str
    """The solver's identity: model, sampling, budgets (`Solver.digest`), first 16 hex digits."""
    solver_name: str
    """Readable: `llamacpp smollm2`."""
    mode: str
    """`raw` or `strict`: which grade was averaged."""
    counts: Mapping[str, int]
    """Attempts by status."""
    classes: Mapping[str, int]
    """Failed attempts by failure class."""
    tool_errors: Mapping[str, int]
    """Attempts by the exception type that `model.python` reported, such as NameError."""
    trials: int
    calls: int
    tokens: int
    """Prompt and completion tokens, cached replies included."""
    seconds: float
    zero_call_share: float
    """Share of attempts that never asked the model."""
    sandbox: str
    """The tier that confined the runs, or `unsafe`."""
    cost: float = 0.0
    record: str = ""
    """Address of the transcripts in the record store."""
    time: str = ""
    """UTC, ISO 8601; stamped by the ledger."""
    ablation: str = ""
    """`empty` when the solver was replaced by one that answers with empty text."""
    other_grades: tuple[float | None, ...] = ()
    """As `grades`, of the grade that `mode` does not name; empty in a measurement that an older hl wrote."""

    @property
    def score(self) -> Score:
        """Mean, standard error and n over the questions that were graded."""
        values = [g for g in self.grades if g is not None]
        n = len(values)
        if n == 0:
            return Score(0.0, 0.0, 0)
        mean = sum(values) / n
        var = sum((v - mean) ** 2 for v in values) / (n - 1) if n > 1 else 0.0
        return Score(mean, (var / n) ** 0.5, n)
