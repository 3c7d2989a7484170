"""A language model as proposer, through any engine.

Promises: a failed engine is a Reply with `error`, never an exception; the reply's text is passed on as it came. Each of
the K proposals has a seed of its own, a function of the context's seed and the index, so that a repeated run asks the
same. Limits of the run (`StoppedEarly`) pass through: they are no failure of the proposer.
"""

from collections.abc import Callable

from hl.errors import EngineError, MissingExtraError
from hl.proposer.prompt import render_messages, render_repair, split_context
from hl.types import ChatRequest, Engine, Message, ProposalContext, Reply

SEED_STEP = 100_003
"""Seeds of neighbouring rounds stay apart for any K (a prime; ours)."""


class LlmProposer:
    """Asks an engine for edits.

    Args:
        engine: Behind cache and meter in production.
        temperature: Sampling temperature; above 0, or all K proposals are the same.
        max_tokens: Longest reply.
        context_tokens: Room for prompt and reply together.
        report_tokens: Most tokens of the report.
        count: Counts tokens; by default characters / 3.5.
        style: Of the prompt: `full` or `brief`.
    """

    def __init__(
        self,
        engine: Engine,
        *,
        temperature: float = 0.6,
        max_tokens: int = 16_384,
        context_tokens: int = 32_768,
        report_tokens: int = 6000,
        count: Callable[[str], int] | None = None,
        style: str = "full",
    ) -> None:
        self.name = f"llm {engine.name}"
        self._engine = engine
        self._temperature = temperature
        self._room, self._max_tokens = split_context(context_tokens, max_tokens)
        self._report_tokens = report_tokens
        self._count = count
        self._style = style

    async def propose(self, context: ProposalContext, index: int, count: int) -> Reply:
        """Reply number `index` of `count`."""
        return await self._ask(self._messages(context), _seed(context, index))

    async def repair(self, context: ProposalContext, index: int, reply: Reply, hint: str) -> Reply:
        """One more try, with the failed reply and the hint in view."""
        messages = render_repair(
            self._messages(context), reply.text, hint, max_tokens=self._room, count=self._count
        )
        return await self._ask(messages, _seed(context, index))

    def _messages(self, context: ProposalContext) -> tuple[Message, ...]:
        return render_messages(
            context,
            max_tokens=self._room,
            report_tokens=self._report_tokens,
            count=self._count,
            style=self._style,
        )

    async def _ask(self, messages: tuple[Message, ...], seed: int) -> Reply:
        request = ChatRequest(messages, self._max_tokens, self._temperature, seed=seed)
        try:
            answer = await self._engine.chat(request)
        except (EngineError, MissingExtraError) as error:
            return Reply("", error=error.message or "the engine failed")
        return Reply(
            text=answer.text,
            finish_reason="length" if answer.finish_reason == "length" else "stop",
            prompt_tokens=answer.prompt_tokens,
            completion_tokens=answer.completion_tokens,
            cost=answer.cost,
            seconds=answer.seconds,
        )


def _seed(context: ProposalContext, index: int) -> int:
    return (context.seed * SEED_STEP + context.round * 1009 + index) % 2**31
