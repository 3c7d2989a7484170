"""Words for a repair turn: the closest real lines. Nothing here ever decides where an edit goes."""

from collections import Counter
from collections.abc import Sequence
from difflib import SequenceMatcher

_QUOTE = 80
_SHOWN = 6
_SCANNED = 2000
_COMPARED = 160


def quote(text: str) -> str:
    """Text between backticks, cut to one short line without control characters."""
    flat = "".join(c if c.isprintable() else " " for c in text[: _QUOTE * 2]).strip()
    return f"`{flat if len(flat) <= _QUOTE else flat[: _QUOTE - 1] + '…'}`"


def line_list(numbers: Sequence[int]) -> str:
    """`lines 4, 9 and 15`, at most six of them."""
    if len(numbers) == 1:
        return f"line {numbers[0]}"
    if len(numbers) > _SHOWN:
        return f"lines {', '.join(map(str, numbers[:_SHOWN]))} and {len(numbers) - _SHOWN} more"
    return f"lines {', '.join(map(str, numbers[:-1]))} and {numbers[-1]}"


def _anchor(lines: Sequence[str], search: Sequence[str]) -> tuple[int, int] | None:
    """(first line of the window, lines of it that agree) by votes of equal lines; None without any."""
    where: dict[str, list[int]] = {}
    for at, line in enumerate(lines):
        where.setdefault(line.strip(), []).append(at)
    votes: Counter[int] = Counter()
    for j, line in enumerate(search[:40]):
        words = line.strip()
        if len(words) > 3:
            for at in where.get(words, [])[:50]:
                votes[at - j] += 1
    if not votes:
        return None
    start, count = max(votes.items(), key=lambda item: (item[1], -item[0]))
    return start, count


def _similar(lines: Sequence[str], words: str) -> tuple[int, float]:
    """(line, ratio) of the line most like `words`."""
    matcher = SequenceMatcher(autojunk=False)
    matcher.set_seq2(words[:_COMPARED])
    best, ratio = -1, 0.0
    for at, line in enumerate(lines[:_SCANNED]):
        matcher.set_seq1(line.strip()[:_COMPARED])
        if matcher.real_quick_ratio() > ratio and matcher.quick_ratio() > ratio and matcher.ratio() > ratio:
            best, ratio = at, matcher.ratio()
    return best, ratio


def closest(lines: Sequence[str], search: Sequence[str]) -> str:
    """A sentence that says which real lines SEARCH probably means, with line numbers and their text."""
    anchor = _anchor(lines, search)
    if anchor:
        start = anchor[0]
        for j, line in enumerate(search):
            at = start + j
            real = lines[at] if 0 <= at < len(lines) else None
            if real is not None and real.strip() == line.strip():
                continue
            if real is None:
                edge = f"ends at line {len(lines)}" if at >= 0 else "starts"
                return f"SEARCH has {quote(line)} where the file {edge}: copy whole lines exactly."
            return (
                f"Closest is line {at + 1}, which reads {quote(real)} where SEARCH has {quote(line)}: "
                f"copy it exactly."
            )
        return (
            f"Lines {start + 1} to {start + len(search)} hold the same words with other indentation: "
            f"copy them exactly."
        )
    words = max((line.strip() for line in search), key=len)
    inside = next((at for at, line in enumerate(lines) if words in line), None)
    if inside is not None:
        return f"Line {inside + 1} holds it within {quote(lines[inside])}: SEARCH must be whole lines."
    at, ratio = _similar(lines, words)
    if ratio >= 0.5:
        return (
            f"Closest to {quote(words)} is line {at + 1}: {quote(lines[at])} ({ratio:.0%} alike); "
            f"copy it exactly."
        )
    return f"Nothing in it is like {quote(words)}: copy whole lines from the harness as it is now."
