"""A few questions of every family, made in two processes, and graded once in the real sandbox."""

import asyncio
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import IO, Any

import pytest

import hl
from hl.sandbox.host import Limits, Sandbox
from hl.tasks.base import GRADE_MEMORY_MB
from hl.tasks.codec import decode
from hl.tasks.families import FAMILIES
from hl.tasks.formats import PARAMETER, VARIED, form_of, vary
from hl.tasks.reasoning_gym import ReasoningGymTask, generator_environment
from hl.types import Gold, Grade, Role

NAMES = sorted(name for name, family in FAMILIES.items() if family.status != "refused")
EACH = 3
"""Evaluation questions, which are graded; of the other sets one each."""
ROLES = [[str(role), i, EACH if role is Role.EVALUATION else 1] for i, role in enumerate(Role)]

_PROGRAM = f"""
import json, sys
sys.path.append({str(Path(hl.__file__).parent.parent)!r})
from hl.tasks import generate
for family in json.load(sys.stdin):
    def write(message):
        sys.__stdout__.write(json.dumps([family, message]) + "\\n")
    sys.stdout = sys.stderr
    generate.serve({{"family": family, "params": {{}}, "roles": {ROLES!r}}}, write)
"""

HOSTILE = {
    "nonsense": "qwjx vbnk",
    "power": "9**9**9**9",
    "code": "__import__('os').system('touch /tmp/hl-graded')",
    "none": "None",
    "nan": "nan",
    "exponent": "1e999999999",
    "digits": "9" * 5000,
    "brackets": "[" * 3000,
    "controls": "\x00\x1b[2J\u202e\ud800\r",
    "long": "x" * 10_000_000,
}
"""Answers that must cost nothing but their own grade."""


def start(hash_seed: str, out: IO[str]) -> "subprocess.Popen[str]":
    """The generator for a user with that hash seed: all families in one process, or starting up would take minutes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONHASHSEED", hash_seed)
        environment = generator_environment()
    child = subprocess.Popen(
        [sys.executable, "-s", "-P", "-W", "ignore", "-c", _PROGRAM],
        stdin=subprocess.PIPE,
        stdout=out,
        stderr=subprocess.DEVNULL,
        text=True,
        env=environment,
    )
    assert child.stdin is not None
    child.stdin.write(json.dumps(NAMES))
    child.stdin.close()
    return child


@pytest.fixture(scope="session")
def drawn() -> tuple[dict[str, list[dict[str, Any]]], ...]:
    """Messages of `generate.py` with an item, by family: from two processes whose users have different hash seeds."""
    found: list[dict[str, list[dict[str, Any]]]] = []
    with tempfile.TemporaryFile("w+") as one, tempfile.TemporaryFile("w+") as two:
        children = [(start("1", one), one), (start("12345", two), two)]
        for child, out in children:
            assert child.wait() == 0
            out.seek(0)
            items: dict[str, list[dict[str, Any]]] = {name: [] for name in NAMES}
            for line in out:
                family, message = json.loads(line)
                assert "usage" not in message and "failed" not in message, message
                if "item" in message:
                    items[family].append(message)
            found.append(items)
    return tuple(found)


@pytest.fixture(scope="session")
def entries(drawn: tuple[dict[str, list[dict[str, Any]]], ...]) -> dict[str, list[dict[str, Any]]]:
    """The evaluation items by family."""
    return {
        name: [message["item"] for message in messages if message["role"] == Role.EVALUATION]
        for name, messages in drawn[0].items()
    }


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
    """Grades by (family, case): `gold` on every question, the others on the first; two of its format-varied twin."""

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
                varied = ReasoningGymTask.open(family, {PARAMETER: VARIED}).grader(
                    partial(sandbox.function, limits=limits)
                )
                _, gold = vary(items[0]["id"], items[0]["question"], items[0]["answer"], items[0]["entry"])
                right = known_answer(items[0]) or ""
                results[family, "asked form"] = [
                    await varied.grade(gold, form_of(gold).render(right.strip()))
                ]
                results[family, "bare"] = [await varied.grade(gold, right)]
        return results

    return asyncio.run(grade_all())


@pytest.fixture
def marker_file() -> Iterator[Path]:
    """What the `code` answer would make if it ran outside."""
    path = Path("/tmp/hl-graded")
    yield path
    path.unlink(missing_ok=True)
