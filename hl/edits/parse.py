"""Reply text -> edit blocks, and back.

The format: `<<<<<<< SEARCH`, `=======`, `>>>>>>> REPLACE`, each alone on its line, in runs of 5 to 9 marker
characters. A block whose text itself holds such lines picks another length than they have (as git's
conflict-marker-size does): markers as long as the block's head win, the others are text. An indented block's
markers share the head's indentation.
Does not look at the harness: whether a block applies is `resolve.py`'s question.
"""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from hl.edits.error import EditError
from hl.types import Edit, Outcome

MAX_BLOCKS = 8
"""Blocks in one reply (ours)."""
MAX_LINES = 400
"""SEARCH and REPLACE lines of one reply together (ours)."""
MAX_REPLY_CHARS = 1_000_000
"""Longer replies are not read at all (ours): sixteen times the largest harness."""
SUMMARY_CHARS = 100
"""Longest summary line (ours)."""
_SUMMARY_LINES = 200
"""Lines searched for a summary: decoration by the megabyte is not read."""

_MARKER = re.compile(r"([ \t]*)(?:(<{5,9})[ \t]*SEARCH|(={5,9})|(>{5,9})[ \t]*REPLACE)[ \t]*")
_ALMOST_HEAD = re.compile(r"[ \t]*(?:<{4,}[ \t]*search\b|<{5,}(?!<)[ \t]*(?:\w|$))", re.IGNORECASE)
_ALMOST_TAIL = re.compile(r"[ \t]*(?:>{4,}[ \t]*replace\b|>{5,}(?!>)[ \t]*(?:\w|$))", re.IGNORECASE)
_FILE_LINE = re.compile(r"[ \t]*#[ \t]*file:[ \t]*(\S+)[ \t]*")
_FENCE = re.compile(r"[ \t]*(?:```|~~~)")
_TRAILER = re.compile(r"\bHL-([A-Za-z-]*)\s*:", re.IGNORECASE)
_FORMAT = (
    "write `<<<<<<< SEARCH`, whole lines copied from the harness, `=======`, the new lines, "
    "`>>>>>>> REPLACE`, each marker alone on its line"
)


@dataclass(frozen=True, slots=True)
class _Marker:
    """A line that is a marker of the edit format."""

    at: int
    """0-based line of the reply."""
    kind: str
    """`<`, `=` or `>`."""
    size: int
    """How many marker characters."""
    indent: str


def split_lines(text: str) -> list[str]:
    """Lines without their ends; only LF and CRLF end a line, and a final one adds no empty line."""
    lines = [line.removesuffix("\r") for line in text.split("\n")]
    if lines[-1] == "":
        lines.pop()
    return lines


def _join(lines: Sequence[str]) -> str:
    # Every line ends in a newline, so that "no line" and "one blank line" stay apart.
    return "".join(line + "\n" for line in lines)


def _without_thinking(text: str) -> tuple[list[str], int, bool]:
    """Lines of the reply after its reasoning section.

    Returns:
        The lines, how many lines were dropped before them, and whether the reasoning never ended.
    """
    lines = split_lines(text.removeprefix("\ufeff"))
    opened = text.lstrip("\ufeff \t\r\n").startswith("<think>")
    for at, line in enumerate(lines):
        bare = line.strip()
        # Without an opening tag (chat templates swallow it) only a line of its own counts: code that strips
        # reasoning tags, a sensible edit, holds the closing tag inside a line.
        if bare == "</think>" or (opened and bare.endswith("</think>")):
            return lines[at + 1 :], at + 1, False
    if not opened:
        return lines, 0, False
    for at, line in enumerate(lines):
        if "</think>" in line:
            return [line.split("</think>", 1)[1], *lines[at + 1 :]], at, False
    return [], len(lines), True


def _marker(at: int, line: str) -> _Marker | None:
    found = _MARKER.fullmatch(line)
    if not found:
        return None
    run = found[2] or found[3] or found[4]
    return _Marker(at, run[0], len(run), found[1])


def _markers(lines: Sequence[str]) -> list[_Marker]:
    # The substring test keeps long prose cheap.
    hits = (
        _marker(at, line)
        for at, line in enumerate(lines)
        if "<<<<<" in line or "=====" in line or ">>>>>" in line
    )
    return [m for m in hits if m]


def _close(markers: Sequence[_Marker], start: int) -> tuple[int | None, int]:
    """The tail that closes the block whose head is `markers[start]`.

    Returns:
        Index of the tail in `markers` (None: not closed) and the index at which the search ended.
    """
    head = markers[start]
    fallback = None
    blocked = False
    for i in range(start + 1, len(markers)):
        m = markers[i]
        if m.indent != head.indent:
            continue
        if m.kind == "<":
            if m.size == head.size:
                return fallback, i
            blocked = True
        elif m.kind == ">":
            if m.size == head.size:
                return i, i
            if fallback is None and not blocked:
                fallback = i
    return fallback, len(markers)


def _divider(head: _Marker, inside: Sequence[_Marker], number: int, offset: int) -> _Marker:
    """The `=======` of a block, or `malformed`."""
    runs = [m for m in inside if m.kind == "=" and m.indent == head.indent]
    same = [m for m in runs if m.size == head.size]
    chosen = same if same else runs
    line = head.at + offset + 1
    if not chosen:
        raise EditError(
            Outcome.MALFORMED, f"block {number} (reply line {line}) has no `=======` line: {_FORMAT}."
        )
    if len(chosen) > 1:
        at = ", ".join(str(m.at + offset + 1) for m in chosen[:4])
        raise EditError(
            Outcome.MALFORMED,
            f"block {number} (reply line {line}) has several `=======` lines (reply lines {at}): if one of "
            f"them is text, write all three markers of this block with 9 characters.",
        )
    return chosen[0]


def _check_text(lines: Iterable[str], number: int, offset: int) -> None:
    for at, line in enumerate(lines):
        if "\0" in line:
            raise EditError(
                Outcome.MALFORMED, f"block {number} holds a NUL character (reply line {offset + at + 1})."
            )
        if not line.isascii() and any("\ud800" <= c <= "\udfff" for c in line):
            raise EditError(
                Outcome.MALFORMED,
                f"block {number} holds text that is not valid Unicode (reply line {offset + at + 1}).",
            )


def _unclosed(lines: Sequence[str], head: _Marker, until: int, number: int, offset: int) -> EditError:
    """Why a block without its end marker fails: cut off, or badly written."""
    line = head.at + offset + 1
    for at in range(head.at + 1, until):
        if _ALMOST_TAIL.match(lines[at]) and not _marker(at, lines[at]):
            return EditError(
                Outcome.MALFORMED,
                f"reply line {at + offset + 1} is not a marker: end block {number} with `>>>>>>> REPLACE` "
                f"alone on its line.",
            )
    if until < len(lines):
        return EditError(
            Outcome.MALFORMED,
            f"block {number} (reply line {line}) does not end before a new block starts at reply line "
            f"{until + offset + 1}: {_FORMAT}.",
        )
    return EditError(
        Outcome.TRUNCATED,
        f"the reply ended inside block {number} (reply line {line}): write a shorter edit and end it with "
        f"`>>>>>>> REPLACE`.",
    )


def _stray(lines: Sequence[str], outside: Sequence[tuple[int, int]]) -> tuple[int, str] | None:
    """A line outside all blocks that wants to be a marker, and what is wrong with it."""
    for start, stop in outside:
        for at in range(start, stop):
            line = lines[at]
            if "<<<<" in line and _ALMOST_HEAD.match(line):
                return at, "is not a marker"
            if ">>>>" in line and _ALMOST_TAIL.match(line):
                return at, "ends a block that was never started"
    return None


def _scan(lines: Sequence[str], offset: int) -> tuple[list[Edit], list[tuple[int, int]], EditError | None]:
    """All blocks, the line ranges outside them, and the first error."""
    markers = _markers(lines)
    edits: list[Edit] = []
    outside: list[tuple[int, int]] = []
    i = done = 0
    while i < len(markers):
        head = markers[i]
        if head.kind != "<":
            i += 1
            continue
        number = len(edits) + 1
        tail, stop = _close(markers, i)
        outside.append((done, head.at))
        if tail is None:
            until = markers[stop].at if stop < len(markers) else len(lines)
            return edits, outside, _unclosed(lines, head, until, number, offset)
        if number > MAX_BLOCKS:
            return (
                edits,
                outside,
                EditError(Outcome.TOO_MANY, f"the reply has more than {MAX_BLOCKS} blocks."),
            )
        end = markers[tail].at
        try:
            middle = _divider(head, markers[i + 1 : tail], number, offset)
            _check_text(lines[head.at : end], number, offset + head.at)
        except EditError as error:
            return edits, outside, error
        search = list(lines[head.at + 1 : middle.at])
        named = _FILE_LINE.fullmatch(search[0]) if search else None
        if named:
            search.pop(0)
        replace = lines[middle.at + 1 : end]
        edits.append(Edit(named[1] if named else None, _join(search), _join(replace), head.at + offset + 1))
        done = end + 1
        i = tail + 1
    outside.append((done, len(lines)))
    return edits, outside, None


def parse_reply(text: str, *, truncated: bool = False) -> tuple[Edit, ...]:
    """Read the edit blocks of a reply.

    A reasoning section (`<think>...</think>`), prose and code fences around the blocks are ignored. Complete
    blocks of a truncated reply count: what was cut is prose more often than a block, and the candidate is
    measured anyway.

    Args:
        text: The reply; any string, lone surrogates and NUL included.
        truncated: The engine stopped at its token limit.

    Returns:
        At least one edit. `search` and `replace` hold lines that each end in a newline ("": no line).

    Raises:
        EditError: no_edit, malformed, truncated, empty_search or too_many.
    """
    if len(text) > MAX_REPLY_CHARS:
        raise EditError(
            Outcome.TOO_MANY, f"the reply has {len(text):,} characters; at most {MAX_REPLY_CHARS:,} are read."
        )
    lines, offset, thinking = _without_thinking(text)
    if thinking:
        outcome = Outcome.TRUNCATED if truncated else Outcome.NO_EDIT
        raise EditError(outcome, f"the reply ended inside its reasoning: think less, then {_FORMAT}.")
    edits, outside, error = _scan(lines, offset)
    if error:
        raise error
    stray = _stray(lines, outside)
    if stray and not (truncated and not any(line.strip() for line in lines[stray[0] + 1 :])):
        raise EditError(Outcome.MALFORMED, f"reply line {stray[0] + offset + 1} {stray[1]}: {_FORMAT}.")
    if stray or (truncated and not edits):
        raise EditError(Outcome.TRUNCATED, f"the reply ended before a block: be brief, then {_FORMAT}.")
    if not edits:
        raise EditError(Outcome.NO_EDIT, f"the reply holds no edit block: {_FORMAT}.")
    for number, edit in enumerate(edits, 1):
        if not edit.search.strip():
            raise EditError(
                Outcome.EMPTY_SEARCH,
                f"SEARCH of block {number} (reply line {edit.line}) is empty: to insert lines, copy the line "
                f"before them into SEARCH and repeat it in REPLACE.",
            )
    size = sum(e.search.count("\n") + e.replace.count("\n") for e in edits)
    if size > MAX_LINES:
        raise EditError(
            Outcome.TOO_MANY,
            f"the blocks hold {size} lines, at most {MAX_LINES}: search only what changes.",
        )
    return tuple(edits)


def render_edits(edits: Iterable[Edit]) -> str:
    """Edits as reply text that `parse_reply` reads back."""
    blocks: list[str] = []
    for edit in edits:
        lines = split_lines(edit.search) + split_lines(edit.replace)
        taken = {m.size for m in _markers(lines)}
        size = next((n for n in (7, 9, 8, 6, 5) if n not in taken), 7)
        named = f"# file: {edit.file}\n" if edit.file else ""
        search, replace = _join(split_lines(edit.search)), _join(split_lines(edit.replace))
        blocks.append(f"{'<' * size} SEARCH\n{named}{search}{'=' * size}\n{replace}{'>' * size} REPLACE\n")
    return "\n".join(blocks)


def summarise_reply(text: str) -> str:
    """The first line of prose outside the blocks, fit for a commit subject.

    Control, format and surrogate characters go, markdown decoration goes, and nothing that reads as an
    `HL-*:` trailer is left. At most 100 characters; empty if the reply has no prose.
    """
    lines, offset, _ = _without_thinking(text[:MAX_REPLY_CHARS])
    _, outside, _ = _scan(lines, offset)
    fenced = False
    tried = 0
    for start, stop in outside:
        for line in lines[start:stop]:
            if not line or line.isspace():
                continue
            tried += 1
            if tried > _SUMMARY_LINES:
                return ""
            if _FENCE.match(line):
                fenced = not fenced
                continue
            if fenced or _marker(0, line) or _ALMOST_HEAD.match(line) or _ALMOST_TAIL.match(line):
                continue
            words = _clean(line)
            if words:
                return words
    return ""


def _clean(line: str) -> str:
    line = "".join(" " if unicodedata.category(c)[0] in "CZ" else c for c in line[: SUMMARY_CHARS * 20])
    line = re.sub(r"^[\s#>*\-_`=+]+(?:\d+[.)]\s+)?", "", line).replace("**", "").replace("`", "'")
    line = _TRAILER.sub(r"HL \1", line)
    line = " ".join(line.split()).rstrip("*_ ")
    if len(line) > SUMMARY_CHARS:
        line = line[: SUMMARY_CHARS - 1].rsplit(" ", 1)[0].rstrip(" ,;:") + "…"
    return line if any(c.isalnum() for c in line) else ""
