"""Synthesised demonstrations (ours): programs that reproduce the gold answers of feedback questions.

Where the report shows gold answers, small expressions over the literals of the questions are searched, shortest first,
for ones that give the gold on several questions. What is found becomes question -> program demonstrations. The solver
still writes the program for every new question, and the search knows no task: it combines the calls of
`operations.py` with what stands in the questions. An expression must explain more bits of the golds than its place in
the search order costs, or a lucky constant would pass for an idea. Nothing is executed: values are computed by our own
bounded functions beside the text of the program. Bounded in steps, so equal reports give equal programs.
"""

import ast
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice

from hl.proposer.catalog.demonstrations import MAX_CHARS, SHOWN, TOTAL_CHARS, Demonstration
from hl.proposer.catalog.literals import Literal, Value, find_literals
from hl.proposer.catalog.operations import ONE, TWO, Operation, counting, joining, kind_of
from hl.types import Report

MAX_QUESTIONS = 16
"""Feedback questions looked at."""
BUDGETS = ((20_000, 20_000), (15_000, 150_000), (8_000, 0))
"""Applications tried per level: of operations on one value, and on two. Together a few seconds at most."""
MARGIN_BITS = 4.0
"""Evidence beyond the cost of the search."""
_WHOLE = (ast.Name, ast.Constant, ast.Call, ast.Subscript, ast.List, ast.ListComp, ast.Attribute)
"""Expressions that hold together by themselves."""
IDEAS = 3
"""Different expressions shown together: a task may have several kinds of question."""


@dataclass(frozen=True, slots=True)
class Expression:
    """One program text over literal positions, with its value on every question."""

    values: tuple[Value, ...]
    """None where it has none."""
    kinds: frozenset[str]
    literals: tuple[str, ...] = ()
    """How Python writes it on each question, for a literal."""
    operation: Operation | None = None
    arguments: tuple["Expression", ...] = ()

    def code(self, index: int) -> str:
        """As Python writes it on one question."""
        if self.operation is None:
            return self.literals[index]
        template = self.operation.code
        return template.format(
            *(_bracketed(a.code(index), template, i) for i, a in enumerate(self.arguments))
        )

    def before(self, index: int) -> str:
        """Statements it needs first, on one question."""
        if self.operation is None:
            return ""
        earlier = "".join(a.before(index) for a in self.arguments)
        return earlier + self.operation.before.format(*(a.code(index) for a in self.arguments))

    @property
    def has_before(self) -> bool:
        """Whether it needs statements: at most one operation of an expression may."""
        return self.operation is not None and (
            bool(self.operation.before) or any(a.has_before for a in self.arguments)
        )


def synthesised(report: Report) -> tuple[Demonstration, ...]:
    """Question -> program pairs whose programs give the gold; empty where nothing convincing is found."""
    pairs = [
        (case.question.strip(), case.gold.strip())
        for case in (*report.failures, *report.successes)
        if case.gold is not None and case.gold.strip() and len(case.question) <= 2 * MAX_CHARS
    ]
    return _synthesised(tuple(sorted(set(pairs))[:MAX_QUESTIONS]))


@lru_cache(maxsize=8)
def _synthesised(pairs: tuple[tuple[str, str], ...]) -> tuple[Demonstration, ...]:
    if len(pairs) < 2:
        return ()
    bits = _bits(pairs)
    ideas = _ideas(pairs, bits)
    return _select(pairs, ideas)


def _bits(pairs: Sequence[tuple[str, str]]) -> list[float]:
    """What it takes to hit each gold by luck: its rarity among the golds, or its length where it is a long one."""
    counts = Counter(gold for _, gold in pairs)
    if len(counts) < 2:
        return [0.0] * len(pairs)
    bits: list[float] = []
    for question, gold in pairs:
        rarity = -math.log2(counts[gold] / (len(pairs) + 1))
        # Small numbers, and what the question itself spells out, come up too often to prove much by their length.
        length = 0.0 if gold in question else min(14.0, 3.0 * len(gold) - 1.5)
        bits.append(max(rarity, length if len(gold) > 1 else 0.0))
    return bits


def _ideas(
    pairs: Sequence[tuple[str, str]], bits: Sequence[float]
) -> list[tuple[Expression, frozenset[int]]]:
    """Expressions that explain enough, the best first, later ones only for questions that are still open."""
    golds = [gold for _, gold in pairs]
    separators = Counter(
        s for g in golds for s in set(re.findall(r"(?<=\d)(?:\s+[^\s\d]{1,2}\s+|[^\w.\-]{1,3})(?=-?\d)", g))
    )
    extra = [joining(s) for s, _ in separators.most_common(2)]
    found: list[tuple[float, int, Expression, frozenset[int]]] = []
    for tried, expression in enumerate(_search([find_literals(q) for q, _ in pairs], extra), 1):
        hits = frozenset(i for i, g in enumerate(golds) if _matches(expression.values[i], g))
        if len(hits) < 2:
            continue
        # One gold hit several times by the same value proves little: a constant does that.
        if len({golds[i] for i in hits}) < 2:
            continue
        worth = sum(bits[i] for i in hits) - math.log2(tried) - MARGIN_BITS
        wrong = sum(expression.values[i] is not None for i in range(len(golds)) if i not in hits)
        if worth > 0 and wrong <= len(hits) and (wrong == 0 or len(hits) > 2):
            found.append((worth - wrong, -tried, expression, hits))
            if len(hits) == len(golds):
                break
    chosen: list[tuple[Expression, frozenset[int]]] = []
    open_questions = frozenset(range(len(golds)))
    while found and len(chosen) < IDEAS:
        best = max(found, key=lambda f: (sum(bits[i] for i in f[3] & open_questions), f[0], f[1]))
        new = best[3] & open_questions
        if not new or (chosen and len(new) < 2):
            break
        chosen.append((best[2], new))
        open_questions -= new
    return chosen


def _matches(value: Value, gold: str) -> bool:
    if value is None:
        return False
    if isinstance(value, tuple):
        return str(list(value)) == gold
    if isinstance(value, (int, float)):
        try:
            wanted = float(gold)
        except ValueError:
            return str(value) == gold
        return math.isfinite(wanted) and abs(wanted - value) <= 1e-9 * max(1.0, abs(wanted))
    return str(value) == gold


def _search(questions: Sequence[Mapping[str, Literal]], extra: Sequence[Operation]) -> Iterator[Expression]:
    """Distinct expressions, those with fewer operations first."""
    seen: set[tuple[Value, ...]] = set()
    positions = Counter(name for q in questions for name in q)
    start: list[Expression] = []
    for name in sorted(positions, key=lambda n: (-positions[n], n)):
        found = [q.get(name) for q in questions]
        values = tuple(None if f is None else f.value for f in found)
        expression = _expression(values, literals=tuple("" if f is None else f.code for f in found))
        if expression and expression.values not in seen:
            seen.add(expression.values)
            start.append(expression)
    yield from start
    one = (*ONE, *extra, *(counting(c) for c in "01 "))
    levels = [start]
    for cost, budgets in enumerate(BUDGETS, 1):
        level: list[Expression] = []
        streams = (_unary(levels[-1], one), _binary(levels, cost))
        for stream, budget in zip(streams, budgets, strict=True):
            for operation, arguments in islice(stream, budget):
                expression = _apply(operation, arguments)
                if expression is not None and expression.values not in seen:
                    seen.add(expression.values)
                    level.append(expression)
                    yield expression
        levels.append(level)


def _unary(
    level: Sequence[Expression], one: Sequence[Operation]
) -> Iterator[tuple[Operation, tuple[Expression, ...]]]:
    for argument in level:
        for operation in one:
            if operation.takes[0] in argument.kinds:
                yield operation, (argument,)


def _binary(
    levels: Sequence[Sequence[Expression]], cost: int
) -> Iterator[tuple[Operation, tuple[Expression, ...]]]:
    """Operations on an expression of the last level and a literal, either way round."""
    for left in levels[cost - 1]:
        for right in levels[0]:
            for operation in TWO:
                if operation.takes[0] in left.kinds and operation.takes[1] in right.kinds:
                    yield operation, (left, right)
                if cost > 1 and operation.takes[0] in right.kinds and operation.takes[1] in left.kinds:
                    yield operation, (right, left)


def _apply(operation: Operation, arguments: tuple[Expression, ...]) -> Expression | None:
    if operation.before and any(a.has_before for a in arguments):
        return None
    values: list[Value] = []
    for given in zip(*(a.values for a in arguments), strict=True):
        value: Value = None
        if None not in given and all(map(_takes, operation.takes, given)):
            try:
                value = operation.function(*given)
            except (ArithmeticError, ValueError, IndexError, TypeError):
                value = None
        values.append(value)
    return _expression(tuple(values), operation=operation, arguments=arguments)


def _takes(wanted: str, value: Value) -> bool:
    kind = kind_of(value)
    return kind == wanted or (wanted == "number" and kind == "whole")


def _bracketed(code: str, template: str, position: int) -> str:
    """An argument's text, in brackets where precedence could tear it apart."""
    if isinstance(ast.parse(code, mode="eval").body, _WHOLE):
        return code
    place = "{" + str(position) + "}"
    enclosed = re.search(r"(?:\(|, |\*)" + re.escape(place) + r"[,)]", template)
    return code if enclosed and template.count(place) == 1 else f"({code})"


def _expression(
    values: tuple[Value, ...],
    *,
    literals: tuple[str, ...] = (),
    operation: Operation | None = None,
    arguments: tuple[Expression, ...] = (),
) -> Expression | None:
    kinds = [kind_of(v) if v is not None else "" for v in values]
    if sum(bool(k) for k in kinds) < 2:
        return None
    values = tuple(v if k else None for v, k in zip(values, kinds, strict=True))
    takes = {k for k in kinds if k} | ({"number"} if "whole" in kinds else set())
    return Expression(values, frozenset(takes), literals, operation, arguments)


def _select(
    pairs: Sequence[tuple[str, str]], ideas: Sequence[tuple[Expression, frozenset[int]]]
) -> tuple[Demonstration, ...]:
    """The shortest questions of each idea, within the budget of drawn demonstrations."""
    queues: list[list[Demonstration]] = []
    for expression, hits in ideas:
        shown = [(pairs[i][0], _program(expression, i)) for i in hits]
        shown = [d for d in shown if len(d[0]) + len(d[1]) <= 2 * MAX_CHARS]
        queues.append(sorted(shown, key=lambda d: (len(d[0]) + len(d[1]), d)))
    kept: list[Demonstration] = []
    size = 0
    for turn in range(SHOWN):
        for queue in queues:
            if turn < len(queue) and len(kept) < SHOWN + len(queues) - 1:
                length = len(queue[turn][0]) + len(queue[turn][1])
                if size + length <= TOTAL_CHARS:
                    kept.append(queue[turn])
                    size += length
    return tuple(reversed(kept))


def _program(expression: Expression, index: int) -> str:
    body = f"{expression.before(index)}print({expression.code(index)})"
    return ("import math\n" if "math." in body else "") + body
