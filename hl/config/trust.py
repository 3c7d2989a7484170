"""Which repositories may decide about programs, addresses, key variables and prices.

A repository's guarded values count only if their hash lies in the user's own configuration directory, put
there by `hl init` or `hl config trust`. Values that equal the defaults need no trust. The hash covers the
guarded values; where one of them names a file of the repository, it covers the repository's place too,
since the same name means another file elsewhere. A change of a guarded value therefore ends the trust, a
change of anything else does not.
"""

import hashlib
import json
import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from hl.config.keys import KEYS, Value, show
from hl.config.load import FILE, config_dir, read_values
from hl.errors import RepositoryError

HARMLESS_TASKS = ("reasoning-gym:", "qa:tiny")
"""Task names that read no file of the repository's choosing and run no code of its own."""


def guarded_values(values: Mapping[str, Value]) -> dict[str, Value]:
    """Those values of a repository that need trust: guarded keys that say something else than the default."""
    return {
        name: value
        for name, value in sorted(values.items())
        if KEYS[name].guarded
        and value != KEYS[name].default
        and not (name == "task.name" and str(value).startswith(HARMLESS_TASKS))
    }


def trust_hash(root: Path, values: Mapping[str, Value]) -> str:
    """Hex sha256 over the guarded values, and over the place where they name files of the repository."""
    guarded: dict[str, Any] = {
        name: dict(value) if isinstance(value, Mapping) else value
        for name, value in guarded_values(values).items()
    }
    local = any(
        name == "task.name" or (name.endswith((".path", ".adapter")) and not Path(str(value)).is_absolute())
        for name, value in guarded.items()
    )
    place = str(root.resolve()) if local else ""
    return hashlib.sha256(json.dumps([1, place, guarded], sort_keys=True).encode()).hexdigest()


def is_trusted(root: Path, values: Mapping[str, Value] | None = None) -> bool:
    """Whether the repository's guarded values count; true where it sets none."""
    values = read_values(root / FILE) if values is None else values
    return not guarded_values(values) or (_directory() / trust_hash(root, values)).is_file()


def trust(root: Path) -> Mapping[str, Value]:
    """Trust what the repository's `hl.toml` says now; returns the guarded values that count from here on.

    Raises:
        UsageError: `hl.toml` is not valid.
        RepositoryError: The user's configuration directory cannot be written.
    """
    values = read_values(root / FILE)
    guarded = guarded_values(values)
    if guarded:
        note = {"repository": str(root.resolve()), "values": {k: show(v) for k, v in guarded.items()}}
        write_file(_directory() / trust_hash(root, values), json.dumps(note, indent=1) + "\n")
    return MappingProxyType(guarded)


def refuse_untrusted(root: Path, values: Mapping[str, Value], effective: Sequence[str]) -> None:
    """Refuse a repository that sets guarded keys which the user does not trust.

    Args:
        root: Top of the work tree.
        values: All that its `hl.toml` sets.
        effective: The keys for which nothing stronger stands in the user's file or on the command line.

    Raises:
        RepositoryError: The message names the keys and their values.
    """
    guarded = guarded_values(values)
    needed = [name for name in guarded if name in effective]
    if needed and not is_trusted(root, values):
        listed = ", ".join(f"{name} = {show(guarded[name])}" for name in needed)
        raise RepositoryError(
            f"{root / FILE} sets {listed}, which count only in a repository that you trust.",
            hint="read hl.toml, then: hl config trust",
        )


def write_file(path: Path, text: str) -> None:
    """Replace a small file of the user's, at once or not at all.

    Raises:
        RepositoryError: The directory cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        mode = path.stat().st_mode & 0o777 if path.exists() else 0o644
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".hl-")
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as stream:
                stream.write(text)
                stream.flush()
                os.fsync(stream.fileno())
            Path(temporary).chmod(mode)
            Path(temporary).replace(path)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise RepositoryError(f"{path} cannot be written: {error.strerror}.") from None


def _directory() -> Path:
    return config_dir() / "trusted"
