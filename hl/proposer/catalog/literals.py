"""What stands in a question as it is: quoted texts, numbers, lists, sums to work out, the text after a colon.

The same positions are looked up in every question, so that an expression over positions ("the second number") means
something on all of them. Nothing is evaluated but sums of numbers, by our own code.
"""

import ast
import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

Value = Any
"""str, int, float, or a tuple of one of them."""

MAX_TEXT = 200
"""Longest literal (ours)."""

_NUMBER = re.compile(r"(?<![\w.])-?\d{1,40}(?:\.\d{1,40})?(?![\w.]*\w)|(?<=-)\d{1,40}(?!\w)")
_TOKEN = re.compile(r"\b(?=[0-9a-zA-Z]*\d)[0-9a-zA-Z]{1,40}\b")
_QUOTED = re.compile(
    r"\"([^\"\n]{1,200})\"|(?<!\w)'([^'\n]{1,200})'(?!\w)|[\u201c]([^\u201d\n]{1,200})[\u201d]"
)
_LIST = re.compile(r"\[([^\[\]]{1,400})\]")
_SUM = re.compile(r"[-+(]*\d[\d\s.+\-*/()]*[+\-*/][\d\s.+\-*/()]*\d[\s)]*")


@dataclass(frozen=True, slots=True)
class Literal:
    """One literal of one question."""

    value: Value
    code: str
    """How Python writes it."""


def find_literals(question: str) -> Mapping[str, Literal]:
    """Literals by position, such as `text 0` or `number -1`."""
    found: dict[str, Literal] = {}
    text = question.strip()
    quoted = [next(g for g in m if g) for m in _QUOTED.findall(text)]
    _positions(found, "text", [Literal(q, repr(q)) for q in quoted], 3)
    if ":" in text:
        tail = text.rsplit(":", 1)[1].strip()
        if 0 < len(tail) <= MAX_TEXT and "\n" not in tail:
            found["tail"] = Literal(tail, repr(tail))
            bare = tail.strip(".?!\"' ")
            if bare and bare != tail:
                found["bare tail"] = Literal(bare, repr(bare))
    words = re.findall(r"[^\W_]+", text)
    if words and len(words[-1]) <= MAX_TEXT:
        found["last word"] = Literal(words[-1], repr(words[-1]))
    numbers = [_number(m) for m in _NUMBER.findall(text)][:60]
    _positions(found, "number", [Literal(n, str(n)) for n in numbers], 4)
    tokens = _TOKEN.findall(text)[:60]
    _positions(found, "digits", [Literal(t, repr(t)) for t in tokens], 4)
    lists = [_list(m) for m in _LIST.findall(text)]
    _positions(found, "list", [Literal(v, str(list(v))) for v in lists if v], 2)
    if len(numbers) > 1:
        found["all numbers"] = Literal(tuple(numbers), str(numbers))
    sums = [m.strip() for m in _SUM.findall(text) if len(m) <= MAX_TEXT]
    worked = [(s, value) for s in sums if (value := work_out(s)) is not None]
    if worked:
        longest = max(worked, key=lambda pair: len(pair[0]))
        found["sum"] = Literal(longest[1], longest[0])
    return found


def _positions(found: dict[str, Literal], kind: str, items: list[Literal], most: int) -> None:
    """Items counted from the front and from the back."""
    for i, item in enumerate(items[:most]):
        found[f"{kind} {i}"] = item
    for i, item in enumerate(reversed(items[-most:])):
        found[f"{kind} -{i + 1}"] = item


def _number(text: str) -> int | float:
    return float(text) if "." in text else int(text)


def _list(text: str) -> tuple[Value, ...]:
    """The items of a bracketed list, all numbers or all texts; empty if it is neither."""
    items = [item.strip() for item in text.split(",")]
    if all(re.fullmatch(r"-?\d{1,40}(?:\.\d{1,40})?", item) for item in items):
        return tuple(_number(item) for item in items)
    if all(re.fullmatch(r"(['\"])[^'\"]*\1", item) for item in items):
        return tuple(item[1:-1] for item in items)
    return ()


_OPERATORS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
}


def work_out(text: str) -> int | float | None:
    """The value of a sum of plain numbers; None for anything else or anything large."""
    try:
        tree = ast.parse(text.strip(), mode="eval")
        return _value(tree.body)
    except (SyntaxError, ValueError, ArithmeticError, RecursionError, MemoryError):
        return None


def _value(node: ast.expr) -> int | float:
    match node:
        case ast.Constant(value=int() | float() as number) if (
            not isinstance(number, bool) and abs(number) < 1e18
        ):
            return number
        case ast.UnaryOp(op=ast.USub()):
            return -_value(node.operand)
        case ast.UnaryOp(op=ast.UAdd()):
            return _value(node.operand)
        case ast.BinOp() if type(node.op) in _OPERATORS:
            result = _OPERATORS[type(node.op)](_value(node.left), _value(node.right))
            if abs(result) < 1e30:
                return result
        case _:
            pass
    raise ValueError("not a sum")
