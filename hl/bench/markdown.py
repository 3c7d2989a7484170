"""Tables -> one Markdown page. What comes from rows and manifests is text in it, never markup."""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hl.bench.table import Table

_MARKUP = re.compile(r"([\\`*_\[\]<>|&~$#])")


def render_page(tables: "Sequence[Table]", heading: str) -> str:
    """One page.

    Args:
        tables: In order.
        heading: Of the page.
    """
    lines = [f"# {escape(heading)}", ""]
    for table in tables:
        lines += [f"## {escape(table.title)}", ""]
        lines += ["| " + " | ".join(escape(c) for c in table.head) + " |"]
        lines += ["|" + "|".join("---" if i == 0 else "---:" for i in range(len(table.head))) + "|"]
        lines += ["| " + " | ".join(escape(c) for c in row) + " |" for row in table.texts]
        lines += ["", *(f"- {escape(note)}" for note in table.notes), ""]
    return "\n".join(lines).rstrip() + "\n"


def escape(text: str) -> str:
    """Text of one line that is shown as it stands: no markup, no HTML, no formula, no end of a cell."""
    return _MARKUP.sub(r"\\\1", " ".join(text.splitlines()))
