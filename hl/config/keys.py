"""The table of keys, and what a value must be. Reads no file; every refusal names file, key and value.

Values of a repository are untrusted: only plain data passes, bounded in length and without control
characters.
"""

import difflib
import json
import math
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from types import MappingProxyType
from typing import Any

from hl.config.sections import SECTIONS
from hl.errors import UsageError

Value = bool | int | float | str | tuple[str, ...] | Mapping[str, Any]
"""What a key can hold."""

MAX_TEXT = 4096
"""Longest text a value may be, in characters."""
MAX_TABLE = 16_384
"""Longest table, in characters of JSON."""


@dataclass(frozen=True, slots=True)
class Key:
    """One configuration key."""

    name: str
    """Dotted: `round.proposals`."""
    default: Value
    kind: str
    """`true or false`, `a whole number`, `a number`, `a text`, `a list of texts` or `a table`."""
    mark: str
    """`paper`, `second-hand` or `ours`: where the default comes from."""
    help: str
    """One line."""
    guarded: bool
    """Whether a repository's value needs the user's trust."""
    repository_only: bool
    """Whether the user's own file may not set it."""
    low: float | None
    high: float | None
    choices: tuple[str, ...]
    pattern: str

    @property
    def section(self) -> str:
        """The part before the dot."""
        return self.name.partition(".")[0]

    @property
    def field(self) -> str:
        """The part after the dot."""
        return self.name.partition(".")[2]


KINDS: tuple[tuple[type, str], ...] = (
    (bool, "true or false"),
    (int, "a whole number"),
    (float, "a number"),
    (str, "a text"),
    (tuple, "a list of texts"),
    (Mapping, "a table"),
)


def table(sections: Mapping[str, Any]) -> Mapping[str, Key]:
    """Every key of these sections, by dotted name.

    Args:
        sections: Section name -> dataclass whose fields were declared with `hl.config.sections.key`.
    """
    keys: dict[str, Key] = {}
    for section, cls in sections.items():
        for item in fields(cls):
            meta = dict(item.metadata)
            kind = next(word for type_, word in KINDS if isinstance(meta["default"], type_))
            keys[f"{section}.{item.name}"] = Key(name=f"{section}.{item.name}", kind=kind, **meta)
    return MappingProxyType(keys)


KEYS: Mapping[str, Key] = table(SECTIONS)
"""Every key, by dotted name, in the order in which they are shown."""


def find_key(name: str, where: str, keys: Mapping[str, Key] = KEYS) -> Key:
    """The key of that name.

    Args:
        name: Dotted name as the user wrote it.
        where: What to blame: a file's path, or `-c`.
        keys: All there are.

    Raises:
        UsageError: There is none; the message names the nearest.
    """
    if name in keys:
        return keys[name]
    last = name.rpartition(".")[2]
    if last in ("api_key", "key", "token", "secret", "password"):
        raise UsageError(
            f"{where}: unknown key {show(name)}; hl keeps no secrets in files.",
            hint="export the key as a variable and name it: hl config set solver.api_key_env NAME --user",
        )
    near = difflib.get_close_matches(name, keys, n=1, cutoff=0.6) or [
        k for k in keys if k.endswith("." + last)
    ]
    meant = f"; did you mean {near[0]!r}?" if near else "."
    raise UsageError(f"{where}: unknown key {show(name)}{meant}", hint="hl config list")


def show(value: object) -> str:
    """A value as error messages quote it: JSON-like, on one line, at most 80 characters."""
    if isinstance(value, tuple):
        value = list(value)  # pyright: ignore[reportUnknownArgumentType]
    if isinstance(value, Mapping):
        value = dict(value)  # pyright: ignore[reportUnknownArgumentType]
    try:
        text = json.dumps(value, ensure_ascii=True, allow_nan=True)
    except (TypeError, ValueError, RecursionError):
        text = type(value).__name__
    return text if len(text) <= 80 else text[:77] + "..."


def check(key: Key, raw: object, where: str) -> Value:
    """A value as it came out of TOML -> the key's frozen value.

    Raises:
        UsageError: Wrong type, out of range, not one of the choices, or not plain data.
    """
    value = _typed(key, raw, where)
    if isinstance(value, bool):
        return value
    if isinstance(value, (int, float)):
        if (key.low is not None and value < key.low) or (key.high is not None and value > key.high):
            raise _refuse(key, raw, where, f"must lie between {key.low:g} and {key.high:g}")
    elif isinstance(value, str):
        _check_text(key, value, where)
    elif isinstance(value, tuple):
        if not value and key.default:
            raise _refuse(key, raw, where, "must not be empty")
        if len(set(value)) != len(value) or len(value) > 64:
            raise _refuse(key, raw, where, "must name each item once, 64 at most")
        for item in value:
            _check_text(key, item, where)
    return value


def parse(key: Key, text: str, where: str) -> Value:
    """A value as typed on a command line -> the key's frozen value: texts need no quotes, the rest is TOML.

    Raises:
        UsageError: As for `check`.
    """
    if isinstance(key.default, str):
        return check(key, text, where)
    if isinstance(key.default, tuple) and not text.lstrip().startswith("["):
        return check(key, [part.strip() for part in text.split(",")], where)
    try:
        raw: object = tomllib.loads(f"value = {text}")["value"] if "\n" not in text else text
    except (tomllib.TOMLDecodeError, RecursionError):
        try:
            raw = json.loads(text)
        except (ValueError, RecursionError):
            raw = text
    return check(key, raw, where)


def _refuse(key: Key, raw: object, where: str, why: str) -> UsageError:
    return UsageError(
        f"{where}: {key.name} = {show(raw)}: the value {why}.", hint=f"hl config get {key.name} --describe"
    )


def _typed(key: Key, raw: object, where: str) -> Value:
    default = key.default
    if isinstance(default, bool):
        if isinstance(raw, bool):
            return raw
    elif isinstance(default, int):
        if isinstance(raw, int) and not isinstance(raw, bool):
            return raw
    elif isinstance(default, float):
        if isinstance(raw, (int, float)) and not isinstance(raw, bool) and abs(raw) < 1e300:
            return float(raw)
    elif isinstance(default, str):
        if isinstance(raw, str):
            return raw
    elif isinstance(default, tuple):
        if isinstance(raw, (list, tuple)) and all(isinstance(item, str) for item in raw):  # pyright: ignore[reportUnknownVariableType]
            return tuple(str(item) for item in raw)  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    elif isinstance(raw, Mapping):
        try:
            plain = _plain(raw, 0)
        except ValueError as error:
            raise _refuse(key, raw, where, str(error)) from None
        if len(json.dumps(plain)) > MAX_TABLE:
            raise _refuse(key, raw, where, f"must be at most {MAX_TABLE} characters of JSON")
        return MappingProxyType(plain)
    raise _refuse(key, raw, where, f"must be {key.kind}")


def _plain(raw: Any, depth: int) -> Any:
    """Copy plain JSON data; ValueError says what it must be."""
    if depth > 16:
        raise ValueError("must not be nested deeper than 16")
    if isinstance(raw, Mapping):
        return {str(k): _plain(v, depth + 1) for k, v in raw.items()}
    if isinstance(raw, Sequence) and not isinstance(raw, (str, bytes)):
        return [_plain(v, depth + 1) for v in raw]
    if isinstance(raw, float) and not math.isfinite(raw):
        raise ValueError("must hold finite numbers")
    if raw is None or isinstance(raw, (bool, int, float, str)):
        return raw
    raise ValueError("must hold nothing but texts, numbers, true, false, lists and tables")


def _check_text(key: Key, text: str, where: str) -> None:
    if len(text) > MAX_TEXT or any(ord(c) < 32 or ord(c) == 127 or 0xD800 <= ord(c) <= 0xDFFF for c in text):
        raise _refuse(key, text, where, f"must be one line of at most {MAX_TEXT} characters")
    if key.choices and text not in key.choices:
        near = difflib.get_close_matches(text, key.choices, n=1, cutoff=0.5)
        meant = f"; did you mean {near[0]!r}?" if near else ""
        raise UsageError(
            f"{where}: {key.name} = {show(text)}: the value must be one of {', '.join(key.choices)}{meant}",
            hint=f"hl config get {key.name} --describe",
        )
    if key.pattern and not re.fullmatch(key.pattern, text):
        if key.field == "api_key_env":
            # It may well be the secret itself, so it is not repeated.
            raise UsageError(
                f"{where}: {key.name} must be the name of an environment variable, not a key.",
                hint=f"hl config set {key.name} OPENAI_API_KEY --user",
            )
        if key.field == "base_url" and "@" in text:
            raise UsageError(  # nor is this: a password may stand before the @
                f"{where}: {key.name} must be {PATTERN_WORDS['base_url'].removeprefix('must be ')}.",
                hint=f"export the key as a variable: hl config set {key.section}.api_key_env NAME --user",
            )
        raise _refuse(key, text, where, PATTERN_WORDS.get(key.field, f"must match {key.pattern}"))


PATTERN_WORDS: Mapping[str, str] = MappingProxyType(
    {
        "base_url": "must be an http:// or https:// address without user name, query or fragment",
        "files": "must hold plain file names such as harness.py, without folders",
        "entry": "must be a plain file name such as harness.py, without folders",
    }
)
"""What a key's pattern means, in words."""
