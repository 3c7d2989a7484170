"""What kind of revision an edit is: (parent, candidate) -> one of a few names, by what their syntax trees differ in.

The names are those in which the paper tells its teacher's rows, as far as it names them; the rules are ours. An edit
that does several things has the first name that fits, in the order of `PATTERNS`. Nothing is executed.
"""

import ast
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from hl.proposer.catalog.source import parse_source
from hl.types import Harness

LOOP, RETRIEVAL, DIRECT, VOTING, RETRY, FEW_SHOT, EXTRACTION, OTHER = PATTERNS = (
    "interpreter loop",
    "retrieval change",
    "direct algorithm",
    "voting",
    "retry",
    "few-shot",
    "extraction",
    "other",
)
_REGULAR = frozenset({"re", "regex"})
_SHAPING = frozenset(
    {"split", "rsplit", "splitlines", "partition", "rpartition", "removeprefix", "removesuffix", "findall"}
    | {"fullmatch", "match", "finditer", "sub", "strip", "rstrip", "lstrip", "replace"}
)
"""Methods that take an answer out of a text."""


@dataclass(frozen=True, slots=True)
class Features:
    """What one harness does, as counts."""

    programs: int
    """Calls of `model.python`."""
    searches: Counter[str]
    """Calls of `model.search`, by their text: another query is another search."""
    direct: int
    """Values that `solve` returns before it ever mentions the model."""
    votes: int
    """Samples drawn, and majorities taken."""
    again: int
    """Model calls inside a branch, a loop or an exception handler: made once more, or only where something failed."""
    pairs: Counter[str]
    """Pairs of texts, and earlier turns of a conversation."""
    asks: int
    """Places that call the model."""
    shaping: int
    """Calls that take something out of a text."""


def classify(parent: Harness, candidate: Harness) -> str:
    """The pattern of an edit: one of `PATTERNS`."""
    before, after = features(parent), features(candidate)
    if after.programs and not before.programs:
        return LOOP
    if after.searches - before.searches or before.searches - after.searches:
        return RETRIEVAL
    if after.direct > before.direct:
        return DIRECT
    if after.votes > before.votes:
        return VOTING
    if after.again > before.again:
        return RETRY
    if after.pairs - before.pairs:
        return FEW_SHOT
    if after.shaping > before.shaping and after.asks <= before.asks:
        return EXTRACTION
    return OTHER


def features(harness: Harness) -> Features:
    """What a harness does; a file that does not parse does nothing."""
    nodes: list[ast.AST] = []
    direct = 0
    for name, text in harness.files:
        source = parse_source(text)
        if source is None:
            continue
        nodes += ast.walk(source.tree)
        solve = source.solve()
        if name == harness.entry and solve is not None:
            direct = _direct(solve)
    calls = [n for n in nodes if isinstance(n, ast.Call)]
    methods = [(c, c.func) for c in calls if isinstance(c.func, ast.Attribute)]
    return Features(
        programs=sum(m.attr == "python" for _, m in methods),
        searches=Counter(
            ast.dump(c) for c, m in methods if m.attr == "search" and not _named(m.value, _REGULAR)
        ),
        direct=direct,
        votes=sum(m.attr == "most_common" for _, m in methods)
        + sum(m.attr == "sample" and _is_model(m.value) for c, m in methods if not _delegates(c))
        + sum(_by_count(c) for c in calls),
        again=sum(_again(n) for n in nodes),
        pairs=Counter(text for n in nodes for text in _pairs(n)) + _chosen(nodes),
        asks=sum(
            _is_model(c.func) or (isinstance(c.func, ast.Attribute) and _is_model(c.func.value))
            for c in calls
        ),
        shaping=sum(
            m.attr in _SHAPING or (m.attr == "search" and _named(m.value, _REGULAR)) for _, m in methods
        ),
    )


def _named(node: ast.AST, names: frozenset[str]) -> bool:
    return isinstance(node, ast.Name) and node.id in names


def _is_model(node: ast.AST) -> bool:
    """`model`, or `self.model` of a wrapper."""
    return (isinstance(node, ast.Name) and node.id == "model") or (
        isinstance(node, ast.Attribute) and node.attr == "model"
    )


def _delegates(call: ast.Call) -> bool:
    """A wrapper that hands a call on, as in `self.model.sample(prompt, n, **options)`."""
    return any(keyword.arg is None for keyword in call.keywords)


def _asks(node: ast.AST) -> bool:
    """Whether anything below calls the model, or a function with the model."""
    return any(
        isinstance(n, ast.Call)
        and (
            _is_model(n.func)
            or (isinstance(n.func, ast.Attribute) and _is_model(n.func.value))
            or any(_is_model(a) for a in n.args)
        )
        for n in ast.walk(node)
    )


def _direct(solve: ast.FunctionDef) -> int:
    """Computed values returned before the model is mentioned."""
    model = solve.args.args[0].arg if solve.args.args else "model"
    uses = [n.lineno for n in ast.walk(solve) if isinstance(n, ast.Name) and n.id == model]
    first = min(uses, default=10**9)
    return sum(
        isinstance(n, ast.Return)
        and n.value is not None
        and not isinstance(n.value, ast.Constant)
        and n.lineno < first
        for n in ast.walk(solve)
    )


def _by_count(call: ast.Call) -> bool:
    """`max(answers, key=answers.count)`."""
    return isinstance(call.func, ast.Name) and any(
        k.arg == "key" and isinstance(k.value, ast.Attribute) and k.value.attr == "count"
        for k in call.keywords
    )


def _again(node: ast.AST) -> int:
    """Statements that may ask the model once more."""
    if isinstance(node, ast.FunctionDef):
        # An early return is a branch too: what stands after it happens only where the first try did not do.
        for at, statement in enumerate(node.body):
            returns = isinstance(statement, ast.If) and any(isinstance(s, ast.Return) for s in statement.body)
            if returns and any(map(_asks, node.body[:at])) and any(map(_asks, node.body[at + 1 :])):
                return 1
        return 0
    if isinstance(node, (ast.While, ast.For)):
        return int(any(map(_asks, node.body)))
    return int(isinstance(node, ast.ExceptHandler) and any(map(_asks, node.body)))


def _pairs(node: ast.AST) -> Iterator[str]:
    """Question and answer as data: a tuple of two texts, or a turn of a conversation in an answer's role."""
    if isinstance(node, (ast.Tuple, ast.List)) and len(node.elts) == 2 and all(map(_text, node.elts)):
        yield ast.dump(node)
    if isinstance(node, ast.Dict):
        roles = [v for k, v in zip(node.keys, node.values, strict=True) if k is not None and _says(k, "role")]
        if any(_says(v, "assistant") for v in roles):
            yield ast.dump(node)


def _chosen(nodes: list[ast.AST]) -> Counter[str]:
    """Calls that a list of pairs is handed to, such as one that picks the nearest."""
    lists = {
        target.id
        for n in nodes
        if isinstance(n, ast.Assign) and any(True for inner in ast.walk(n.value) for _ in _pairs(inner))
        for target in n.targets
        if isinstance(target, ast.Name)
    }
    calls = (n for n in nodes if isinstance(n, ast.Call))
    return Counter(
        ast.dump(c) for c in calls if any(isinstance(a, ast.Name) and a.id in lists for a in c.args)
    )


def _text(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _says(node: ast.AST, word: str) -> bool:
    return isinstance(node, ast.Constant) and node.value == word
