"""The nouns of hl. Frozen values without behaviour beyond what is derived from their own fields.

Everything here is plain data: it imports nothing of ours but nothing else either, so every room can share it.
Counts are integers, durations are seconds, grades lie in [0, 1].
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

# --- tasks -----------------------------------------------------------------------------------------------------


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


# --- harnesses and edits ---------------------------------------------------------------------------------------

HARNESS_MAX_BYTES = 64 * 1024
"""Total size of a harness (PROTOCOL section 2)."""


@dataclass(frozen=True, slots=True)
class Harness:
    """An executable program around a model: flat Python files that import each other by name."""

    files: tuple[tuple[str, str], ...]
    """(file name, text), sorted by name."""
    entry: str = "harness.py"
    """The file that exposes `solve(model, question) -> str`."""

    @property
    def digest(self) -> str:
        """Hex sha256 of the entry name and every file's name and text: the key that scores follow."""
        h = hashlib.sha256(self.entry.encode())
        for name, text in self.files:
            for part in (name.encode(), text.encode("utf-8", "surrogatepass")):
                h.update(len(part).to_bytes(8, "big"))
                h.update(part)
        return h.hexdigest()

    def text(self, name: str) -> str:
        """The text of one file.

        Raises:
            KeyError: There is no such file.
        """
        return dict(self.files)[name]


@dataclass(frozen=True, slots=True)
class Edit:
    """One SEARCH/REPLACE block of a reply."""

    file: str | None
    """Named by a `# file:` line; None means the entry file."""
    search: str
    replace: str
    line: int = 0
    """Line of the reply (from 1) at which the block starts."""


class Outcome(StrEnum):
    """What became of a proposal (PROTOCOL section 5). Order: the later, the further it got."""

    LOST = "lost"
    """The proposer's engine failed; retried, not one of the K."""
    NO_EDIT = "no_edit"
    MALFORMED = "malformed"
    TRUNCATED = "truncated"
    EMPTY_SEARCH = "empty_search"
    TOO_MANY = "too_many"
    NOT_FOUND = "not_found"
    ALREADY_APPLIED = "already_applied"
    AMBIGUOUS = "ambiguous"
    OVERLAP = "overlap"
    NOOP = "noop"
    DUPLICATE = "duplicate"
    SYNTAX = "syntax"
    CONTRACT = "contract"
    IMPORT = "import"
    CRASH = "crash"
    """The stubbed smoke call raised, or returned something that is not a string."""
    TIMEOUT = "timeout"
    """Import or smoke call ran out of time."""
    SCORED = "scored"


@dataclass(frozen=True, slots=True)
class Reply:
    """One proposer reply, before it is parsed."""

    text: str
    finish_reason: str = "stop"
    """`stop`, or `length` when the reply was cut."""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float = 0.0
    """Money, in the price table's currency."""
    seconds: float = 0.0
    error: str = ""
    """Not empty when the engine failed: the proposal is `lost`."""
    earlier: tuple[str, ...] = ()
    """Replies of this proposal that a repair turn replaced, oldest first."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """One reply and what became of it."""

    index: int
    """0 to K-1 within its round."""
    proposer: str
    reply: Reply
    outcome: Outcome
    detail: str = ""
    """The reason, as a hint for a repair turn and for `hl log --all`."""
    summary: str = ""
    """One line: the reply's own words about the edit, cleaned."""
    edits: tuple[Edit, ...] = ()
    candidate: Harness | None = None
    """The harness it produces, where the edits apply."""
    duplicate_of: str = ""
    """Digest of the earlier equal candidate, for `duplicate`."""


# --- running ---------------------------------------------------------------------------------------------------


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


# --- reports ---------------------------------------------------------------------------------------------------


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


# --- selection and revisions -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Gain:
    """A paired comparison of two harnesses on the same questions."""

    mean: float
    """Mean of (candidate - parent)."""
    se: float
    n: int
    wins: int
    losses: int
    ties: int
    p_sign: float
    """Two-sided exact sign test over wins and losses."""
    p_greater: float
    """One-sided p that the candidate is better: paired sign-flip permutation test."""


class Decision(StrEnum):
    """Whether the branch moved."""

    ACCEPTED = "accepted"
    REJECTED = "rejected"


class Evidence(StrEnum):
    """Whether the gain stands out of the noise: separate from the decision."""

    GAIN = "gain"
    NOISE = "within noise"


@dataclass(frozen=True, slots=True)
class Verdict:
    """A round's result."""

    decision: Decision
    evidence: Evidence
    winner: int | None
    """Index of the proposal that was best on the scoring block, even if rejected; None if none was scored."""
    selection: Gain | None
    """Winner against parent on the scoring block: biased upwards, it was used to choose."""
    confirmed: Gain | None
    """Winner against parent on the confirmation block."""
    reason: str
    """One sentence."""


@dataclass(frozen=True, slots=True)
class Revision:
    """A harness in the ledger."""

    commit: str
    """Full object name."""
    harness: Harness
    lineage: str
    """Branch name."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """One proposal of a round with its measurement."""

    proposal: Proposal
    scoring: Measurement | None
    """On the round's scoring block, where it was scored."""
    behavioural_noop: bool = False
    """Its code differs, but no call on any question does."""


@dataclass(frozen=True, slots=True)
class Round:
    """One round, complete: what the ledger records."""

    lineage: str
    number: int
    """From 1."""
    parent: Revision
    feedback: Measurement
    scoring: Measurement
    """Parent on the scoring block."""
    candidates: tuple[Candidate, ...]
    verdict: Verdict
    confirmation: tuple[Measurement, ...]
    """Parent then winner on the confirmation block, or nothing."""
    report: Report
    cost: Cost
    """Spent in this round, cached replies not counted."""
    settings: Mapping[str, str] = field(default_factory=dict[str, str])
    """What decided: select rule, K, block sizes, seeds."""


# --- capabilities ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of a conversation."""

    role: str
    """`system`, `user` or `assistant`."""
    content: str


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """One chat completion, after the host clamped it."""

    messages: tuple[Message, ...]
    max_tokens: int
    temperature: float
    stop: tuple[str, ...] = ()
    seed: int = 0


@dataclass(frozen=True, slots=True)
class ChatReply:
    """What the engine answered."""

    text: str
    finish_reason: str
    """`stop` or `length`."""
    prompt_tokens: int
    completion_tokens: int
    seconds: float
    """Service time: without queueing on the host and without retries."""
    retries: int = 0
    cost: float = 0.0


class Engine(Protocol):
    """Something that completes chats. Concurrency is the engine's own business: callers may start any number."""

    @property
    def name(self) -> str:
        """Readable identity, such as `llamacpp smollm2`."""
        ...

    @property
    def digest(self) -> str:
        """Hex sha256 over everything that can change a reply: engine, model, weights hash, template arguments."""
        ...

    @property
    def concurrency(self) -> int:
        """How many requests are worth having in flight."""
        ...

    async def chat(self, request: ChatRequest) -> ChatReply:
        """Complete one conversation.

        Raises:
            EngineError: After retries; nothing a harness does can cause it.
        """
        ...

    async def aclose(self) -> None:
        """Free the engine; idempotent."""
        ...


@dataclass(frozen=True, slots=True)
class ProposalContext:
    """What a proposer works from: K replies are asked for one context."""

    task: TaskSpec
    harness: Harness
    report: Report
    round: int
    seed: int


class Proposer(Protocol):
    """Something that writes edits."""

    @property
    def name(self) -> str:
        """Readable identity, such as `catalog 1` or `llm openai qwen`."""
        ...

    async def propose(self, context: ProposalContext, index: int, count: int) -> Reply:
        """Reply number `index` of `count` for this context; a failed engine gives a Reply with `error` set."""
        ...

    async def repair(self, context: ProposalContext, index: int, reply: Reply, hint: str) -> Reply:
        """One more try of reply `index` after its edit did not apply.

        Returns the reply unchanged where the proposer cannot repair.
        """
        ...


class Grader(Protocol):
    """Grades answers outside the harness's sandbox, itself confined where it runs code or can hang."""

    async def grade(self, gold: Gold, answer: str) -> Grade:
        """Grade one answer; never raises for anything an answer holds.

        Raises:
            SandboxError: The confinement itself broke.
        """
        ...
