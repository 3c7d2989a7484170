"""The entry file of a harness as text with a syntax tree: the few changes that revisions are made of.

Promises: every change keeps the rest of the text byte for byte (layout and comments are the user's), works on harnesses
that earlier revisions changed, and answers None where it finds nothing to change. Nothing is executed.
"""

import ast
import builtins
import re
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from hl.types import HARNESS_MAX_BYTES, Harness

Splice = tuple[int, int, str]
"""Replace the characters from start to end by a text."""


@dataclass(frozen=True, slots=True)
class Source:
    """One parsed text."""

    text: str
    """With LF line ends and without a byte order mark."""
    tree: ast.Module
    starts: tuple[int, ...]
    """Character offset at which each line starts."""

    # --- looking -----------------------------------------------------------------------------------------------

    @property
    def names(self) -> frozenset[str]:
        """Every name that the text uses, with those that Python itself brings."""
        found = {str(n) for n in dir(builtins)} | set(re.findall(r"[A-Za-z_]\w*", self.text))
        return frozenset(found)

    def definition(self, name: str) -> ast.FunctionDef | ast.ClassDef | ast.Assign | None:
        """The last top-level definition of that name."""
        for node in reversed(self.tree.body):
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and node.name == name:
                return node
            if isinstance(node, ast.Assign) and any(
                isinstance(t, ast.Name) and t.id == name for t in node.targets
            ):
                return node
        return None

    def solve(self) -> ast.FunctionDef | None:
        """The top-level `def solve`, where it is a plain function."""
        found = self.definition("solve")
        return found if isinstance(found, ast.FunctionDef) and not found.decorator_list else None

    def binds_solve(self) -> bool:
        """Whether `solve` is bound at top level in some other way: assigned, or imported from another file."""
        for node in self.tree.body:
            if isinstance(node, ast.ImportFrom) and any((a.asname or a.name) == "solve" for a in node.names):
                return True
        return isinstance(self.definition("solve"), (ast.Assign, ast.FunctionDef))

    def calls(self, attribute: str) -> list[ast.Call]:
        """Calls of a method of that name with a first positional argument, in text order."""
        found = [
            node
            for node in ast.walk(self.tree)
            if isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr == attribute
            and isinstance(node.func.value, ast.Name)
            and node.args
            and not isinstance(node.args[0], ast.Starred)
        ]
        return sorted(found, key=lambda n: (n.lineno, n.col_offset))

    def segment(self, node: ast.AST) -> str:
        """The text of a node, without decorators."""
        start, end = self.span(node)
        return self.text[start:end]

    def span(self, node: ast.AST) -> tuple[int, int]:
        """Character offsets of a node."""
        return (
            self._offset(getattr(node, "lineno", 1), getattr(node, "col_offset", 0)),
            self._offset(getattr(node, "end_lineno", 1), getattr(node, "end_col_offset", 0)),
        )

    def _offset(self, line: int, column: int) -> int:
        start = self.starts[line - 1]
        end = self.starts[line] if line < len(self.starts) else len(self.text)
        # The tree counts bytes of UTF-8.
        return start + len(
            self.text[start:end].encode("utf-8", "surrogatepass")[:column].decode("utf-8", "ignore")
        )

    # --- changing ----------------------------------------------------------------------------------------------

    def splice(self, changes: Sequence[Splice]) -> str:
        """The text with all changes made; they must not overlap."""
        text = self.text
        for start, end, new in sorted(changes, reverse=True):
            text = text[:start] + new + text[end:]
        return text

    def wrap(self, nodes: Sequence[ast.AST], call: str) -> list[Splice]:
        """Changes that pass expressions through a function: `x` becomes `call(x)`."""
        changes: list[Splice] = []
        for node in nodes:
            start, end = self.span(node)
            # A walrus or a generator that stood bare needs parentheses of its own inside a call.
            bare = isinstance(node, (ast.GeneratorExp, ast.Yield, ast.YieldFrom, ast.NamedExpr))
            changes += [(start, start, call + ("((" if bare else "(")), (end, end, "))" if bare else ")")]
        return changes

    def insertion(self, text: str) -> list[Splice]:
        """Changes that put definitions before `solve`, with the imports they need.

        Where `solve` is not a plain function they go to the end.
        """
        imports, definitions = split_imports(text)
        changes: list[Splice] = []
        missing = [line for line in imports if not self._imported(line)]
        at = self._import_place()
        if missing:
            block = "".join(line + "\n" for line in missing)
            follows = self.text[at:]
            lead = "" if at == 0 or self.text[at - 1] == "\n" else "\n"
            if self._has_imports() or not follows.strip():
                changes.append((at, at, lead + block))
            else:
                changes.append(
                    (at, at, lead + ("\n" if at else "") + block + ("" if follows.startswith("\n") else "\n"))
                )
        body = definitions.strip("\n")
        if not body:
            return changes
        node = self.solve()
        if node is None:
            lead = "" if self.text.endswith("\n") or not self.text else "\n"
            changes.append((len(self.text), len(self.text), f"{lead}\n\n{body}\n"))
        else:
            place = self._before(node)
            changes.append((place, place, f"{body}\n\n\n"))
        return changes

    def _before(self, node: ast.FunctionDef) -> int:
        """Where definitions go before a function: above the comment that belongs to it."""
        line = node.lineno - 1
        while line > 0 and self._line(line - 1).startswith("#"):
            line -= 1
        return self.starts[line]

    def _line(self, index: int) -> str:
        end = self.starts[index + 1] if index + 1 < len(self.starts) else len(self.text)
        return self.text[self.starts[index] : end]

    def _has_imports(self) -> bool:
        return any(isinstance(node, (ast.Import, ast.ImportFrom)) for node in self.tree.body)

    def _import_place(self) -> int:
        """After the last import of the head of the file, else after the docstring."""
        last = 0
        for i, node in enumerate(self.tree.body):
            docstring = i == 0 and isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
            if docstring or isinstance(node, (ast.Import, ast.ImportFrom)):
                line = node.end_lineno or node.lineno
                last = self.starts[line] if line < len(self.starts) else len(self.text)
        return last

    def _imported(self, line: str) -> bool:
        wanted = ast.dump(ast.parse(line).body[0])
        flat: set[str] = set()
        for node in self.tree.body:
            if isinstance(node, ast.Import):
                flat |= {ast.dump(ast.Import(names=[alias])) for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                flat |= {ast.dump(ast.ImportFrom(node.module, [alias], node.level)) for alias in node.names}
        return wanted in flat

    def rename_solve(self, name: str) -> list[Splice] | None:
        """Changes that give the present `solve` another name, wherever it is used; None if it is no plain function."""
        node = self.solve()
        if node is None:
            return None
        start = self.span(node)[0]
        at = self.text.index("solve", start + len("def"))
        changes: list[Splice] = [(at, at + len("solve"), name)]
        for use in ast.walk(self.tree):
            if isinstance(use, ast.Name) and use.id == "solve":
                changes.append((*self.span(use), name))
        return changes

    def returns(self, function: ast.FunctionDef) -> list[ast.expr]:
        """The values that a function returns, those of functions inside it left out."""
        found: list[ast.expr] = []
        pending: list[ast.AST] = list(function.body)
        while pending:
            node = pending.pop()
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
                continue
            if isinstance(node, ast.Return) and node.value is not None:
                found.append(node.value)
            pending.extend(ast.iter_child_nodes(node))
        return found


def parse_source(text: str) -> Source | None:
    """Parse a text; None if it does not parse or is too large or odd to be changed safely."""
    text = text.removeprefix("\ufeff").replace("\r\n", "\n")
    # Characters that end a line for Python or for str.splitlines but not for both would shift every position.
    if len(text) > HARNESS_MAX_BYTES or "\0" in text or re.search("[\r\f\v\x1c-\x1e\x85\u2028\u2029]", text):
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    starts = [0]
    for line in text.split("\n")[:-1]:
        starts.append(starts[-1] + len(line) + 1)
    return Source(text, tree, tuple(starts))


def entry_source(harness: Harness) -> Source | None:
    """The entry file, parsed."""
    text = dict(harness.files).get(harness.entry)
    return None if text is None else parse_source(text)


def split_imports(text: str) -> tuple[list[str], str]:
    """A part's top-level import lines (parts write one name a line) and the rest."""
    lines = text.split("\n")
    at = {node.lineno - 1 for node in ast.parse(text).body if isinstance(node, (ast.Import, ast.ImportFrom))}
    return [lines[i] for i in sorted(at)], "\n".join(line for i, line in enumerate(lines) if i not in at)


def free_name(wanted: str, taken: frozenset[str]) -> str:
    """The name itself, or with the first number from 2 that makes it new."""
    if wanted not in taken:
        return wanted
    return next(name for i in range(2, 10_000) if (name := f"{wanted}_{i}") not in taken)


def rename_words(text: str, names: dict[str, str]) -> str:
    """The text with whole words replaced."""
    if not names:
        return text
    pattern = re.compile(r"\b(?:" + "|".join(re.escape(n) for n in sorted(names)) + r")\b")
    replace: Callable[[re.Match[str]], str] = lambda m: names[m[0]]  # noqa: E731
    return pattern.sub(replace, text)
