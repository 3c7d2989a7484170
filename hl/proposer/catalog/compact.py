"""Short replies: an interpreter loop in a dozen lines, for proposers that cannot write many tokens (ours).

The demonstrations are turns of a conversation and the question is announced, since a small solver answers in words to
anything else; the programs run behind a prelude, so that they need no imports; where nothing is printed, the harness
goes on as before. The last
demonstration is the one that a small model copies from most.
"""

from collections.abc import Iterator, Sequence

from hl.proposer.catalog.demonstrations import Demonstration
from hl.proposer.catalog.source import Source, free_name
from hl.proposer.catalog.steps import Step

BELOW_TOKENS = 700
"""The plain loop takes about so many; a proposer that may write fewer is given this one (ours)."""
MOST_DRAWN = 3
"""Most demonstrations that are drawn from the report."""
_SUM: Demonstration = ("Work out 9 - 4 + 3.", "print(9 - 4 + 3)")
_SHORT: Demonstration = ("Add 2 and 3.", "print(2 + 3)")
"""Before drawn ones: what a program is, in as few tokens as that takes."""
_LETTERS: Demonstration = ("How often is e in tree?", 'print("tree".count("e"))')
GENERAL: dict[str, tuple[Demonstration, ...]] = {
    "compact loop": (_LETTERS, ("What is the largest of 3, 7, 5?", "print(max(3, 7, 5))"), _SUM),
    "compact loop on numbers": (
        _SUM,
        ("What is the remainder of 17 by 5?", "print(17 % 5)"),
        ("Write 9 in binary.", "print(bin(9)[2:])"),
    ),
    "compact loop on texts": (
        _SUM,
        ("Write lamp in capital letters.", 'print("lamp".upper())'),
        _LETTERS,
    ),
}
"""Questions of our own, which belong to no task."""


def compact_loop(pairs: Sequence[Demonstration], name: str, *, drawn: bool = False) -> Step:
    """The loop at the head of `solve`.

    Args:
        pairs: Demonstrations of one line each.
        name: In summaries.
        drawn: Whether they come from the report.
    """

    def change(source: Source) -> str | None:
        solve = source.solve()
        if solve is None or not pairs or source.calls("python") or len(solve.args.args) != 2:
            return None
        first = solve.body[0]
        start = source.starts[first.lineno - 1]
        if source.text[start : source.span(first)[0]].strip():
            return None  # the body stands on the line of its `def`
        indent = source.text[start : source.span(first)[0]]
        model, question = (a.arg for a in solve.args.args)
        shots, code, output = (free_name(n, source.names) for n in ("shots", "code", "out"))
        shown = "\n".join(line for pair in pairs for line in pair)
        lines = [
            f'{shots} = """{shown}""".split("\\n")',
            f'{shots} = zip(["user", "assistant"] * 9, [*{shots}, "Python: " + {question}])',
            f'{code} = {model}.chat([{{"role": r, "content": t}} for r, t in {shots}])',
            f'{output} = {model}.python("from math import *\\n" + {code}).stdout.strip()',
            f"if {output}:",
            f"    return {output}",
        ]
        return source.splice([(start, start, "".join(f"{indent}{line}\n" for line in lines))])

    return Step(name, "run a program", change, drawn)


def compact_loops(pairs: Sequence[Demonstration]) -> Iterator[Step]:
    """Loops with general demonstrations, and with those that a report gave, more of them first.

    Args:
        pairs: Drawn from the report, of any length.
    """
    plain = [pair for p in pairs if (pair := one_line(p)) is not None]
    plain.sort(key=lambda p: len(p[0]) + len(p[1]))
    names = iter(GENERAL.items())
    first, rest = next(names), list(names)
    yield compact_loop(first[1], first[0])
    for count in range(min(MOST_DRAWN, len(plain)), 0, -1):
        yield compact_loop((_SHORT, *plain[:count]), f"loop on {count} shown", drawn=True)
    for name, general in rest:
        yield compact_loop(general, name)


def one_line(pair: Demonstration) -> Demonstration | None:
    """A demonstration whose question and program are a line each; None for one that cannot be.

    Of a question of several lines the last one stays: it is where most say what they ask.
    """
    lines = [line.strip() for line in pair[0].splitlines() if line.strip()]
    code = pair[1].removeprefix("import math\n").replace("math.", "")
    if not lines or len(code.splitlines()) != 1:
        return None
    # They stand in a text between three quotes.
    if any('"""' in text or "\\" in text for text in (lines[-1], code)) or code.endswith('"'):
        return None
    return lines[-1], code
