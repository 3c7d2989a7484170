"""Tokens a second of a real model through the whole evaluate room, over llama.cpp alone on the same prompts.

`engine.py` compares hl's engine; the room adds sandbox, broker, budgets, cache and grading, on the processors that the
model wants too. The best run of each side counts, taken in turns: what else the machine does only slows a run down.
"""

import asyncio
import tempfile
from pathlib import Path

from bench import engine, loop
from bench.lines import Line, at_least
from hl.engines.base import EngineSpec, open_engine
from hl.evaluate import Work
from hl.solver import SolverSettings
from hl.types import ChatRequest, Gold, Harness, Message, Question, QuestionSet, Role

COUNT = 64


def _work(prefix: str) -> Work:
    """The same prompts as `engine.prompts`, asked by a harness."""
    text = f"PREFIX = {prefix!r}\n\n\ndef solve(model, question):\n    return model(PREFIX + question)\n"
    texts = [request.messages[0].content for request in engine.prompts(COUNT)]
    ids = [f"{i:016x}" for i in range(COUNT)]
    block = QuestionSet(
        Role.SCORING,
        tuple(Question(i, t) for i, t in zip(ids, texts, strict=True)),
        tuple(Gold(i, "42", "{}") for i in ids),
    )
    return Work(Harness((("harness.py", text),)), block)


async def _room(prefix: str) -> float:
    """Tokens a second through the evaluate room."""
    spec = EngineSpec(
        "llamacpp",
        model="smollm2",
        slots=engine.SLOTS,
        threads=engine.THREADS,
        context_tokens=engine.CONTEXT,
        extra_body={"ignore_eos": True},
    )
    model = open_engine(spec)
    try:
        # Loads the model, which is measured on no side.
        await model.chat(ChatRequest((Message("user", "Hello"),), 1, 0.0))
        with tempfile.TemporaryDirectory(prefix="hl-bench-") as folder:
            settings = SolverSettings(max_tokens=engine.REPLY_TOKENS)
            ran, attempts = await loop.run(Path(folder), model, [_work(prefix)], settings)
        return sum(a.completion_tokens for a in attempts) / ran.wall_s
    finally:
        await model.aclose()


def lines(repeats: int) -> list[Line]:
    """One line a kind of prompt."""
    result: list[Line] = []
    for what, prefix in (("short prompts", ""), ("prompts that share a prefix", engine.PREFIX)):
        alone: list[float] = []
        room: list[float] = []
        for _ in range(repeats):
            alone.append(engine.bare(engine.prompts(COUNT, prefix)))
            room.append(asyncio.run(_room(prefix)))
        ratio = max(room) / max(alone)
        shown = f"{ratio:.2f} ({max(room):.0f}/{max(alone):.0f})"
        result.append(at_least(f"tokens/s of all hl over llama.cpp, {what}", ratio, shown, 0.9))
    return result
