"""Nouns <-> JSON. One rule for every frozen dataclass of `hl.types`, so that no noun needs a serialiser of its own.

`encode` never fails on our own values; `decode` refuses what does not fit its type with a ValueError, ignores unknown
keys and fills missing ones from defaults, so that records of an older or newer hl stay readable.
"""

import types
import typing
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from functools import cache
from typing import Any, TypeVar, cast

T = TypeVar("T")


def encode(value: Any) -> Any:
    """A JSON value: dataclasses become objects, tuples arrays, enums values; fields at their default are left out."""
    if isinstance(value, Enum):
        return value.value
    if value is None or isinstance(value, (str, int, float)):
        return value
    if is_dataclass(value) and not isinstance(value, type):
        out: dict[str, Any] = {}
        for name, default in _defaults(type(value)):
            item = getattr(value, name)
            if default is MISSING or item != default:
                out[name] = encode(item)
        return out
    if isinstance(value, Mapping):
        return {str(k): encode(v) for k, v in cast("Mapping[Any, Any]", value).items()}
    if isinstance(value, (tuple, list)):
        return [encode(v) for v in cast("list[Any]", value)]
    return value


@cache
def _defaults(cls: Any) -> tuple[tuple[str, Any], ...]:
    return tuple((f.name, f.default) for f in fields(cls))


def decode(cls: type[T], data: Any) -> T:
    """The value of type `cls` that `encode` wrote.

    Raises:
        ValueError: The data does not fit the type; the message names the field.
    """
    return cast("T", _decode(cls, data, cls.__name__))


@cache
def _hints(cls: type) -> dict[str, Any]:
    return typing.get_type_hints(cls)


def _decode(kind: Any, data: Any, where: str) -> Any:
    origin = typing.get_origin(kind)
    if origin in (typing.Union, types.UnionType):
        options = typing.get_args(kind)
        if data is None and type(None) in options:
            return None
        return _decode(next(o for o in options if o is not type(None)), data, where)
    if origin is tuple:
        if not isinstance(data, list):
            raise ValueError(f"{where}: expected a list")
        items = cast("list[Any]", data)
        args = typing.get_args(kind)
        if len(args) == 2 and args[1] is Ellipsis:
            return tuple(_decode(args[0], v, f"{where}[{i}]") for i, v in enumerate(items))
        if len(items) != len(args):
            raise ValueError(f"{where}: expected {len(args)} items")
        return tuple(_decode(a, v, f"{where}[{i}]") for i, (a, v) in enumerate(zip(args, items, strict=True)))
    if origin is not None and issubclass(origin, Mapping):
        if not isinstance(data, dict):
            raise ValueError(f"{where}: expected an object")
        value_type = typing.get_args(kind)[1]
        return {
            str(k): _decode(value_type, v, f"{where}.{k}") for k, v in cast("dict[Any, Any]", data).items()
        }
    if is_dataclass(kind):
        return _decode_dataclass(cast("type", kind), data, where)
    if isinstance(kind, type) and issubclass(kind, Enum):
        return kind(data)
    if kind is float and isinstance(data, int) and not isinstance(data, bool):
        try:
            return float(data)
        except OverflowError:
            raise ValueError(f"{where}: the number is too large") from None
    if kind is Any or (isinstance(data, kind) and not (kind is int and isinstance(data, bool))):
        return data
    raise ValueError(f"{where}: expected {getattr(kind, '__name__', kind)}, found {type(data).__name__}")


def _decode_dataclass(kind: type, data: Any, where: str) -> Any:
    if not isinstance(data, dict):
        raise ValueError(f"{where}: expected an object")
    record = cast("dict[str, Any]", data)
    hints = _hints(kind)
    values: dict[str, Any] = {}
    for f in fields(kind):
        if f.name in record:
            values[f.name] = _decode(hints[f.name], record[f.name], f"{where}.{f.name}")
        elif f.default is MISSING and f.default_factory is MISSING:
            raise ValueError(f"{where}.{f.name}: missing")
    return kind(**values)
