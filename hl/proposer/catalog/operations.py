"""A small general library of what the standard library does with texts, numbers and lists, for the search.

Each operation has a pure function of ours, guarded in size, and the Python text that does the same. Nothing here
belongs to a task: these are the calls that a tutorial on the language shows.
"""

# The table's lambdas take whatever their operation's kinds say: checked when they are called, by `kind_of`.
# pyright: reportUnknownLambdaType=false

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

from hl.proposer.catalog.literals import Value

MAX_LENGTH = 400
"""Longest text or list that an operation makes (ours)."""
MAX_NUMBER = 10**30
"""Numbers stay below it (ours)."""


@dataclass(frozen=True, slots=True)
class Operation:
    """One call."""

    takes: tuple[str, ...]
    """Kinds of its arguments: `text`, `whole`, `number` (whole or not), `numbers`, `texts`."""
    code: str
    """Python text with `{0}`, `{1}` for the arguments."""
    function: Callable[..., Value]
    """May raise; then it has no value."""
    before: str = ""
    """Statements that the code needs before it."""


def kind_of(value: Value) -> str:
    """The kind of a value; empty for one that no operation takes."""
    if isinstance(value, str):
        return "text" if len(value) <= MAX_LENGTH else ""
    if isinstance(value, bool):
        return ""
    if isinstance(value, int):
        return "whole" if abs(value) < MAX_NUMBER else ""
    if isinstance(value, float):
        return "number" if math.isfinite(value) and abs(value) < 1e30 else ""
    if isinstance(value, tuple) and 0 < len(value) <= MAX_LENGTH:
        if all(isinstance(v, str) for v in value):
            return "texts"
        if all(isinstance(v, (int, float)) and not isinstance(v, bool) for v in value):
            return "numbers"
    return ""


def _small(limit: int, n: int) -> int:
    if not 0 <= n <= limit:
        raise ValueError("out of bounds")
    return n


def _factors(n: int) -> tuple[int, ...]:
    """Prime factors in order, by trial division up to a bound."""
    n, d, found = _small(10**7, n), 2, []
    while n > 1 and d * d <= n:
        while n % d == 0:
            found.append(d)
            n //= d
        d += 1
    return (*found, n) if n > 1 else tuple(found)


def _in_base(n: int, base: int) -> str:
    if not 2 <= base <= 36:
        raise ValueError("no base")
    n, digits = _small(10**18, n), ""
    while n > 0:
        n, rest = divmod(n, base)
        digits = "0123456789abcdefghijklmnopqrstuvwxyz"[rest] + digits
    return digits or "0"


def _power(a: int, b: int) -> int:
    return _small(10**6, abs(a)) ** _small(64, b) * (1 if a >= 0 or b % 2 == 0 else -1)


FACTORS = """\
n = {0}
factors = []
d = 2
while n > 1:
    while n % d == 0:
        factors.append(d)
        n = n // d
    d = d + 1
"""
DIGITS = """\
n = {0}
digits = ""
while n > 0:
    digits = "0123456789abcdefghijklmnopqrstuvwxyz"[n % {1}] + digits
    n = n // {1}
"""

ONE: tuple[Operation, ...] = (
    Operation(("text",), "{0}.upper()", lambda s: s.upper()),
    Operation(("text",), "{0}.lower()", lambda s: s.lower()),
    Operation(("text",), "{0}.title()", lambda s: s.title()),
    Operation(("text",), "{0}.swapcase()", lambda s: s.swapcase()),
    Operation(("text",), "{0}[::-1]", lambda s: s[::-1]),
    Operation(("text",), "''.join(sorted({0}))", lambda s: "".join(sorted(s))),
    Operation(("text",), "{0}.replace(' ', '')", lambda s: s.replace(" ", "")),
    Operation(("text",), "{0}[0]", lambda s: s[0]),
    Operation(("text",), "{0}[-1]", lambda s: s[-1]),
    Operation(("text",), "{0}.split()", lambda s: tuple(s.split())),
    Operation(("text",), "{0}.split(', ')", lambda s: tuple(s.split(", "))),
    Operation(("text",), "list({0})", lambda s: tuple(s)),
    Operation(("text",), "len({0})", lambda s: len(s)),
    Operation(("text",), "len(set({0}))", lambda s: len(set(s))),
    Operation(("text",), "int({0}, 2)", lambda s: int(s, 2)),
    Operation(("text",), "int({0}, 8)", lambda s: int(s, 8)),
    Operation(("text",), "int({0}, 16)", lambda s: int(s, 16)),
    Operation(("text",), "sum(int(c) for c in {0})", lambda s: sum(int(c) for c in s)),
    Operation(("whole",), "str({0})", lambda n: str(n)),
    Operation(("whole",), "bin({0})[2:]", lambda n: bin(_small(10**18, n))[2:]),
    Operation(("whole",), "oct({0})[2:]", lambda n: oct(_small(10**18, n))[2:]),
    Operation(("whole",), "hex({0})[2:]", lambda n: hex(_small(10**18, n))[2:]),
    Operation(("whole",), "format({0}, ',')", lambda n: format(n, ",")),
    Operation(("whole",), "abs({0})", lambda n: abs(n)),
    Operation(("whole",), "math.factorial({0})", lambda n: math.factorial(_small(20, n))),
    Operation(("whole",), "math.isqrt({0})", lambda n: math.isqrt(_small(10**18, n))),
    Operation(("whole",), "{0} ** 2", lambda n: n**2),
    Operation(("whole",), "{0} ** 3", lambda n: n**3),
    Operation(("whole",), "list(range(1, {0} + 1))", lambda n: tuple(range(1, _small(MAX_LENGTH, n) + 1))),
    Operation(
        ("whole",),
        "[d for d in range(1, {0} + 1) if {0} % d == 0]",
        lambda n: tuple(d for d in range(1, _small(2000, n) + 1) if n % d == 0),
    ),
    Operation(("whole",), "factors", _factors, FACTORS),
    Operation(("number",), "round({0})", lambda n: round(n)),
    Operation(("number",), "round({0}, 2)", lambda n: round(n, 2)),
    Operation(("number",), "abs({0})", lambda n: abs(n)),
    Operation(("numbers",), "sum({0})", lambda v: sum(v)),
    Operation(("numbers",), "max({0})", lambda v: max(v)),
    Operation(("numbers",), "min({0})", lambda v: min(v)),
    Operation(("numbers",), "len({0})", lambda v: len(v)),
    Operation(("numbers",), "len(set({0}))", lambda v: len(set(v))),
    Operation(("numbers",), "math.prod({0})", lambda v: math.prod(v)),
    Operation(("numbers",), "math.gcd(*{0})", lambda v: math.gcd(*v)),
    Operation(("numbers",), "math.lcm(*{0})", lambda v: math.lcm(*v)),
    Operation(("numbers",), "sorted({0})", lambda v: tuple(sorted(v))),
    Operation(("numbers",), "sorted({0}, reverse=True)", lambda v: tuple(sorted(v, reverse=True))),
    Operation(("numbers",), "{0}[::-1]", lambda v: v[::-1]),
    Operation(("numbers",), "{0}[-1]", lambda v: v[-1]),
    Operation(("numbers",), "{0}[0]", lambda v: v[0]),
    Operation(("numbers",), "sorted(set({0}))", lambda v: tuple(sorted(set(v)))),
    Operation(("numbers",), "sum({0}) / len({0})", lambda v: sum(v) / len(v)),
    Operation(
        ("numbers",),
        "[b - a for a, b in zip({0}, {0}[1:])]",
        lambda v: tuple(b - a for a, b in pairwise(v)),
    ),
    Operation(("texts",), "len({0})", lambda v: len(v)),
    Operation(("texts",), "sorted({0})", lambda v: tuple(sorted(v))),
    Operation(("texts",), "{0}[::-1]", lambda v: v[::-1]),
    Operation(("texts",), "{0}[0]", lambda v: v[0]),
    Operation(("texts",), "{0}[-1]", lambda v: v[-1]),
    Operation(("texts",), "max({0}, key=len)", lambda v: max(v, key=len)),
    Operation(("texts",), "[w[::-1] for w in {0}]", lambda v: tuple(w[::-1] for w in v)),
    Operation(("texts",), "[len(w) for w in {0}]", lambda v: tuple(len(w) for w in v)),
    Operation(("texts",), "''.join({0})", lambda v: "".join(v)),
    Operation(("texts",), "' '.join({0})", lambda v: " ".join(v)),
    Operation(("texts",), "', '.join({0})", lambda v: ", ".join(v)),
)
TWO: tuple[Operation, ...] = (
    Operation(("text", "text"), "{0}.count({1})", lambda s, t: s.count(t)),
    Operation(("text", "text"), "{0}.lower().count({1}.lower())", lambda s, t: s.lower().count(t.lower())),
    Operation(("text", "text"), "{0}.replace({1}, '')", lambda s, t: s.replace(t, "")),
    Operation(("text", "text"), "{0} + {1}", lambda s, t: s + t),
    Operation(("text", "text"), "{0}.find({1})", lambda s, t: s.find(t)),
    Operation(("text", "whole"), "int({0}, {1})", lambda s, n: int(s, _small(36, n))),
    Operation(("text", "whole"), "{0}[{1} - 1]", lambda s, n: s[_small(MAX_LENGTH, n) - 1]),
    Operation(("whole", "whole"), "{0} + {1}", lambda a, b: a + b),
    Operation(("whole", "whole"), "{0} - {1}", lambda a, b: a - b),
    Operation(("whole", "whole"), "{0} * {1}", lambda a, b: a * b),
    Operation(("whole", "whole"), "{0} // {1}", lambda a, b: a // b),
    Operation(("whole", "whole"), "{0} % {1}", lambda a, b: a % b),
    Operation(("whole", "whole"), "{0} ** {1}", _power),
    Operation(("whole", "whole"), "{0} / {1}", lambda a, b: a / b),
    Operation(("whole", "whole"), "{0} & {1}", lambda a, b: a & b),
    Operation(("whole", "whole"), "{0} | {1}", lambda a, b: a | b),
    Operation(("whole", "whole"), "{0} ^ {1}", lambda a, b: a ^ b),
    Operation(("whole", "whole"), "math.gcd({0}, {1})", lambda a, b: math.gcd(a, b)),
    Operation(("whole", "whole"), "math.lcm({0}, {1})", lambda a, b: math.lcm(a, b)),
    Operation(
        ("whole", "whole"), "math.comb({0}, {1})", lambda a, b: math.comb(_small(200, a), _small(200, b))
    ),
    Operation(("whole", "whole"), "digits", _in_base, DIGITS),
    Operation(("number", "number"), "{0} + {1}", lambda a, b: a + b),
    Operation(("number", "number"), "{0} - {1}", lambda a, b: a - b),
    Operation(("number", "number"), "{0} * {1}", lambda a, b: a * b),
    Operation(("number", "number"), "{0} / {1}", lambda a, b: a / b),
    Operation(("numbers", "whole"), "{0}.count({1})", lambda v, n: v.count(n)),
    Operation(
        ("numbers", "whole"), "sorted({0})[{1} - 1]", lambda v, n: sorted(v)[_small(MAX_LENGTH, n) - 1]
    ),
    Operation(("numbers", "whole"), "[n for n in {0} if n > {1}]", lambda v, n: tuple(x for x in v if x > n)),
    Operation(("numbers", "whole"), "[n for n in {0} if n < {1}]", lambda v, n: tuple(x for x in v if x < n)),
    Operation(
        ("numbers", "whole"),
        "[n for n in {0} if n % {1} == 0]",
        lambda v, n: tuple(x for x in v if x % n == 0),
    ),
    Operation(("texts", "text"), "{0}.count({1})", lambda v, t: v.count(t)),
    Operation(("texts", "whole"), "{0}[{1} - 1]", lambda v, n: v[_small(MAX_LENGTH, n) - 1]),
)
"""Operations whose arguments are two earlier values."""


def joining(separator: str) -> Operation:
    """Write a list of numbers with a separator between them."""
    code = repr(separator) + ".join(map(str, {0}))"
    return Operation(("numbers",), code, lambda v: separator.join(map(str, v)))


def counting(constant: str) -> Operation:
    """Count a fixed character in a text."""
    return Operation(("text",), "{0}.count(" + repr(constant) + ")", lambda s: s.count(constant))
