"""What can be swapped: engines, proposers and graders, and what passes between them and us."""

from dataclasses import dataclass
from typing import Protocol

from hl.types.harness import Harness, Reply
from hl.types.questions import Gold, Grade, TaskSpec
from hl.types.reports import Report


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
