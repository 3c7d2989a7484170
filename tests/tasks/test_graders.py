"""Confined graders in the real sandbox: what runs for years or reaches out ends as a grade."""

import asyncio
import json
from functools import partial
from pathlib import Path

from hl.sandbox.host import Limits, Sandbox
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
