"""Parameters of reasoning-gym families: from the texts of `?key=value` to values of the types the family declares.

Self-contained on purpose, the standard library only: this text is also sent into the sandbox, in front of
`confined.py`. It evaluates nothing but literals.
"""

import ast
import contextlib
import dataclasses
import difflib
import types
import typing
from typing import Any

RESERVED = ("seed", "size")
"""Ours to choose."""


class ParameterError(Exception):
    """A parameter of the family is unknown, ill-typed or out of range; the message is one sentence."""


def typed_params(family: str, config_cls: Any, params: dict[str, str]) -> dict[str, Any]:
    """The parameters as values of the types that the family's configuration names.

    Raises:
        ParameterError: Naming the parameter and what would be valid.
    """
    hints = typing.get_type_hints(config_cls)
    fields = {f.name: f for f in dataclasses.fields(config_cls) if f.name not in RESERVED}
    known = "it has: " + (", ".join(sorted(fields)) or "none")
    values: dict[str, Any] = {}
    for key, text in params.items():
        if key not in fields:
            near = difflib.get_close_matches(key, fields, n=1)
            meant = f"did you mean {near[0]!r}?" if near else known
            raise ParameterError(f"{family} has no parameter {key!r}; {meant}")
        values[key] = typed(family, key, text, hints[key])
    return values


def typed(family: str, key: str, text: str, hint: Any) -> Any:
    """One parameter's value; ParameterError if the text is not of that type."""
    value: Any = {"true": True, "false": False, "none": None}.get(text.lower(), text)
    if isinstance(value, str):
        with contextlib.suppress(ValueError, SyntaxError, MemoryError, RecursionError):
            value = ast.literal_eval(text)
    for choice in typing.get_args(hint) if isinstance(hint, types.UnionType) or _is_union(hint) else (hint,):
        origin = typing.get_origin(choice) or choice
        if origin is Any:
            return value
        if choice is type(None) and value is None:
            return None
        if origin is str:
            return text
        if origin is float and type(value) in (int, float):
            return float(value)
        if origin is tuple and isinstance(value, list | tuple):
            return tuple(value)
        if origin is list and isinstance(value, list | tuple):
            return list(value)
        if isinstance(origin, type) and type(value) is origin:
            return value
    name = getattr(hint, "__name__", str(hint)).replace("typing.", "")
    raise ParameterError(f"parameter {key!r} of {family} must be of type {name}, not {text!r}")


def _is_union(hint: Any) -> bool:
    return typing.get_origin(hint) is typing.Union
