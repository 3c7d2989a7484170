"""Changing configuration files: one value at a time, comments and layout kept."""

from collections.abc import Mapping, MutableMapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hl.config.keys import KEYS, Value, find_key, parse
from hl.config.load import FILE, read_toml, user_file
from hl.config.trust import is_trusted, trust, write_file
from hl.errors import UsageError

if TYPE_CHECKING:
    from tomlkit import TOMLDocument


def set_value(name: str, text: str, *, root: Path | None) -> Path:
    """Write one value as typed on the command line; returns the file written.

    A repository that was trusted before stays so: the user has just typed the change.

    Args:
        name: Dotted key.
        text: The value, as after `-c key=`.
        root: Top of the work tree, or None for the user's own file.

    Raises:
        UsageError: Unknown key, a value it does not allow, or a file that is not TOML.
        RepositoryError: The file cannot be written.
    """
    key = find_key(name, "hl config set")
    value = parse(key, text, "hl config set")
    path = user_file() if root is None else root / FILE
    if root is None and key.repository_only:
        raise UsageError(
            f"{key.name} belongs in a repository's {FILE}.", hint=f"hl config set {key.name} VALUE"
        )
    trusted = root is not None and _was_trusted(root)
    write_values(path, {key.name: value})
    if root is not None and trusted:
        trust(root)
    return path


def unset_value(name: str, *, root: Path | None) -> bool:
    """Remove one value from a file, so that the weaker layers count; whether it was there."""
    key = find_key(name, "hl config unset")
    path = user_file() if root is None else root / FILE
    trusted = root is not None and _was_trusted(root)
    document = _document(path)
    section: Any = document.get(key.section)
    if not isinstance(section, MutableMapping) or key.field not in section:
        return False
    del section[key.field]
    write_file(path, document.as_string())
    if root is not None and trusted:
        trust(root)
    return True


def write_values(path: Path, values: Mapping[str, Value]) -> None:
    """Set values in a TOML file, which need not exist; what else it holds stays as it is.

    Raises:
        UsageError: The file is not TOML.
        RepositoryError: The file cannot be written.
    """
    import tomlkit

    document = _document(path)
    for name, value in values.items():
        key = KEYS[name]
        if key.section not in document:
            document[key.section] = tomlkit.table()
        section: Any = document[key.section]
        if not isinstance(section, MutableMapping):
            raise UsageError(
                f"{path}: {key.section} is not a section.", hint=f"write [{key.section}] in {path}"
            )
        section[key.field] = _plain(value)
    write_file(path, document.as_string())


def _was_trusted(root: Path) -> bool:
    try:
        return is_trusted(root)
    except UsageError:  # a file that this very change may mend
        return False


def _document(path: Path) -> "TOMLDocument":
    import tomlkit

    read_toml(path)
    return tomlkit.parse(path.read_text(encoding="utf-8")) if path.exists() else tomlkit.document()


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return list(value)  # pyright: ignore[reportUnknownArgumentType]
    if isinstance(value, Mapping):
        return {k: _plain(v) for k, v in value.items()}  # pyright: ignore[reportUnknownVariableType]
    return value
