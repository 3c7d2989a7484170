"""The model in training as an engine: what rolls the chains of multi-step training is the model that is trained."""

import asyncio

from hl.engines.base import digest_of
from hl.errors import EngineError
from hl.types import ChatReply, ChatRequest
from training.models import Ask, Draw, Trainee


class Policy:
    """An `Engine` over what draws the replies of training.

    Args:
        trainee: Tokenizer and template.
        draw: Its replies; used from one thread at a time.
        version: What tells this state of the weights from others of any run.
        batch: Requests computed together.
    """

    def __init__(self, trainee: Trainee, draw: Draw, version: str, *, batch: int) -> None:
        self.name = f"policy {version}"
        self.digest = digest_of(engine="policy", version=version)
        self.concurrency = batch
        self._trainee = trainee
        self._draw = draw
        self._waiting: list[tuple[ChatRequest, asyncio.Future[ChatReply]]] = []
        self._worker: asyncio.Task[None] | None = None

    async def chat(self, request: ChatRequest) -> ChatReply:
        """Complete one conversation, together with whatever waits; see `Engine.chat`."""
        answer: asyncio.Future[ChatReply] = asyncio.get_running_loop().create_future()
        self._waiting.append((request, answer))
        if self._worker is None or self._worker.done():
            self._worker = asyncio.create_task(self._serve())
        return await answer

    async def _serve(self) -> None:
        await asyncio.sleep(0)  # whoever asks in this turn of the loop joins the batch
        while self._waiting:
            first = self._waiting[0][0]
            # One length and temperature a batch: the requests of a round share them.
            alike = [w for w in self._waiting if _key(w[0]) == _key(first)][: self.concurrency]
            self._waiting = [w for w in self._waiting if w not in alike]
            try:
                replies = await asyncio.to_thread(self._answer, [r for r, _ in alike])
            except Exception as error:
                for _, answer in alike:
                    if not answer.done():
                        answer.set_exception(error)
                continue
            for (_, answer), reply in zip(alike, replies, strict=True):
                if not answer.done():
                    answer.set_result(reply)

    def _answer(self, requests: list[ChatRequest]) -> list[ChatReply]:
        rendered = [self._trainee.template.render(request.messages) for request in requests]
        if None in rendered:
            raise EngineError("the chat template refuses the conversation of a round")
        asks = [
            Ask(tuple(ids), r.seed, r.max_tokens, r.temperature)
            for ids, r in zip(rendered, requests, strict=True)
            if ids is not None
        ]
        replies = {at: sample.reply for at, sample in self._draw(asks)}
        return [
            ChatReply(r.text, r.finish_reason, r.prompt_tokens, r.completion_tokens, 0.0)
            for r in (replies[at] for at in range(len(asks)))
        ]

    async def aclose(self) -> None:
        """The model belongs to the trainer."""


def _key(request: ChatRequest) -> tuple[int, float]:
    return request.max_tokens, request.temperature
