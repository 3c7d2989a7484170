"""Tokens a second of a real model through all of hl, over llama.cpp alone on the same prompts.

*Alone* is what one would write without hl: a server of eight slots and as many threads that call it, the library's
own choice of slot and its own prompt cache, with hl's speed settings (so that only hl's part is compared). *hl* is the
whole evaluate room: engine, sandbox, broker, budgets, cache and grading, on the processors that the model wants too.
Prompts are short questions, or the same questions behind a prefix of demonstrations, as a harness sends them; each
reply has exactly `REPLY_TOKENS` tokens. The best run of each side counts, taken in turns: what else the machine does
only slows a run down.
"""

import asyncio
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from queue import Empty, SimpleQueue

from bench import loop
from bench.lines import Line, at_least
from hl.engines.base import EngineSpec, open_engine
from hl.engines.llama_server import LlamaServer
from hl.engines.weights import locate
from hl.evaluate import Work
from hl.solver import SolverSettings
from hl.types import ChatRequest, Gold, Harness, Message, Question, QuestionSet, Role

COUNT, REPLY_TOKENS = 64, 32
SLOTS, THREADS, CONTEXT = 8, 2, 2048
_PREFIX = "".join(f"Question: what is {i} plus {i + 3}?\nAnswer: {2 * i + 3}\n\n" for i in range(30))
"""About 500 tokens."""


def _questions() -> list[str]:
    return [f"Question: what is {i} times {i + 1}, and why?\nAnswer:" for i in range(COUNT)]


def _alone(prompts: Sequence[str]) -> float:
    """Tokens a second of llama.cpp alone."""
    server = LlamaServer(locate("smollm2"), slots=SLOTS, threads=THREADS, context_tokens=CONTEXT)
    left: SimpleQueue[str] = SimpleQueue()
    for prompt in prompts:
        left.put(prompt)
    tokens: list[int] = []

    def work() -> None:
        while True:
            try:
                prompt = left.get_nowait()
            except Empty:
                return
            body = {
                "messages": [{"role": "user", "content": prompt}],
                "max_tokens": REPLY_TOKENS,
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


def _work(prefix: str) -> Work:
    """The same prompts, asked by a harness."""
    text = f"PREFIX = {prefix!r}\n\n\ndef solve(model, question):\n    return model(PREFIX + question)\n"
    ids = [f"{i:016x}" for i in range(COUNT)]
    block = QuestionSet(
        Role.SCORING,
        tuple(Question(i, t) for i, t in zip(ids, _questions(), strict=True)),
        tuple(Gold(i, "42", "{}") for i in ids),
    )
    return Work(Harness((("harness.py", text),)), block)


async def _through_hl(prefix: str) -> float:
    """Tokens a second through the evaluate room."""
    spec = EngineSpec(
        "llamacpp",
        model="smollm2",
        slots=SLOTS,
        threads=THREADS,
        context_tokens=CONTEXT,
        extra_body={"ignore_eos": True},
    )
    model = open_engine(spec)
    try:
        # Loads the model, which is measured on no side.
        await model.chat(ChatRequest((Message("user", "Hello"),), 1, 0.0))
        with tempfile.TemporaryDirectory(prefix="hl-bench-") as folder:
            settings = SolverSettings(max_tokens=REPLY_TOKENS)
            ran, attempts = await loop.run(Path(folder), model, [_work(prefix)], settings)
        return sum(a.completion_tokens for a in attempts) / ran.wall_s
    finally:
        await model.aclose()


def lines(repeats: int) -> Iterator[Line]:
    """One line a kind of prompt."""
    for what, prefix in (("short prompts", ""), ("prompts that share a prefix", _PREFIX)):
        alone: list[float] = []
        through: list[float] = []
        for _ in range(repeats):
            alone.append(_alone([prefix + question for question in _questions()]))
            through.append(asyncio.run(_through_hl(prefix)))
        ratio = max(through) / max(alone)
        shown = f"{ratio:.2f} ({max(through):.0f}/{max(alone):.0f})"
        yield at_least(f"tokens/s over bare llama.cpp, {what}", ratio, shown, 0.9)
