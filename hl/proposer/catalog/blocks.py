"""Two texts of one file -> SEARCH/REPLACE blocks that turn the first into the second.

Promises: every SEARCH stands exactly once in the old text, blocks do not touch, and applying them gives the new text
line for line (`hl.edits` has the last word: the catalog applies every reply before it proposes it).
"""

from collections.abc import Sequence
from difflib import SequenceMatcher
from itertools import pairwise

from hl.edits import MAX_BLOCKS, render_edits
from hl.types import Edit

Span = tuple[int, int]
"""First line and one past the last line, in the old text."""
Opcode = tuple[str, int, int, int, int]


def edit_blocks(old: str, new: str) -> tuple[Edit, ...]:
    """The edits of the entry file between two texts; none if they have the same lines."""
    a, b = old.splitlines(), new.splitlines()
    opcodes = SequenceMatcher(None, a, b, autojunk=False).get_opcodes()
    spans = [(i1, i2) for tag, i1, i2, _, _ in opcodes if tag != "equal"]
    if not a or not spans:
        return ()
    spans = _settle(a, opcodes, spans)
    while len(spans) > MAX_BLOCKS:
        spans = _settle(a, opcodes, _join_closest(spans))
    edits: list[Edit] = []
    for start, end in spans:
        low, high = _boundary(opcodes, start)[0], _boundary(opcodes, end)[1]
        edits.append(Edit(None, _lines(a[start:end]), _lines(b[low:high])))
    return tuple(edits)


def render_reply(summary: str, edits: Sequence[Edit]) -> str:
    """A reply as a proposer writes it: one line of prose, then the blocks."""
    return f"{summary}\n\n{render_edits(edits)}"


def _lines(lines: Sequence[str]) -> str:
    return "".join(line + "\n" for line in lines)


def _settle(a: Sequence[str], opcodes: Sequence[Opcode], spans: Sequence[Span]) -> list[Span]:
    """Every span grown until it is unique, snapped to whole changes, those that touch joined."""
    merged: list[Span] = []
    for span in sorted(_snap(opcodes, _grow(a, span)) for span in spans):
        if merged and span[0] <= merged[-1][1]:
            start, end = merged.pop()
            span = (start, max(end, span[1]))
        merged.append(span)
    return merged


def _grow(a: Sequence[str], span: Span) -> Span:
    """The span with as much context as makes it unique; the line above first, it names what follows."""
    start, end = span
    while not _unique(a, start, end) and (start > 0 or end < len(a)):
        if start > 0 and (end == len(a) or start >= end or end - span[1] >= span[0] - start):
            start -= 1
        else:
            end += 1
    return start, end


def _unique(lines: Sequence[str], start: int, end: int) -> bool:
    """Whether the span matches once, also for a matcher that forgives blanks and indentation."""
    wanted = [line.strip() for line in lines[start:end]]
    if not any(wanted):
        return False
    stripped = [line.strip() for line in lines]
    return sum(stripped[i : i + len(wanted)] == wanted for i in range(len(lines) - len(wanted) + 1)) == 1


def _snap(opcodes: Sequence[Opcode], span: Span) -> Span:
    """The span widened so that neither end lies inside a change."""
    start, end = span
    for tag, i1, i2, _, _ in opcodes:
        if tag != "equal" and i1 < start < i2:
            start = i1
        if tag != "equal" and i1 < end < i2:
            end = i2
    return start, end


def _boundary(opcodes: Sequence[Opcode], line: int) -> tuple[int, int]:
    """The lowest and highest line of the new text that lie at this boundary of the old one."""
    at: list[int] = []
    for tag, i1, i2, j1, j2 in opcodes:
        if tag == "equal" and i1 <= line <= i2:
            at.append(j1 + line - i1)
        elif line == i1:
            at.append(j1)
        if tag != "equal" and line == i2:
            at.append(j2)
    return min(at), max(at)


def _join_closest(spans: Sequence[Span]) -> list[Span]:
    """The two spans with the smallest gap made one."""
    gaps = [right[0] - left[1] for left, right in pairwise(spans)]
    at = gaps.index(min(gaps))
    return [*spans[:at], (spans[at][0], spans[at + 1][1]), *spans[at + 2 :]]
