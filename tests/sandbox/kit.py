"""What the sandbox's tests share: harnesses, a session that echoes, a sandbox called synchronously."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from hl.sandbox.host import Answer, JobResult, Limits, PythonResult, Sandbox
from hl.types import Harness

QUICK = Limits(wall_s=20.0, cpu_s=5, memory_mb=256)


def harness(source: str, **others: str) -> Harness:
    """A harness of one file, or of several."""
    files = {"harness.py": source, **{f"{name}.py": text for name, text in others.items()}}
    return Harness(tuple(sorted(files.items())))


class Echo:
    """A session that answers at once, and remembers what it was asked."""

    def __init__(self, answer: Callable[[str, Mapping[str, Any]], Answer] | None = None) -> None:
        self.asked: list[tuple[str, Mapping[str, Any]]] = []
        self._answer = answer

    async def call(self, op: str, args: Mapping[str, Any]) -> Answer:
        """The last message, or what the test said."""
        self.asked.append((op, args))
        if self._answer is not None:
            return self._answer(op, args)
        if op == "chat":
            return Answer(f"echo {args['messages'][-1]['content']}")
        if op == "python":
            return Answer({"stdout": "out", "error": ""})
        if op == "search":
            return Answer([{"title": f"t{i}", "text": args["query"]} for i in range(args["k"])])
        return Answer({"calls": 3, "tokens": 5, "seconds": 7.5})


class Box:
    """A running sandbox, called synchronously."""

    def __init__(self, runner: asyncio.Runner, sandbox: Sandbox) -> None:
        self.runner = runner
        self.sandbox = sandbox

    def solve(
        self,
        source: str,
        question: str = "q",
        *,
        seed: int = 1,
        session: Any = None,
        limits: Limits = QUICK,
        **others: str,
    ) -> JobResult:
        """Run a harness on a question."""
        return self.runner.run(
            self.sandbox.run(
                harness(source, **others), question, seed=seed, session=session or Echo(), limits=limits
            )
        )

    def python(self, code: str, timeout_s: float = 10) -> PythonResult:
        """Run a program."""
        return self.runner.run(self.sandbox.python(code, timeout_s=timeout_s))
