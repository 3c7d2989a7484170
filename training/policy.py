"""The model in training as an engine: what rolls the chains of multi-step training is the model that is trained."""

import asyncio
from typing import Any

from hl.engines.base import digest_of
from hl.errors import EngineError
from hl.types import ChatReply, ChatRequest
from training.models import Trainee, sample


class Policy:
    """An `Engine` over a model in this process.

    Args:
        trainee: Tokenizer and template.
        model: Its model, as it `generate`s; used from one thread at a time.
        version: What tells this state of the weights from others of any run.
        batch: Requests computed together.
    """

    def __init__(self, trainee: Trainee, model: Any, version: str, *, batch: int) -> None:
        self.name = f"policy {version}"
        self.digest = digest_of(engine="policy", version=version)
        self.concurrency = batch
        self._trainee = trainee
        self._model = model
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
        samples = sample(
            self._model,
            self._trainee.tokenizer,
            [ids for ids in rendered if ids is not None],
            [r.seed for r in requests],
            max_tokens=requests[0].max_tokens,
            temperature=requests[0].temperature,
        )
        return [
            ChatReply(
                s.reply.text, s.reply.finish_reason, s.reply.prompt_tokens, s.reply.completion_tokens, 0.0
            )
            for s in samples
        ]

    async def aclose(self) -> None:
        """The model belongs to the trainer."""


def _key(request: ChatRequest) -> tuple[int, float]:
    return request.max_tokens, request.temperature
