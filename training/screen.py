"""The screen: does a harness branch on, look up or hand out what it was shown of the feedback questions?

Promises: texts of questions and golds inside prompts (demonstrations) pass and are tagged; where such a text is
compared with, searched for, handed out, or used as the key of a look-up, the harness is refused, with the line. What
hides its constants (decoding, hashing) is refused too. It reads syntax trees and runs nothing. It follows names through
assignments, loops and calls of the harness's own functions. Code can hide from any such reading: the fresh questions
that a row is measured on again have the last word.
"""

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from hl.proposer.catalog.source import parse_source
from hl.types import Harness, Report
from training.shown import Shown, plain, shown

DEMONSTRATIONS = "feedback demonstrations"
"""Tag: texts of feedback questions stand in data that reaches prompts."""
WORDING = "branches on wording"
"""Tag: a short text, or one that all questions share, decides: perhaps the task's form, perhaps one question."""
CONSTANT = "constant answer"
"""Tag: a text that was a right answer is returned as it stands."""
RUNS_TEXT = "runs text"
"""Tag: `eval` or `exec`, whose argument is not followed."""

_OPAQUE = frozenset(
    {"base64", "zlib", "bz2", "lzma", "gzip", "hashlib", "binascii", "codecs", "marshal", "pickle"}
)
_SEARCHING = frozenset(
    {"startswith", "endswith", "find", "rfind", "index", "rindex", "count", "match", "fullmatch", "search"}
    | {"findall", "finditer", "__contains__", "__eq__", "issubset", "issuperset", "isdisjoint"}
)
_FILLING = frozenset({"append", "extend", "insert", "add", "update", "setdefault"})
_MAPPING = frozenset({"get", "pop", "setdefault", "__getitem__"})
_HARMLESS = frozenset({"len", "range", "bool", "print"})
"""Calls whose value no longer tells the text."""
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
PASSES = 8
"""Rounds of following names; longer chains of assignments than this are not written by accident."""


@dataclass(frozen=True, slots=True)
class Screening:
    """What the screen says of a harness."""

    refused: str = ""
    """One sentence with the line at fault; empty if it passes."""
    tags: tuple[str, ...] = ()
    """What a reader of the rows should know, sorted."""


def screen(candidate: Harness, report: Report) -> Screening:
    """Screen a harness against the report that its proposer saw.

    Args:
        candidate: The whole harness; what its parent already held counts too.
        report: Of the parent on the feedback block.
    """
    trees: list[ast.Module] = []
    for name, text in candidate.files:
        source = parse_source(text)
        if source is None:
            return Screening(f"{name} cannot be read safely.")
        trees.append(source.tree)
    try:
        reading = _Reading(shown(report), trees)
        refused = next(reading.violations(), "")
    except RecursionError:
        return Screening("its expressions are nested too deeply to be read.")
    return Screening(refused, tuple(sorted(reading.tags)))


class _Reading:
    """One harness, read: which names hold taken texts, and what is done with them."""

    def __init__(self, told: Shown, trees: Iterable[ast.Module]) -> None:
        self._shown = told
        self._nodes: list[ast.AST] = []
        self._scopes: dict[int, tuple[ast.AST, ...]] = {}
        for tree in trees:
            self._enter_scope(tree, ())
        self._bound = {id(n): _bound(n) for n in self._nodes if isinstance(n, _FUNCTIONS)}
        self._functions = {
            n.name: n for n in self._nodes if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef))
        }
        self._names: set[tuple[int, str]] = set()
        self._taken: dict[str, bool] = {}
        self.tags: set[str] = set()
        if any(isinstance(n, ast.Constant) and self._constant(n) for n in self._nodes):
            self.tags.add(DEMONSTRATIONS)
        for _ in range(PASSES):
            before = len(self._names)
            for node in self._nodes:
                self._follow(node)
            if len(self._names) == before:
                break

    # --- names and where they are bound ----------------------------------------------------------------------------

    def _enter_scope(self, tree: ast.Module, scope: tuple[ast.AST, ...]) -> None:
        pending: list[tuple[ast.AST, tuple[ast.AST, ...]]] = [(tree, scope)]
        while pending:
            node, scope = pending.pop()
            self._nodes.append(node)
            self._scopes[id(node)] = scope
            inner = (*scope, node) if isinstance(node, _FUNCTIONS) else scope
            pending += [(child, inner) for child in ast.iter_child_nodes(node)]

    def _key(self, node: ast.AST, name: str) -> tuple[int, str]:
        """The name as that place sees it: of the innermost function that binds it, else the module's."""
        for function in reversed(self._scopes[id(node)]):
            if name in self._bound[id(function)]:
                return id(function), name
        return 0, name

    # --- which values hold what was shown ------------------------------------------------------------------------

    def _constant(self, node: ast.Constant) -> bool:
        text = node.value.decode("utf-8", "replace") if isinstance(node.value, bytes) else _words(node)
        if text not in self._taken:
            self._taken[text] = self._shown.taken(text)
        return self._taken[text]

    def _holds(self, node: ast.AST | None) -> bool:
        """Whether an expression's value can tell a taken text."""
        if node is None or isinstance(node, (ast.Compare, ast.Lambda)):
            return False
        if isinstance(node, ast.Constant):
            return self._constant(node)
        if isinstance(node, ast.Name):
            return self._key(node, node.id) in self._names
        if isinstance(node, (ast.BinOp, ast.JoinedStr)) and (text := folded(node)) is not None:
            return self._shown.taken(text)
        if isinstance(node, ast.Attribute):
            return (-1, node.attr) in self._names or self._holds(node.value)
        if isinstance(node, ast.Call):
            if _asks_model(node):
                # What the model replies to a prompt is the model's, whatever the prompt holds.
                return False
            if isinstance(node.func, ast.Name):
                if node.func.id in _HARMLESS:
                    return False
                if node.func.id in self._functions:
                    return self._key(node, node.func.id) in self._names
            inner = [*node.args, *(k.value for k in node.keywords)]
            return self._holds(node.func) or any(map(self._holds, inner))
        return any(map(self._holds, ast.iter_child_nodes(node)))

    def _follow(self, node: ast.AST) -> None:
        match node:
            case ast.Assign(targets=targets, value=value) if self._holds(value):
                self._mark(*targets)
            case (
                ast.AnnAssign(target=target, value=value)
                | ast.AugAssign(target=target, value=value)
                | ast.NamedExpr(target=target, value=value)
            ) if self._holds(value):
                self._mark(target)
            case (
                ast.For(target=target, iter=source)
                | ast.AsyncFor(target=target, iter=source)
                | ast.comprehension(target=target, iter=source)
            ) if self._holds(source):
                self._mark(target)
            case ast.Return(value=value) | ast.Yield(value=value) if self._holds(value):
                function = self._scopes[id(node)][-1] if self._scopes[id(node)] else None
                if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
                    self._add(function, function.name)
            case ast.Call():
                self._pass_on(node)
            case _:
                pass

    def _pass_on(self, call: ast.Call) -> None:
        """Arguments become parameters; what a list is given stays in it; `key=` functions see the items."""
        values = [*call.args, *(k.value for k in call.keywords)]
        held = [v for v in values if self._holds(v)]
        if not held:
            return
        if isinstance(call.func, ast.Name) and call.func.id in self._functions:
            function = self._functions[call.func.id]
            names = [a.arg for a in (*function.args.posonlyargs, *function.args.args)]
            for at, value in enumerate(call.args):
                if at < len(names) and value in held:
                    self._parameter(function, names[at])
            for keyword in call.keywords:
                if keyword.arg is not None and keyword.value in held:
                    self._parameter(function, keyword.arg)
            return
        for value in values:
            inner = self._functions.get(value.id) if isinstance(value, ast.Name) else value
            if isinstance(inner, (ast.Lambda, ast.FunctionDef)):
                for argument in inner.args.args:
                    self._parameter(inner, argument.arg)
        if isinstance(call.func, ast.Attribute) and call.func.attr in _FILLING:
            self._mark(call.func.value)
        if isinstance(call.func, ast.Name) and call.func.id[:1].isupper():
            # An object of the harness's own class: what it was made from may be in any of its methods' parameters.
            for method in self._nodes:
                if isinstance(method, ast.FunctionDef) and method.name == "__init__":
                    for argument in method.args.args[1:]:
                        self._parameter(method, argument.arg)

    def _parameter(self, function: ast.AST, name: str) -> None:
        # A wrapper of the model that holds demonstrations is still asked, not compared with.
        if name not in ("self", "model"):
            self._names.add((id(function), name))

    def _add(self, node: ast.AST, name: str) -> None:
        if name != "model":
            self._names.add(self._key(node, name))

    def _mark(self, *targets: ast.expr) -> None:
        for target in targets:
            for node in ast.walk(target):
                if isinstance(node, ast.Name):
                    self._add(node, node.id)
                elif isinstance(node, ast.Attribute):
                    self._names.add((-1, node.attr))

    # --- what is done with them ------------------------------------------------------------------------------------

    def violations(self) -> Iterator[str]:
        """One sentence for each use that decides by a taken text."""
        for node in self._nodes:
            if (what := self._violation(node)) is not None:
                yield f"line {getattr(node, 'lineno', 0)}: {what}."

    def _violation(self, node: ast.AST) -> str | None:
        match node:
            case ast.Compare(left=left, comparators=others):
                return self._compare([left, *others])
            case ast.MatchValue(value=value) if self._decides(value):
                return "matches a text of a feedback question"
            case ast.Subscript(value=value, slice=at) if self._holds(value) and not _fixed(at):
                return "looks something up by what was shown of feedback questions"
            case ast.Subscript(slice=at) if self._holds(at):
                return "looks something up by what was shown of feedback questions"
            case ast.Import(names=names):
                return _hidden(a.name for a in names)
            case ast.ImportFrom(module=module):
                return _hidden([module or ""])
            case ast.Call(func=func):
                return self._call(node, func)
            case ast.Return(value=value) if value is not None and self._in_solve(node):
                if plain(_words(value)) in self._shown.golds:
                    self.tags.add(CONSTANT)
                return "hands out what was shown of feedback questions" if self._holds(value) else None
            case _:
                return None

    def _in_solve(self, node: ast.AST) -> bool:
        return any(isinstance(f, ast.FunctionDef) and f.name == "solve" for f in self._scopes[id(node)])

    def _compare(self, sides: list[ast.expr]) -> str | None:
        for side in sides:
            if self._decides(side):
                return "compares with a text of a feedback question"
            if any(self._shown.mentioned(_words(inner)) for inner in ast.walk(side)):
                self.tags.add(WORDING)
        return None

    def _decides(self, node: ast.expr) -> bool:
        return self._holds(node) or any(
            isinstance(n, ast.Constant) and self._shown.rare_number(n.value) for n in ast.walk(node)
        )

    def _call(self, call: ast.Call, func: ast.expr) -> str | None:
        if isinstance(func, ast.Name):
            if func.id in ("eval", "exec", "__import__"):
                self.tags.add(RUNS_TEXT)
            if func.id == "hash":
                return "hashes a text, which hides what it is compared with"
            return None
        if not isinstance(func, ast.Attribute) or _asks_model(call):
            return None
        if func.attr == "fromhex":
            return "decodes hidden text"
        values = [*call.args, *(k.value for k in call.keywords)]
        if func.attr in _SEARCHING:
            # `text.find(taken)`, `taken.find(text)`, `re.match(taken, text)`; a fixed pattern may read anything.
            told = (
                values[:1]
                if isinstance(func.value, ast.Name) and func.value.id in ("re", "regex")
                else values
            )
            if any(map(self._decides, told)) or (self._holds(func.value) and not all(map(_fixed, told))):
                return "searches for a text of a feedback question"
            if any(self._shown.mentioned(_words(value)) for value in told):
                self.tags.add(WORDING)
        if func.attr in _MAPPING and self._holds(func.value) and not (values and _fixed(values[0])):
            return "looks something up by what was shown of feedback questions"
        return None


def _asks_model(call: ast.Call) -> bool:
    """`model(...)`, `model.chat(...)`, `self.model(...)`; `model.search` too, whose query may hold anything."""
    func = call.func.value if isinstance(call.func, ast.Attribute) else call.func
    return (isinstance(func, ast.Name) and func.id == "model") or (
        isinstance(func, ast.Attribute) and func.attr == "model"
    )


def _words(node: ast.AST) -> str:
    """The text of a constant; empty for anything else."""
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def _bound(function: ast.AST) -> frozenset[str]:
    """Parameters and assigned names of a function, those of functions inside it left out."""
    found: set[str] = set()
    pending = list(ast.iter_child_nodes(function))
    while pending:
        node = pending.pop()
        if isinstance(node, ast.arg):
            found.add(node.arg)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            found.add(node.name)
            continue
        if not isinstance(node, _FUNCTIONS):
            pending += ast.iter_child_nodes(node)
    return frozenset(found)


def _fixed(node: ast.expr) -> bool:
    """An index that no question decides: a number, a text, or a slice of numbers and names."""
    if isinstance(node, ast.Slice):
        return True
    if isinstance(node, ast.UnaryOp):
        node = node.operand
    return isinstance(node, ast.Constant)


def _hidden(names: Iterable[str]) -> str | None:
    found = next((n for n in names if n.partition(".")[0] in _OPAQUE), None)
    return None if found is None else f"uses {found}, which can hide what it looks up"


def folded(node: ast.AST) -> str | None:
    """The text of constants joined by `+` or in an f-string; None where something else is in it."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            parts = [folded(left), folded(right)]
        case ast.JoinedStr(values=values):
            parts = [folded(v) for v in values]
        case ast.FormattedValue(value=value):
            parts = [folded(value)]
        case _:
            return None
    return None if None in parts else "".join(p for p in parts if p is not None)
