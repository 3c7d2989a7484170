"""Values as JSON and back, with what JSON lacks tagged: reasoning-gym's entries hold tuples, sets, dates, odd keys.

Without the tags, `arc_agi` and `rearc` grade their own gold as wrong after a round trip. Self-contained on purpose, the
standard library only: this text is also sent into the sandbox, in front of `confined.py`.
"""

import base64
import datetime
import decimal
import enum
import fractions
import json
import math
from collections.abc import Callable, Mapping
from typing import Any

TAG = "$"


def encode(value: Any) -> Any:
    """A JSON value from which `decode` rebuilds the given one: tuples, sets, odd keys, dates and numbers are tagged.

    Raises:
        TypeError: A type that has no tag; better than an entry that comes back changed.
    """
    if isinstance(value, enum.Enum):
        return encode(value.value)
    if value is None or isinstance(value, bool | str):
        return value if not isinstance(value, str) else str.__str__(value)
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else {TAG: "float", "v": repr(float(value))}
    if isinstance(value, list):
        return [encode(v) for v in value]
    if isinstance(value, tuple):
        return {TAG: "tuple", "v": [encode(v) for v in value]}
    if isinstance(value, set | frozenset):
        return {
            TAG: "set",
            "v": sorted((encode(v) for v in value), key=lambda v: json.dumps(v, sort_keys=True)),
        }
    if isinstance(value, Mapping):
        if all(isinstance(k, str) for k in value) and TAG not in value:
            return {str(k): encode(v) for k, v in value.items()}
        return {TAG: "dict", "v": [[encode(k), encode(v)] for k, v in value.items()]}
    for kind, name in ((datetime.datetime, "datetime"), (datetime.date, "date"), (datetime.time, "time")):
        if type(value) is kind:
            return {TAG: name, "v": value.isoformat()}
    if isinstance(value, datetime.timedelta):
        return {TAG: "timedelta", "v": [value.days, value.seconds, value.microseconds]}
    if isinstance(value, fractions.Fraction | decimal.Decimal):
        return {TAG: type(value).__name__, "v": str(value)}
    if isinstance(value, complex):
        return {TAG: "complex", "v": [encode(value.real), encode(value.imag)]}
    if isinstance(value, bytes):
        return {TAG: "bytes", "v": base64.b64encode(value).decode()}
    if type(value).__module__ == "numpy":
        if getattr(value, "ndim", 0):
            return {TAG: "ndarray", "v": encode(value.tolist()), "dtype": str(value.dtype)}
        return encode(value.item())
    raise TypeError(f"cannot store a value of type {type(value).__module__}.{type(value).__qualname__}")


def decode(value: Any) -> Any:
    """The value that `encode` was given."""
    if isinstance(value, list):
        return [decode(v) for v in value]
    if not isinstance(value, dict):
        return value
    if TAG not in value:
        return {k: decode(v) for k, v in value.items()}
    kind, v = value[TAG], value["v"]
    if kind == "dict":
        return {decode(k): decode(x) for k, x in v}
    if kind == "ndarray":
        import numpy

        return numpy.array(decode(v), dtype=value["dtype"])
    makers: dict[str, Callable[[Any], Any]] = {
        "float": float,
        "tuple": lambda v: tuple(decode(x) for x in v),
        "set": lambda v: {decode(x) for x in v},
        "datetime": datetime.datetime.fromisoformat,
        "date": datetime.date.fromisoformat,
        "time": datetime.time.fromisoformat,
        "timedelta": lambda v: datetime.timedelta(*v),
        "Fraction": fractions.Fraction,
        "Decimal": decimal.Decimal,
        "complex": lambda v: complex(decode(v[0]), decode(v[1])),
        "bytes": base64.b64decode,
    }
    return makers[kind](v)
