"""Is it a program, does it keep the contract, which program is it: by syntax tree, never by running it.

Host parsing is `ast.parse` of at most 64 KiB; whatever the parser raises is the outcome `syntax`.
"""

import ast
import hashlib
import warnings
from collections.abc import Iterator
from typing import cast

from hl.edits.error import EditError
from hl.edits.hints import quote
from hl.types import HARNESS_MAX_BYTES, Harness, Outcome

_DOCUMENTED = (ast.Module, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def _parse(name: str, text: str) -> ast.Module:
    """Parse one file.

    Raises:
        EditError: syntax.
    """
    source = text.removeprefix("\ufeff")
    try:
        with warnings.catch_warnings():
            # A harness's invalid escape sequences are its own business.
            warnings.simplefilter("ignore")
            return ast.parse(source)
    except SyntaxError as error:
        lines = source.split("\n")
        at = error.lineno or 0
        shown = f", which reads {quote(lines[at - 1])}" if 0 < at <= len(lines) else ""
        raise EditError(
            Outcome.SYNTAX, f"the result does not parse: {error.msg} at line {at} of {name}{shown}."
        ) from None
    except (RecursionError, MemoryError):
        raise EditError(Outcome.SYNTAX, f"the result does not parse: {name} is nested too deeply.") from None
    except ValueError as error:
        raise EditError(Outcome.SYNTAX, f"the result does not parse: {error} in {name}.") from None


def harness_bytes(harness: Harness) -> int:
    """Total size of the harness's files in bytes of UTF-8."""
    return sum(len(text.encode("utf-8", "surrogatepass")) for _, text in harness.files)


def _bindings(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Statements that run at module level, those inside `if`, `try`, `with` and loops included."""
    pending = list(reversed(body))
    while pending:
        node = pending.pop()
        yield node
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            continue
        inner: list[ast.stmt] = []
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.stmt):
                inner.append(child)
            elif isinstance(child, (ast.ExceptHandler, ast.match_case)):
                inner.extend(child.body)
        pending.extend(reversed(inner))


def _binds(node: ast.stmt, name: str) -> bool:
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            return node.name == name
        case ast.Assign():
            return any(
                isinstance(t, ast.Name) and t.id == name for target in node.targets for t in ast.walk(target)
            )
        case ast.AnnAssign():
            return node.value is not None and isinstance(node.target, ast.Name) and node.target.id == name
        case ast.ImportFrom():
            return any((alias.asname or alias.name) in (name, "*") for alias in node.names)
        case _:
            return False


def _two_positional(args: ast.arguments) -> bool:
    """Whether a call with exactly two positional arguments is accepted."""
    positional = len(args.posonlyargs) + len(args.args)
    required = positional - len(args.defaults)
    keywords = sum(default is None for default in args.kw_defaults)
    return required <= 2 and keywords == 0 and (positional >= 2 or args.vararg is not None)


def _check_contract(name: str, tree: ast.Module) -> None:
    bound = [node for node in _bindings(tree.body) if _binds(node, "solve")]
    if not bound:
        raise EditError(
            Outcome.CONTRACT,
            f"{name} defines no top-level `solve`: it must expose `solve(model, question) -> str`.",
        )
    last = bound[-1]
    if isinstance(last, ast.AsyncFunctionDef):
        raise EditError(
            Outcome.CONTRACT,
            f"line {last.lineno} of {name} makes `solve` async: it must be a plain `def` returning a string.",
        )
    args: ast.arguments | None = None
    if isinstance(last, ast.FunctionDef) and not last.decorator_list:
        args = last.args
    elif isinstance(last, ast.Assign) and isinstance(last.value, ast.Lambda):
        args = last.value.args
    elif isinstance(last, ast.Assign) and isinstance(last.value, ast.Constant):
        raise EditError(
            Outcome.CONTRACT, f"line {last.lineno} of {name} makes `solve` a constant, not a function."
        )
    if args and not _two_positional(args):
        names = ", ".join(arg.arg for arg in [*args.posonlyargs, *args.args, *args.kwonlyargs])
        raise EditError(
            Outcome.CONTRACT,
            f"`solve` at line {last.lineno} of {name} cannot be called as solve(model, question): it takes "
            f"{quote(names or 'nothing')}.",
        )


def check_harness(harness: Harness) -> None:
    """Check that a candidate is a program that keeps the contract, as far as its text tells.

    Raises:
        EditError: contract (size, entry, `solve`) or syntax.
    """
    size = harness_bytes(harness)
    if size > HARNESS_MAX_BYTES:
        raise EditError(
            Outcome.CONTRACT, f"the result has {size:,} bytes; a harness has at most {HARNESS_MAX_BYTES:,}."
        )
    trees = {name: _parse(name, text) for name, text in harness.files}
    if harness.entry not in trees:
        raise EditError(Outcome.CONTRACT, f"the harness has no entry file {quote(harness.entry)}.")
    _check_contract(harness.entry, trees[harness.entry])


def _without_docstrings(tree: ast.Module) -> None:
    for node in ast.walk(tree):
        if isinstance(node, _DOCUMENTED) and node.body:
            first = node.body[0]
            if (
                isinstance(first, ast.Expr)
                and isinstance(first.value, ast.Constant)
                and isinstance(first.value.value, str)
            ):
                node.body = node.body[1:] or [ast.Pass()]


def _shape(value: object) -> str:
    """A syntax tree as text, the same under every Python: `ast.dump` changes with each release's new empty fields."""
    if isinstance(value, ast.AST):
        kept = ((k, v) for k, v in ast.iter_fields(value) if v is not None and v != [] and k != "kind")
        return f"{type(value).__name__}({','.join(f'{k}={_shape(v)}' for k, v in kept)})"
    if isinstance(value, list):
        return f"[{','.join(_shape(item) for item in cast('list[object]', value))}]"
    return repr(value)


def _canonical(name: str, text: str) -> str:
    try:
        tree = _parse(name, text)
        # A harness may use its own docstrings as prompts: then they are program text.
        if "__doc__" not in text and "getdoc" not in text and "__dict__" not in text:
            _without_docstrings(tree)
        return "ast " + _shape(tree)
    except (EditError, RecursionError, MemoryError, ValueError):
        return "text " + text


def program_digest(harness: Harness) -> str:
    """Hex sha256 that equal programs share: syntax trees without comments, layout and docstrings.

    Files that do not parse, or are too deep to dump, count by their text.
    """
    h = hashlib.sha256(harness.entry.encode("utf-8", "surrogatepass"))
    for name, text in harness.files:
        for part in (name, _canonical(name, text)):
            raw = part.encode("utf-8", "surrogatepass")
            h.update(len(raw).to_bytes(8, "big"))
            h.update(raw)
    return h.hexdigest()
