"""A table of text cells, and how it reads as Markdown."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Table:
    """Cells of text under a head."""

    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()


def markdown(tables: Sequence[Table], heading: str) -> str:
    """One page."""
    lines = [f"# {heading}", ""]
    for table in tables:
        lines += [f"## {table.title}", ""]
        lines += ["| " + " | ".join(_escaped(c) for c in table.head) + " |"]
        lines += ["|" + "|".join("---" if i == 0 else "---:" for i in range(len(table.head))) + "|"]
        lines += ["| " + " | ".join(_escaped(c) for c in row) + " |" for row in table.rows]
        lines += ["", *(f"- {note}" for note in table.notes), ""]
    return "\n".join(lines).rstrip() + "\n"


def _escaped(text: str) -> str:
    return text.replace("|", "\\|")
