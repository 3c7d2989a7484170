"""Demonstrations: question -> program pairs, general ones and those drawn from the feedback runs.

The general sets show what programs can do, on questions of our own that belong to no task. Bootstrapped ones are
programs that the model itself wrote for a feedback question and that were graded right. The text of a demonstration
ends up inside a prompt: the model still writes the program for every new question.
"""

import ast
import re
import warnings
from collections.abc import Sequence

from hl.report import SOLVED
from hl.types import Case, Report

Demonstration = tuple[str, str]
"""A question and a program that prints its answer."""

MAX_CHARS = 700
"""Longest demonstration that is used (ours): a small solver's context is short."""
TOTAL_CHARS = 2400
"""All drawn demonstrations of one harness together (ours)."""
SHOWN = 4
"""Most drawn demonstrations in one harness (ours): a fifth was not seen to help."""

ARITHMETIC: tuple[Demonstration, ...] = (
    ("What is 17 plus 25, minus 8?", "print(17 + 25 - 8)"),
    ("Compute 12 * 30 * 4.", "print(12 * 30 * 4)"),
    ("What is the remainder when 1234 is divided by 7?", "print(1234 % 7)"),
    ("How many even numbers lie between 1 and 20?", "print(sum(1 for n in range(1, 21) if n % 2 == 0))"),
    ("Write the word lamp in capital letters.", "print('lamp'.upper())"),
    ("Sort these numbers from small to large: 9, 4, 7", "print(sorted([9, 4, 7]))"),
    ("Work out 7.5 - 2.25 - 1.", "print(7.5 - 2.25 - 1)"),
    ("What is 81 - 46 + 3?", "print(81 - 46 + 3)"),
)
"""The set of the seed `interpreter`. A small model copies most from the last one, so the sets end differently: this one
in sums, TEXTS in texts."""
LOOPS: tuple[Demonstration, ...] = (
    ("What is 81 - 46 + 3?", "print(81 - 46 + 3)"),
    ("Add up the squares of the numbers from 1 to 30.", "print(sum(n ** 2 for n in range(1, 31)))"),
    ("Which numbers below 40 can be divided by 9?", "print([n for n in range(1, 40) if n % 9 == 0])"),
    ("What do the digits of 7305 add up to?", "print(sum(int(d) for d in str(7305)))"),
    (
        "How many steps does it take to halve 600 until it is below 10?",
        "n = 600\nsteps = 0\nwhile n >= 10:\n    n = n / 2\n    steps = steps + 1\nprint(steps)",
    ),
    ("What is the largest of 31, 74 and 12?", "print(max(31, 74, 12))"),
)
"""Loops, conditions and properties of whole numbers."""
TEXTS: tuple[Demonstration, ...] = (
    ("What is 81 - 46 + 3?", "print(81 - 46 + 3)"),
    ("Write the word lamp in capital letters.", "print('lamp'.upper())"),
    ("How long is the word window?", "print(len('window'))"),
    (
        "Put the words pear, fig, apple into alphabetical order.",
        "print(', '.join(sorted(['pear', 'fig', 'apple'])))",
    ),
    ("Write 3.14159 with two decimals.", "print(format(3.14159, '.2f'))"),
    ("Replace every blank in 'a cup of tea' by a dash.", "print('a cup of tea'.replace(' ', '-'))"),
    ("What is the last word of: the boat left at dawn", "print('the boat left at dawn'.split()[-1])"),
)
"""Words, lists and number formats."""
GENERAL = {"arithmetic": ARITHMETIC, "loops": LOOPS, "texts": TEXTS}


def render_demonstrations(pairs: Sequence[Demonstration]) -> str:
    """A list literal, one pair a line."""
    return "[\n" + "".join(f"    {render_pair(pair)},\n" for pair in pairs) + "]"


def render_pair(pair: tuple[str, str]) -> str:
    """A tuple literal of two texts."""
    return f"({_quoted(pair[0])}, {_quoted(pair[1])})"


def _quoted(text: str) -> str:
    """A string literal in double quotes where that needs no escapes."""
    literal = repr(text)
    return literal if '"' in text or literal.startswith('"') else f'"{literal[1:-1]}"'


def render_examples(pairs: Sequence[tuple[str, str]]) -> str:
    """The same for solved questions."""
    return render_demonstrations(pairs)


def bootstrapped(report: Report) -> tuple[Demonstration, ...]:
    """Programs from feedback runs that were graded right, short ones first, no two of the same shape beyond two."""
    found: list[Demonstration] = []
    for case in report.successes:
        code = written_code(case)
        if code and case.grade >= SOLVED and len(case.question) + len(code) <= MAX_CHARS:
            found.append((case.question.strip(), code))
    return choose(found)


def solved_questions(report: Report) -> tuple[tuple[str, str], ...]:
    """Feedback questions with their reference answers, short ones first."""
    pairs = [
        (case.question.strip(), gold.strip())
        for case in (*report.failures, *report.successes)
        if (gold := case.gold) is not None and gold.strip() and len(case.question) + len(gold) <= MAX_CHARS
    ]
    return choose(pairs)


def choose(pairs: Sequence[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    """Few short pairs that look different, within the budget; the plainest last, where a model copies from most."""
    pairs = sorted(set(pairs), key=lambda p: (len(p[0]) + len(p[1]), p))
    groups: dict[str, list[tuple[str, str]]] = {}
    for pair in pairs:
        groups.setdefault(re.sub(r"[^\W\d_]+|\d+(?:\.\d+)?", "x", pair[1]), []).append(pair)
    # A shape that was right several times is less likely to be luck than one that was right once.
    ranked = sorted(groups.values(), key=len, reverse=True)
    order = [group[i] for i in range(len(pairs)) for group in ranked if i < len(group)]
    kept: list[tuple[str, str]] = []
    size = 0
    for question, answer in order:
        if len(kept) < SHOWN and size + len(question) + len(answer) <= TOTAL_CHARS:
            kept.append((question, answer))
            size += len(question) + len(answer)
    return tuple(reversed(kept))


def written_code(case: Case) -> str:
    """The program behind a case's answer as the model wrote it: the last fenced block before the last run."""
    runs = [i for i, event in enumerate(case.trace) if event.kind == "python" and not event.error]
    if not runs:
        return ""
    for event in reversed(case.trace[: runs[-1]]):
        if event.kind == "chat" and (
            blocks := re.findall(r"```(?:python)?[ \t]*\n(.*?)```", event.reply, re.DOTALL)
        ):
            code = blocks[0].strip("\n").rstrip()
            return code if _parses(code) and "print" in code else ""
    return ""


def _parses(code: str) -> bool:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(code[: MAX_CHARS + 1])
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return bool(code)
