"""The texts that revisions insert, and how they are joined to a harness.

A part is a file of `hl/seeds/parts`: definitions, and perhaps a `solve` that calls `inner`, the solve it is put in
front of. Parts are data: read, parsed, inserted as text, never imported. Names that the harness already uses are
renamed.
"""

import ast
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from hl.proposer.catalog.source import Source, Splice, free_name, parse_source, rename_words, split_imports

SEEDS = Path(__file__).parents[2] / "seeds"


@cache
def load_part(name: str) -> str:
    """The text of one part."""
    return (SEEDS / "parts" / f"{name}.py").read_text(encoding="utf-8")


@cache
def load_seed_definitions(name: str) -> str:
    """A seed harness without its docstring and its `solve`."""
    source = parse_source((SEEDS / f"{name}.py").read_text(encoding="utf-8"))
    assert source is not None
    solve = source.solve()
    assert solve is not None
    start = source.span(solve)[0]
    first = source.tree.body[0]
    after = source.span(first)[1] if isinstance(first, ast.Expr) else 0
    return source.text[after:start].strip("\n") + "\n"


def defined_names(text: str) -> tuple[str, ...]:
    """Top-level names that a part defines, in order, `solve` left out."""
    names: list[str] = []
    for node in ast.parse(text).body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            names.append(node.name)
        elif isinstance(node, ast.Assign):
            names += [t.id for t in node.targets if isinstance(t, ast.Name)]
    return tuple(name for name in names if name != "solve")


def add_layer(
    source: Source, text: str, old_name: str, constants: Mapping[str, str] | None = None
) -> str | None:
    """Put a part with a `solve` of its own in front of the present one.

    Args:
        source: The harness.
        text: The part; its `inner` becomes the present solve.
        old_name: What the present solve is called from now on.
        constants: Assignments to put before the part: name -> expression text.

    Returns:
        The new text, or None where there is no plain `solve`.
    """
    imports, rest = split_imports(text)
    head = "".join(f"{name} = {value}\n\n" for name, value in (constants or {}).items())
    text = "\n".join(imports) + "\n" + head + "\n" + rest.lstrip("\n")
    old = free_name(old_name, source.names)
    renames = _clashes(source, text) | {"inner": old}
    solve = next(n for n in ast.parse(text).body if isinstance(n, ast.FunctionDef) and n.name == "solve")
    lines = text.split("\n")
    before = rename_words("\n".join(lines[: solve.lineno - 1]), renames)
    after = rename_words("\n".join(lines[solve.lineno - 1 :]).strip("\n"), renames)
    renamed = source.rename_solve(old)
    if renamed is None:
        if not source.binds_solve():
            return None
        after = f"{old} = solve\n\n\n{after}"
        renamed = []
    # The old solve may stand anywhere; the new one is last, so that every name it uses exists.
    changed = source.splice([*renamed, *source.insertion(before)])
    return f"{changed.rstrip()}\n\n\n{after}\n"


def add_definitions(source: Source, text: str) -> tuple[list[Splice], Mapping[str, str]]:
    """Changes that insert a part without a `solve`, and what its names became."""
    renames = _clashes(source, text)
    return source.insertion(rename_words(text, renames)), renames


def has_definition(source: Source, text: str) -> bool:
    """Whether the harness already holds this part's last definition, word for word."""
    names = defined_names(text)
    return bool(names) and _same(source, text, names[-1])


def without_known(source: Source, text: str) -> str:
    """The part without definitions that the harness already holds word for word."""
    tree = ast.parse(text)
    lines = text.split("\n")
    for node in reversed(tree.body):
        if (
            isinstance(node, (ast.FunctionDef, ast.ClassDef))
            and node.name != "solve"
            and _same(source, text, node.name)
        ):
            del lines[node.lineno - 1 : node.end_lineno]
    return "\n".join(lines)


def join_parts(texts: Sequence[str]) -> str:
    """Several parts as one, imports first."""
    imports: list[str] = []
    bodies: list[str] = []
    for text in texts:
        lines, rest = split_imports(text)
        imports += [line for line in lines if line not in imports]
        bodies.append(rest.strip("\n"))
    return "\n".join(imports) + "\n\n" + "\n\n\n".join(bodies) + "\n"


def _clashes(source: Source, text: str) -> dict[str, str]:
    taken = source.names
    return {name: free_name(name, taken) for name in defined_names(text) if name in taken}


def _same(source: Source, text: str, name: str) -> bool:
    mine = parse_source(text)
    theirs = source.definition(name)
    ours = None if mine is None else mine.definition(name)
    if mine is None or ours is None or theirs is None:
        return False
    return ast.dump(ours) == ast.dump(theirs)
