"""What the user sees. Data goes to stdout, everything else to stderr; rich is imported only where progress
is drawn.

`text` words scores and makes foreign text safe for a terminal, `output` writes, colours and pages,
`progress` shows work that takes long. Nothing here reads a repository.
"""

from hl.ui.output import Output, open_output, say, warn, write_json
from hl.ui.text import clean, columns, render_gain, render_score

__all__ = [
    "Output",
    "clean",
    "columns",
    "open_output",
    "render_gain",
    "render_score",
    "say",
    "warn",
    "write_json",
]
