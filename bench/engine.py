"""Tokens a second through hl's llama.cpp engine over llama.cpp called directly, on the same prompts.

*Bare* is what one would write without hl: a server of eight slots and as many threads that call it, the library's own
choice of slot and its own prompt cache, with hl's speed settings (so that only hl's part is compared). Prompts are
short questions, or the same questions behind a prefix of demonstrations, as a harness sends them. Each reply has
exactly `REPLY_TOKENS` tokens. `through_hl` takes any `Solve`, so that a solver around the engine can be measured alike.
"""

import asyncio
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Sequence
from queue import Empty, SimpleQueue
from typing import Any

from bench.lines import Line, at_least
from hl.engines.base import EngineSpec, open_engine
from hl.engines.llama_server import LlamaServer
from hl.engines.weights import locate
from hl.types import ChatRequest, Message

REPLY_TOKENS = 32
SLOTS, THREADS, CONTEXT = 8, 2, 2048
PREFIX = "".join(f"Question: what is {i} plus {i + 3}?\nAnswer: {2 * i + 3}\n\n" for i in range(30))
"""About 500 tokens."""
Solve = Callable[[ChatRequest], Awaitable[Any]]
"""Answers one request; what it returns is not looked at."""


def prompts(count: int, prefix: str = "") -> list[ChatRequest]:
    """Distinct questions."""
    texts = [f"{prefix}Question: what is {i} times {i + 1}, and why?\nAnswer:" for i in range(count)]
    return [ChatRequest((Message("user", t),), REPLY_TOKENS, 0.0) for t in texts]


def bare(requests: Sequence[ChatRequest]) -> float:
    """Tokens a second of llama.cpp alone."""
    server = LlamaServer(locate("smollm2"), slots=SLOTS, threads=THREADS, context_tokens=CONTEXT)
    left: SimpleQueue[ChatRequest] = SimpleQueue()
    for request in requests:
        left.put(request)
    tokens: list[int] = []

    def work() -> None:
        while True:
            try:
                request = left.get_nowait()
            except Empty:
                return
            body = {
                "messages": [{"role": m.role, "content": m.content} for m in request.messages],
                "max_tokens": request.max_tokens,
                "temperature": 0.0,
                "ignore_eos": True,
                "stream": True,
                "stream_options": {"include_usage": True},
            }
            tokens.append(server.complete(body, threading.Event()).completion_tokens)

    workers = [threading.Thread(target=work) for _ in range(SLOTS)]
    start = time.perf_counter()
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return sum(tokens) / (time.perf_counter() - start)


async def through_hl(requests: Sequence[ChatRequest], solve: Solve) -> float:
    """Tokens a second of anything that answers requests; all are started at once."""
    start = time.perf_counter()
    await asyncio.gather(*(solve(request) for request in requests))
    return len(requests) * REPLY_TOKENS / (time.perf_counter() - start)


async def _engine(requests: Sequence[ChatRequest]) -> float:
    spec = EngineSpec(
        "llamacpp",
        model="smollm2",
        slots=SLOTS,
        threads=THREADS,
        context_tokens=CONTEXT,
        extra_body={"ignore_eos": True},
    )
    engine = open_engine(spec)
    try:
        # Loads the model, which is not measured on either side.
        await engine.chat(ChatRequest((Message("user", "Hello"),), 1, 0.0))
        return await through_hl(requests, engine.chat)
    finally:
        await engine.aclose()


def lines(repeats: int = 2, count: int = 64) -> list[Line]:
    """The best run of each side, since a busy machine only slows a run; who goes first alternates."""
    result: list[Line] = []
    for what, prefix in (("short prompts", ""), ("prompts that share a prefix", PREFIX)):
        requests = prompts(count, prefix)
        alone: list[float] = []
        through: list[float] = []
        for turn in range(repeats):
            for hl_side in (False, True) if turn % 2 == 0 else (True, False):
                if hl_side:
                    through.append(asyncio.run(_engine(requests)))
                else:
                    alone.append(bare(requests))
        ratio = max(through) / max(alone)
        shown = f"{ratio:.2f} ({max(through):.0f}/{max(alone):.0f})"
        result.append(at_least(f"tokens/s over bare llama.cpp, {count} {what}", ratio, shown, 0.9))
    return result


if __name__ == "__main__":
    for line in lines():
        sys.stdout.write(line.render() + "\n")
