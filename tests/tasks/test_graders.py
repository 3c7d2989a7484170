"""Confined graders in the real sandbox: what runs for years or reaches out ends as a grade."""

import asyncio
import json
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from hl.sandbox.host import Limits, Sandbox
from hl.sandbox.jobs import FunctionResult
from hl.tasks.base import GRADE_MEMORY_MB
from hl.tasks.graders import PythonGrader, ReasoningGymGrader, RegexGrader
from hl.types import Gold, Grade

REACHING = """
def grade(question, answer, gold):
    try:
        open(answer).read()
    except OSError:
        return 0.25
    return 1.0
"""
SPINNING = "def grade(question, answer, gold):\n    while True:\n        pass\n"


def test_confined_graders_are_bounded_and_shut_in(tmp_path: Path) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("gold")
    pattern = Gold("0", "(a+)+b", json.dumps({"answers": ["(a+)+b"]}))
    text = Gold("0", "x", json.dumps({"question": "q"}))

    async def grades() -> list[Grade]:
        limits = Limits(wall_s=60.0, cpu_s=1, memory_mb=GRADE_MEMORY_MB)
        async with Sandbox(profile="grader") as sandbox:
            run = partial(sandbox.function, limits=limits)
            return await asyncio.gather(
                RegexGrader(run).grade(pattern, "aaab"),
                RegexGrader(run).grade(pattern, "a" * 60),
                PythonGrader(REACHING, run).grade(text, str(secret)),
                PythonGrader(SPINNING, run).grade(text, "x"),
                PythonGrader("import hl", run).grade(text, "x"),
                ReasoningGymGrader("no such family", "{}", run).grade(text, "x"),
            )

    match, endless, reaching, spinning, importing, unknown = asyncio.run(grades())
    assert match == Grade(1.0, 1.0)
    assert endless.raw == 0.0 and "timeout" in endless.error
    assert reaching == Grade(0.25, 0.0)
    assert spinning.raw == 0.0 and "timeout" in spinning.error
    assert importing.raw == 0.0 and importing.error
    assert unknown.raw == 0.0 and "KeyError" in unknown.error  # our fault is told from a wrong answer


def test_an_answer_to_a_question_is_graded_once_and_a_failure_is_not_kept() -> None:
    made: list[str] = []

    async def grades() -> list[Grade]:
        async with Sandbox(profile="grader") as sandbox:
            limits = Limits(wall_s=60.0, cpu_s=10, memory_mb=GRADE_MEMORY_MB)

            async def run(source: str, name: str, args: Sequence[Any]) -> FunctionResult:
                made.append(args[-1])
                return await sandbox.function(source, name, args, limits=limits)

            grader = ReasoningGymGrader("gcd", "{}", run)
            one, other = (Gold(str(n), n, json.dumps({"answer": n, "metadata": {}})) for n in ("6", "7"))
            asked = [(one, "6"), (one, " 6\n"), (one, "7"), (other, "6"), (one, "6")]
            found = [await grader.grade(gold, answer) for gold, answer in asked]
            unknown = ReasoningGymGrader("no such family", "{}", run)
            return [*found, *[await unknown.grade(one, "x") for _ in range(2)]]

    right, again, wrong, elsewhere, last, *failed = asyncio.run(grades())
    assert right == again == last == Grade(1.0, 1.0) and wrong.strict == elsewhere.strict == 0.0
    assert made == ["6", "7", "6", "x", "x"] and all(grade.error for grade in failed)
