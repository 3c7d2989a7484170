"""Tasks, their questions and right answers, and what an answer earns."""

import hashlib
from dataclasses import dataclass
from enum import StrEnum


class Role(StrEnum):
    """What a question set is for. The four pools are pairwise disjoint by content."""

    FEEDBACK = "feedback"
    """The proposer sees these runs."""
    SCORING = "scoring"
    """Reward and selection."""
    CONFIRMATION = "confirmation"
    """Re-measures a round's winner and its parent on questions that selection did not see (ours)."""
    EVALUATION = "evaluation"
    """Held out; what is reported."""


@dataclass(frozen=True, slots=True)
class TaskSpec:
    """A task: what a harness is asked to do, and who grades it."""

    name: str
    """As the user wrote it: `reasoning-gym:gcd`, `jsonl:questions.jsonl`."""
    description: str
    """One paragraph for the proposer: what the questions ask for and how an answer is graded."""
    params: tuple[tuple[str, str], ...] = ()
    """Generator parameters, sorted by name, values as written."""
    version: str = ""
    """Generator and grader versions, such as `reasoning-gym 0.1.25, hl grader 1`."""
    has_corpus: bool = False
    """Whether `model.search` works."""
    gold_visible: bool = True
    """Whether the gold answer is a text that a report may show (some families have none)."""


@dataclass(frozen=True, slots=True)
class Question:
    """What a harness sees."""

    id: str
    """First 16 hex digits of the sha256 of (family, question text with white space normalised)."""
    text: str


@dataclass(frozen=True, slots=True)
class Gold:
    """What only the host and the confined grader see."""

    id: str
    """The question's id."""
    answer: str | None
    """The reference answer as text, or None where the family has none."""
    entry: str
    """JSON for the grader (reasoning-gym's entry, with tuples tagged); `{}` where the answer is enough."""


@dataclass(frozen=True, slots=True)
class QuestionSet:
    """An ordered, materialised pool or block of questions of one role."""

    role: Role
    questions: tuple[Question, ...]
    golds: tuple[Gold, ...]
    """Same order as `questions`."""

    @property
    def digest(self) -> str:
        """Hex sha256 over role-free content: the ids, in order."""
        return hashlib.sha256("\n".join(q.id for q in self.questions).encode()).hexdigest()

    def block(self, index: int, size: int) -> "QuestionSet":
        """The index-th block of `size` questions, wrapping around; the whole pool if it is not larger than `size`.

        Raises:
            ValueError: The pool is empty or the size is not positive.
        """
        total = len(self.questions)
        if size <= 0 or total == 0:
            raise ValueError(f"no block of {size} questions in a pool of {total}")
        if total <= size:
            return self
        start = (index % (total // size)) * size
        return QuestionSet(self.role, self.questions[start : start + size], self.golds[start : start + size])


@dataclass(frozen=True, slots=True)
class QuestionSets:
    """The four pools of a task."""

    feedback: QuestionSet
    scoring: QuestionSet
    confirmation: QuestionSet
    evaluation: QuestionSet

    def of(self, role: Role) -> QuestionSet:
        """The pool of that role."""
        return {
            Role.FEEDBACK: self.feedback,
            Role.SCORING: self.scoring,
            Role.CONFIRMATION: self.confirmation,
            Role.EVALUATION: self.evaluation,
        }[role]


@dataclass(frozen=True, slots=True)
class Grade:
    """What a grader said of one answer."""

    raw: float
    """The grader's partial credit, clipped to [0, 1], its "you answered" floors mapped to 0."""
    strict: float
    """1.0 if raw >= 0.999, else 0.0 (or the family's own strict re-score)."""
    error: str = ""
    """Why the grader could not grade (it raised, or ran out of time); then both grades are 0."""
