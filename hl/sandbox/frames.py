"""Frames between the host and a child: four bytes of big-endian length, then UTF-8 JSON.

The host's half of the protocol. Promises that whatever bytes a child writes, `FrameBuffer` and `parse_frame` either
give a plain dictionary of strict JSON (no NaN, no infinity, no lone surrogates) or raise `ProtocolError`, in bounded
memory. It does not know what the messages mean.
"""

import json
import math
import struct
from collections.abc import Mapping
from typing import Any, cast

MAX_FRAME_BYTES = 1 << 20
"""Longest frame taken from a child."""

_LENGTH = struct.Struct(">I")
_encode = json.JSONEncoder(allow_nan=False, separators=(",", ":")).encode


class ProtocolError(Exception):
    """A child broke the protocol; internal to the sandbox, which ends the attempt."""


def encode_frame(message: Mapping[str, Any]) -> bytes:
    """A frame as bytes.

    Raises:
        ValueError: The message is not JSON (`TypeError` where it is not even data).
    """
    return wrap_frame(_encode(message).encode())


def wrap_frame(payload: bytes) -> bytes:
    """Put the length before a payload that is JSON already."""
    return _LENGTH.pack(len(payload)) + payload


class FrameBuffer:
    """Collects bytes and gives complete payloads."""

    def __init__(self) -> None:
        self._data = bytearray()

    def feed(self, data: bytes) -> list[bytes]:
        """Add bytes; returns the payloads that are complete now.

        Raises:
            ProtocolError: A frame announces more than `MAX_FRAME_BYTES`.
        """
        self._data += data
        payloads: list[bytes] = []
        start, end = 0, len(self._data)
        while end - start >= 4:
            (length,) = _LENGTH.unpack_from(self._data, start)
            if length > MAX_FRAME_BYTES:
                raise ProtocolError(f"a message of {length} bytes is longer than {MAX_FRAME_BYTES}")
            if end - start - 4 < length:
                break
            payloads.append(bytes(self._data[start + 4 : start + 4 + length]))
            start += 4 + length
        del self._data[:start]
        return payloads


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text[:20]} is not a finite number")
    return value


def _refuse(text: str) -> float:
    raise ValueError(f"{text} is not JSON")


_decode = json.JSONDecoder(parse_float=_finite, parse_constant=_refuse).decode


def parse_frame(payload: bytes) -> dict[str, Any]:
    """A payload as a dictionary.

    Raises:
        ProtocolError: Not UTF-8, not JSON, nested too deeply, or not an object.
    """
    try:
        text = payload.decode()  # json.loads would guess UTF-16 and UTF-32
        value = _decode(text)
        if "\\ud" in text or "\\uD" in text:  # an escaped surrogate: would fail later, in a file or a request
            value = _clean(value)
    except RecursionError:
        raise ProtocolError("a message is nested too deeply") from None
    except ValueError as error:  # UnicodeDecodeError and JSONDecodeError are ValueErrors
        raise ProtocolError(f"a message is not JSON: {str(error)[:200]}") from None
    if not isinstance(value, dict):
        raise ProtocolError("a message is not an object")
    return cast("dict[str, Any]", value)


def _clean(value: Any) -> Any:
    """Replace lone surrogates by U+FFFD, everywhere."""
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, list):
        return [_clean(item) for item in cast("list[Any]", value)]
    if isinstance(value, dict):
        return {_clean(key): _clean(item) for key, item in cast("dict[str, Any]", value).items()}
    return value
