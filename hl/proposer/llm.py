"""Room 3 with a language model: any engine becomes a proposer.

Promises: proposal `index` of a context is a function of context and index alone (its seed); a failed engine is a reply
with `error` set, never an exception, run limits aside. It does not parse the reply.
"""

import hashlib
import time

from hl.errors import EngineError
from hl.proposer.prompt import render_messages, render_repair
from hl.types import ChatRequest, Engine, Message, ProposalContext, Reply


class LlmProposer:
    """A proposer over an engine, which comes behind cache and meter.

    Args:
        engine: Who writes.
        temperature: Of every reply; above 0, or the K replies of a round are one.
        max_tokens: Most tokens of a reply.
        context_tokens: Prompt and reply together.
        report_tokens: Most tokens of the report in the prompt.
    """

    def __init__(
        self,
        engine: Engine,
        *,
        temperature: float = 0.6,
        max_tokens: int = 16_384,
        context_tokens: int = 32_768,
        report_tokens: int = 8192,
    ) -> None:
        self._engine = engine
        self._temperature = temperature
        self._max_tokens = max_tokens
        self._prompt_tokens = context_tokens - max_tokens
        self._report_tokens = report_tokens

    @property
    def name(self) -> str:
        """Readable identity."""
        return f"llm {self._engine.name}"

    async def propose(self, context: ProposalContext, index: int, count: int) -> Reply:
        """Reply number `index`."""
        return await self._ask(self._messages(context), _seed(context, index))

    async def repair(self, context: ProposalContext, reply: Reply, hint: str) -> Reply:
        """The same conversation, with the reply and why it did not apply."""
        turns = (Message("assistant", reply.text), Message("user", render_repair(hint)))
        digest = hashlib.sha256(reply.text.encode("utf-8", "replace")).digest()
        return await self._ask(
            self._messages(context) + turns, _seed(context, int.from_bytes(digest[:2], "big"))
        )

    def _messages(self, context: ProposalContext) -> tuple[Message, ...]:
        return render_messages(context, max_tokens=self._prompt_tokens, report_tokens=self._report_tokens)

    async def _ask(self, messages: tuple[Message, ...], seed: int) -> Reply:
        started = time.monotonic()
        request = ChatRequest(messages, self._max_tokens, self._temperature, seed=seed)
        try:
            reply = await self._engine.chat(request)
        except EngineError as error:
            return Reply("", error=error.message, seconds=time.monotonic() - started)
        return Reply(
            text=reply.text,
            finish_reason=reply.finish_reason,
            prompt_tokens=reply.prompt_tokens,
            completion_tokens=reply.completion_tokens,
            cost=reply.cost,
            seconds=reply.seconds,
        )


def _seed(context: ProposalContext, index: int) -> int:
    """A 31-bit seed; consecutive for the K proposals of a round."""
    return (context.seed * 1009 + index) % 2**31
