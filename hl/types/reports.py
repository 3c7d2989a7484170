"""What a proposer is told."""

from collections.abc import Mapping
from dataclasses import dataclass

from hl.types.attempts import FailureClass, Score, TraceEvent
from hl.types.harness import Outcome
from hl.types.questions import TaskSpec


@dataclass(frozen=True, slots=True)
class Case:
    """One question of the feedback set as the proposer sees it."""

    question: str
    answer: str
    gold: str | None
    """None when the family has no gold text or `report.gold` is false."""
    grade: float
    failure: FailureClass | None
    """None for a success."""
    error: str
    trace: tuple[TraceEvent, ...]


@dataclass(frozen=True, slots=True)
class HistoryEntry:
    """An earlier edit of this chain, accepted or not. Never holds per-question scoring results or gold."""

    round: int
    summary: str
    outcome: Outcome
    accepted: bool
    gain: float | None
    """Confirmed gain where there is one, else the selection gain; None when it was not scored."""
    classes: Mapping[str, int]
    """Failed scoring attempts by failure class."""
    tool_errors: Mapping[str, int]
    n: int = 0
    """Scoring questions behind the counts."""
    confirmed: bool = False
    """Whether the gain was measured on questions that did not choose the winner."""


@dataclass(frozen=True, slots=True)
class Report:
    """Everything a proposer may know of the parent's run."""

    task: TaskSpec
    harness: str
    """Digest of the parent."""
    score: Score
    """On the feedback block."""
    statuses: Mapping[str, int]
    classes: Mapping[str, int]
    tool_errors: Mapping[str, int]
    failures: tuple[Case, ...]
    successes: tuple[Case, ...]
    calls_per_attempt: float
    tokens_per_attempt: float
    seconds_per_attempt: float
    zero_call_share: float
    history: tuple[HistoryEntry, ...] = ()
