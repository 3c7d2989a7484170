"""The functions that revisions insert, each by itself. Parts are harness text: executed here as one would be."""

import subprocess
import sys
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from hl.proposer.catalog.parts import load_part
from tests.proposer.kit import SEEDS


def function(part: str, name: str) -> Callable[..., Any]:
    space: dict[str, Any] = {}
    exec(load_part(part), space)
    return space[name]


def test_every_part_is_used_and_parses() -> None:
    steps = "".join(p.read_text() for p in (SEEDS.parent / "proposer" / "catalog").glob("*.py"))
    for path in (SEEDS / "parts").glob("*.py"):
        compile(path.read_text(encoding="utf-8"), path.name, "exec")
        assert f'"{path.stem}"' in steps, path


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("49.0", "49"),
        ("2.7064999999999997", "2.7065"),
        ("-51.186199999999985", "-51.1862"),
        ("1,234", "1234"),
        (" 7 ", "7"),
        ("3.10", "3.1"),
        ("-0.0", "0"),
        ("1e3", "1000"),
        ("0.00000000012", "0.00000000012"),
        ("123456789012345678901", "123456789012345678901"),
        ("007", "007"),
        ("nan", "nan"),
        ("1e400", "1e400"),
        ("a 1.0", "a 1.0"),
        ("[1.0]", "[1.0]"),
        ("", ""),
    ],
)
def test_plain_numbers(text: str, wanted: str) -> None:
    assert function("numbers", "plain_number")(text) == wanted


@pytest.mark.parametrize(
    ("code", "wanted"),
    [
        ("print((1 + 2)", "print((1 + 2))"),
        ("print(sum([1, 2))", "print(sum([1, 2]))"),
        ("print(1))", "print(1)"),
        ("print('a", "print('a')"),
        ("print(1)", "print(1)"),
        ("print('(')", "print('(')"),
        ("if x print", "if x print"),
        ("", ""),
    ],
)
def test_brackets_are_balanced_or_left(code: str, wanted: str) -> None:
    assert function("brackets", "close_brackets")(code) == wanted


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("so <answer> 4 </answer>", "4"),
        ("First 3.\nThe answer is 4.", "4"),
        ("**Answer: 4**", "4"),
        ("It is \\boxed{4}", "4"),
        ("1 + 3 = 4.", "4"),
        ("The final result: `blue`", "blue"),
        ("4", "4"),
        ("x\n\n```\n", "x"),
        ("", ""),
    ],
)
def test_final_answers(text: str, wanted: str) -> None:
    assert function("final_answer", "final_answer")(text) == wanted


def test_last_numbers() -> None:
    last = function("last_number", "last_number")
    assert [last(t) for t in ("from 3 to 1,204.", "-2.50", "none")] == ["1204", "-2.50", "none"]


@pytest.mark.parametrize(
    ("reply", "wanted"),
    [
        ("```python\nprint(1)\n```", "print(1)"),
        ("Sure:\n``` py\nprint(1)", "print(1)"),
        ("print(1)", "print(1)"),
        ("Use this:\nx = 2\nprint(x)\nDone!", "x = 2\nprint(x)"),
        ("`max(3, 4)`", "print(max(3, 4))"),
        ("I do not know.", ""),
        ("", ""),
    ],
)
def test_programs_are_found_without_a_fence(reply: str, wanted: str) -> None:
    assert function("fences", "extract_code")(reply) == wanted


def test_the_prelude_gives_what_programs_forget() -> None:
    code = function("imports", "with_imports")(
        "print(gcd(12, 18), sqrt(9), Counter('aab')['a'], pow(2, 5, 7))"
    )
    done = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout == "6 3.0 2 4\n", done.stderr


def test_the_suggested_name_is_taken() -> None:
    ran: list[str] = []

    def python(code: str) -> SimpleNamespace:
        ran.append(code)
        bad = "LCM(" in code
        error = "NameError: name 'LCM' is not defined. Did you mean: 'lcm'?" if bad else ""
        return SimpleNamespace(stdout="" if bad else "20\n", error=error)

    result = function("names", "run_with_suggestions")(SimpleNamespace(python=python), "print(LCM(4, 5))")
    assert result.stdout == "20\n"
    assert ran == ["print(LCM(4, 5))", "print(lcm(4, 5))"]


def test_the_closest_demonstration_is_last() -> None:
    shown = function("nearest", "nearest")(
        [("What is 3 + 4?", "a"), ("Spell lamp.", "b"), *((f"Name {i}", "c") for i in range(9))],
        "What is 31 + 7?",
    )
    assert len(shown) == 5
    assert shown[-1] == ("What is 3 + 4?", "a")
