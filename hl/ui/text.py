"""Values -> text: scores, gains, counts, columns; and foreign text made safe for a terminal. Pure
functions.
"""

import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # building the nouns' classes costs more than printing a log
    from hl.types import Cost, Gain, Score


def clean(text: str) -> str:
    """Foreign text without what could steer a terminal: control and format characters made visible.

    New lines and tabs stay. Models write replies and summaries, and harnesses write answers: none of them may
    move the cursor, set a title or turn the line around.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(c if c in "\n\t" or _harmless(c) else _visible(c) for c in text.replace("\r\n", "\n"))


def one_line(text: str, width: int = 0) -> str:
    """Foreign text on one line, cut to a width if one is given."""
    line = " ".join(clean(text).split())
    return line if not width or len(line) <= width else line[: max(width - 1, 0)] + "…"


def _harmless(c: str) -> bool:
    return unicodedata.category(c) not in ("Cc", "Cf", "Cs", "Zl", "Zp")


def _visible(c: str) -> str:
    return f"\\x{ord(c):02x}" if ord(c) < 256 else f"\\u{ord(c):04x}"


def render_score(score: "Score | None") -> str:
    """`0.812 ± 0.049 (n=64)`; `-` where there is none."""
    if score is None or score.n == 0:
        return "-"
    return f"{score.mean:.3f} ± {score.se:.3f} (n={score.n})"


def render_gain(gain: "Gain | None") -> str:
    """`+0.125 ± 0.060`; `-` where there is none."""
    return "-" if gain is None or gain.n == 0 else f"{gain.mean:+.3f} ± {gain.se:.3f}"


def render_counts(counts: Mapping[str, int]) -> str:
    """`3 crash, 2 wrong`, largest first; empty where nothing was counted."""
    return ", ".join(f"{n} {name}" for name, n in sorted(counts.items(), key=lambda kv: (-kv[1], kv[0])) if n)


def render_cost(cost: "Cost") -> str:
    """`1,204 calls, 312,900 tokens, 84 s`, and the money where there was any."""
    tokens = cost.prompt_tokens + cost.completion_tokens
    text = f"{cost.calls:,} calls, {tokens:,} tokens, {render_seconds(cost.seconds)}"
    return text + (f", {cost.money:.4f} in money" if cost.money else "")


def render_seconds(seconds: float) -> str:
    """`8.4 s`, `84 s`, `12 min`, `3.1 h`."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def render_bytes(count: int) -> str:
    """`105.5 MB`."""
    return f"{count / 1e6:.1f} MB" if count >= 100_000 else f"{count:,} bytes"


def columns(rows: Iterable[Sequence[str]], *, gap: int = 2, right: Sequence[int] = ()) -> list[str]:
    """Rows of cells -> lines with aligned columns; the last column is not padded.

    Args:
        rows: Cells without new lines; all rows equally long.
        gap: Blanks between columns.
        right: Indices of columns to align on the right.
    """
    table = [tuple(row) for row in rows]
    if not table:
        return []
    widths = [max(len(row[i]) for row in table) for i in range(len(table[0]))]
    last = len(widths) - 1
    lines: list[str] = []
    for row in table:
        cells = [
            cell.rjust(widths[i]) if i in right else cell if i == last else cell.ljust(widths[i])
            for i, cell in enumerate(row)
        ]
        lines.append((" " * gap).join(cells).rstrip())
    return lines
