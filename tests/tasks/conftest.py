"""Three questions of every family, made once, and graded once in the real sandbox."""

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import hl
from hl.sandbox.host import Limits, Sandbox
from hl.tasks.base import GRADE_MEMORY_MB
from hl.tasks.codec import decode
from hl.tasks.families import FAMILIES
from hl.tasks.reasoning_gym import ReasoningGymTask
from hl.types import Gold, Grade

NAMES = sorted(name for name, family in FAMILIES.items() if family.status != "refused")
EACH = 3

_PROGRAM = f"""
import json, sys
sys.path.append({str(Path(hl.__file__).parent.parent)!r})
from hl.tasks import generate
for family in json.load(sys.stdin):
    def write(message):
        sys.__stdout__.write(json.dumps([family, message]) + "\\n")
    sys.stdout = sys.stderr
    generate.serve({{"family": family, "params": {{}}, "roles": [["evaluation", 3, {EACH}]]}}, write)
"""

HOSTILE = {
    "nonsense": "qwjx vbnk",
    "power": "9**9**9**9",
    "code": "__import__('os').system('touch /tmp/hl-graded')",
    "nan": "nan",
    "exponent": "1e999999999",
    "digits": "9" * 5000,
    "brackets": "[" * 3000,
    "controls": "\x00\x1b[2J\u202e\ud800\r",
    "long": "x" * 10_000_000,
}
"""Answers that must cost nothing but their own grade."""


@pytest.fixture(scope="session")
def entries() -> dict[str, list[dict[str, Any]]]:
    """Items of `generate.py` by family: all families in one process, or starting up would take minutes."""
    done = subprocess.run(
        [sys.executable, "-s", "-P", "-W", "ignore", "-c", _PROGRAM],
        input=json.dumps(NAMES),
        capture_output=True,
        text=True,
        env={"PYTHONHASHSEED": "0", "OMP_NUM_THREADS": "1"},
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in NAMES}
    for line in done.stdout.splitlines():
        family, message = json.loads(line)
        assert "usage" not in message, message
        if "item" in message:
            found[family].append(message["item"])
    return found


def gold_of(item: dict[str, Any]) -> Gold:
    return Gold(item["id"], item["answer"], json.dumps(item["entry"], separators=(",", ":")))


def known_answer(item: dict[str, Any]) -> str | None:
    """A right answer: the gold, or the example that some families without a gold keep."""
    if item["answer"] is not None:
        return item["answer"]
    for key in ("example_answer", "possible_answer", "example_correct_answer"):
        if value := decode(item["entry"])["metadata"].get(key):
            return value if isinstance(value, str) else json.dumps(value)
    return None


@pytest.fixture(scope="session")
def graded(entries: dict[str, list[dict[str, Any]]]) -> dict[tuple[str, str], list[Grade]]:
    """Grades by (family, case): `gold` on every question, the others on the first."""

    async def grade_all() -> dict[tuple[str, str], list[Grade]]:
        limits = Limits(wall_s=30.0, cpu_s=5, memory_mb=GRADE_MEMORY_MB)
        results: dict[tuple[str, str], list[Grade]] = {}
        async with Sandbox(profile="grader") as sandbox:
            for family in NAMES:
                grader = ReasoningGymTask.open(family, {}).grader(partial(sandbox.function, limits=limits))
                items = entries[family]
                cases = [("gold", item, known_answer(item) or "") for item in items]
                cases += [(case, items[0], text) for case, text in HOSTILE.items()]
                cases.append(("evaluates", items[0], f"str({known_answer(items[0])!r})"))
                grades = await asyncio.gather(*(grader.grade(gold_of(item), text) for _, item, text in cases))
                for (case, _, _), grade in zip(cases, grades, strict=True):
                    results.setdefault((family, case), []).append(grade)
        return results

    return asyncio.run(grade_all())


@pytest.fixture
def marker_file() -> Iterator[Path]:
    """What the `code` answer would make if it ran outside."""
    path = Path("/tmp/hl-graded")
    yield path
    path.unlink(missing_ok=True)
