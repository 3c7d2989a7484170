"""A table, and how it reads as Markdown and as JSON."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Entry:
    """A place of a table that holds more than its text."""

    text: str
    value: Any
    """What JSON holds: numbers by stable names, or a stable name."""


@dataclass(frozen=True, slots=True)
class Table:
    """Texts and entries under a head."""

    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[str | Entry, ...], ...]
    notes: tuple[str, ...] = ()
    name: str = ""
    """What kind of table it is, for machines."""
    keys: tuple[str, ...] = ()
    """Stable names of the columns; the head where there are none."""
    grade: str = ""
    """Which grade its scores are; empty where it has none of ours."""

    @property
    def texts(self) -> tuple[tuple[str, ...], ...]:
        """The rows as they read."""
        return tuple(tuple(c.text if isinstance(c, Entry) else c for c in row) for row in self.rows)

    @property
    def record(self) -> Mapping[str, Any]:
        """The JSON object: one object a row, with numbers where the text shows numbers."""
        keys = self.keys or self.head
        rows = [
            {key: c.value if isinstance(c, Entry) else c for key, c in zip(keys, row, strict=True)}
            for row in self.rows
        ]
        told = {"name": self.name, "title": self.title, "grade": self.grade}
        return {**told, "rows": rows, "notes": list(self.notes)}


def markdown(tables: Sequence[Table], heading: str) -> str:
    """One page."""
    lines = [f"# {heading}", ""]
    for table in tables:
        lines += [f"## {table.title}", ""]
        lines += ["| " + " | ".join(_escaped(c) for c in table.head) + " |"]
        lines += ["|" + "|".join("---" if i == 0 else "---:" for i in range(len(table.head))) + "|"]
        lines += ["| " + " | ".join(_escaped(c) for c in row) + " |" for row in table.texts]
        lines += ["", *(f"- {note}" for note in table.notes), ""]
    return "\n".join(lines).rstrip() + "\n"


def _escaped(text: str) -> str:
    return text.replace("|", "\\|")
