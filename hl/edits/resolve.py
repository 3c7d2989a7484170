"""Edit blocks + parent -> candidate: every span is found on the parent's text, then all are replaced at once.

A span is whole lines. It is looked for exactly, else with trailing blanks ignored, else with one uniform
difference of indentation, each only if there is exactly one such place (measured: these two are safe if tabs
are expanded first and blank lines at a block's edges are kept; nothing looser is). Line ends, a byte order
mark and the presence or absence of a final newline stay as they were; files are neither created nor removed.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from hl.edits.error import EditError
from hl.edits.hints import closest, line_list, quote
from hl.edits.parse import split_lines
from hl.types import Edit, Harness, Outcome

_APPLIED_CHARS = 12
"""A REPLACE text shorter than this proves nothing by being there already."""
_INDENT_PLACES = 1000
"""Places whose indentation is compared; where a text repeats more often, no place counts as the only one."""
_BLANKS = " \t"


@dataclass(frozen=True, slots=True)
class _File:
    """One parent file, taken apart into lines."""

    name: str
    bom: str
    lines: tuple[str, ...]
    """Without their ends."""
    ends: tuple[str, ...]
    """LF or CRLF of each line, empty for a last line without one."""

    @property
    def tabs(self) -> bool:
        """Whether the file holds any tab."""
        return any("\t" in line for line in self.lines)


@dataclass(frozen=True, slots=True)
class _Span:
    """Where a block applies, and what goes there."""

    number: int
    """The block's place in the reply, from 1."""
    start: int
    """First line, 0-based."""
    stop: int
    """One past the last line."""
    new: tuple[str, ...]


def _open(name: str, text: str) -> _File:
    bom = "\ufeff" if text.startswith("\ufeff") else ""
    lines: list[str] = []
    ends: list[str] = []
    for raw in text[len(bom) :].split("\n"):
        crlf = raw.endswith("\r")
        lines.append(raw[:-1] if crlf else raw)
        ends.append("\r\n" if crlf else "\n")
    # The last piece has no line end: a carriage return there is text.
    if ends[-1] == "\r\n":
        lines[-1] += "\r"
    ends[-1] = ""
    if lines[-1] == "":
        lines.pop()
        ends.pop()
    return _File(name, bom, tuple(lines), tuple(ends))


def _places(lines: Sequence[str], search: Sequence[str]) -> Iterator[int]:
    """Every line at which `search` stands, overlapping places included; linear through `str.find`."""
    hay = "\n" + "\n".join(lines) + "\n"
    needle = "\n" + "\n".join(search) + "\n"
    at, line, counted = hay.find(needle), 0, 0
    while at >= 0:
        line += hay.count("\n", counted, at)
        counted = at
        yield line
        at = hay.find(needle, at + 1)


def _expand(line: str) -> str:
    body = line.lstrip(_BLANKS)
    return line[: len(line) - len(body)].expandtabs(4) + body


def _shift(window: Sequence[str], search: Sequence[str]) -> tuple[str, str] | None:
    """What turns SEARCH lines into the file's: (prefix to remove, prefix to add); None if not uniform.

    The lines are known to be equal but for blanks at their ends.
    """
    found: tuple[str, str] | None = None
    for theirs, ours in zip(window, search, strict=True):
        theirs, ours = theirs.rstrip(_BLANKS), ours.rstrip(_BLANKS)
        if not ours:
            continue
        if theirs.endswith(ours):
            pair = ("", theirs[: len(theirs) - len(ours)])
        elif ours.endswith(theirs):
            pair = (ours[: len(ours) - len(theirs)], "")
        else:
            return None
        if found not in (None, pair) or "".join(pair).strip(_BLANKS):
            return None
        found = pair
    return found


def _shifted(lines: Sequence[str], cut: str, add: str) -> list[str] | None:
    """REPLACE lines moved like SEARCH was; None where a line has less indentation than would be cut."""
    moved: list[str] = []
    for line in lines:
        if not line.strip(_BLANKS):
            moved.append(line)
        elif line.startswith(cut):
            moved.append(add + line[len(cut) :])
        else:
            return None
    return moved


def _find(file: _File, search: Sequence[str], new: Sequence[str]) -> list[tuple[int, tuple[str, ...]]]:
    """Places where SEARCH stands, by the strictest reading that finds any, each with its replacement."""
    exact = list(_places(file.lines, search))
    if not exact:
        exact = list(_places([x.rstrip(_BLANKS) for x in file.lines], [x.rstrip(_BLANKS) for x in search]))
    if exact:
        return [(at, tuple(new)) for at in exact]
    found: list[tuple[int, tuple[str, ...]]] = []
    for tried, at in enumerate(
        _places([x.strip(_BLANKS) for x in file.lines], [x.strip(_BLANKS) for x in search])
    ):
        if tried == _INDENT_PLACES:
            return [*found, (at, ())] if found else []
        shift = _shift(file.lines[at : at + len(search)], search)
        moved = _shifted(new, *shift) if shift else None
        if moved is not None:
            found.append((at, tuple(moved)))
    return found


def _missing(
    parent: Harness, file: _File, edit: Edit, number: int, search: Sequence[str], new: Sequence[str]
) -> EditError:
    where = f"block {number} (reply line {edit.line})" if edit.line else f"block {number}"
    if sum(len("".join(line.split())) for line in new) >= _APPLIED_CHARS and _find(file, new, new):
        at = _find(file, new, new)[0][0]
        return EditError(
            Outcome.ALREADY_APPLIED,
            f"{where}: SEARCH is not in {file.name}, but its REPLACE text already stands at line {at + 1}.",
        )
    for name, text in parent.files:
        if name != file.name and len(_find(_open(name, text), search, ())) == 1:
            return EditError(
                Outcome.NOT_FOUND,
                f"{where}: SEARCH is not in {file.name} but in {name}: put `# file: {name}` on the line "
                f"after the SEARCH marker.",
            )
    return EditError(
        Outcome.NOT_FOUND, f"{where}: SEARCH is not in {file.name}. {closest(file.lines, search)}"
    )


def _resolve(parent: Harness, file: _File, edit: Edit, number: int) -> _Span:
    search, new = split_lines(edit.search), split_lines(edit.replace)
    if not any(line.strip() for line in search):
        raise EditError(Outcome.EMPTY_SEARCH, f"SEARCH of block {number} is empty.")
    if not file.tabs:
        # First of all, or a tab counts as one column and the shift is wrong (measured: 9 of 247 misapplied).
        search, new = [_expand(x) for x in search], [_expand(x) for x in new]
    found = _find(file, search, new)
    if len(found) > 1:
        first = quote(next(line for line in search if line.strip()))
        raise EditError(
            Outcome.AMBIGUOUS,
            f"block {number}: SEARCH ({first}) stands at {line_list([at + 1 for at, _ in found])} of "
            f"{file.name}: add the lines before or after the one you mean.",
        )
    if not found:
        raise _missing(parent, file, edit, number, search, new)
    at, moved = found[0]
    return _Span(number, at, at + len(search), moved)


def _rebuild(file: _File, spans: Sequence[_Span]) -> str:
    """The file's text with every span replaced; spans are sorted and disjoint."""
    lines: list[str] = []
    ends: list[str] = []
    done = 0
    for span in spans:
        lines += [*file.lines[done : span.start], *span.new]
        # A replaced line keeps its neighbours' way of ending lines, so mixed files stay as they were.
        end = file.ends[span.start] or file.ends[span.start - 1] or "\n"
        ends += [*file.ends[done : span.start], *[end] * len(span.new)]
        done = span.stop
    lines += file.lines[done:]
    ends += file.ends[done:]
    if ends:
        last = file.ends[-1]
        ends[-1] = ends[-1] or "\n" if last else ""
    return file.bom + "".join(line + end for line, end in zip(lines, ends, strict=True))


def apply_edits(parent: Harness, edits: Iterable[Edit]) -> Harness:
    """Apply all blocks or none.

    Returns:
        The candidate, its files in the parent's order. The blocks' order does not matter.

    Raises:
        EditError: not_found, already_applied, ambiguous, overlap or empty_search: the first block at fault.
    """
    files = {name: _open(name, text) for name, text in parent.files}
    spans: dict[str, list[_Span]] = {}
    for number, edit in enumerate(edits, 1):
        name = edit.file if edit.file is not None else parent.entry
        if name not in files:
            names = ", ".join(files)
            raise EditError(
                Outcome.NOT_FOUND,
                f"block {number}: there is no file {quote(name)}; the harness has {names}, and edits cannot "
                f"create files.",
            )
        spans.setdefault(name, []).append(_resolve(parent, files[name], edit, number))
    texts = dict(parent.files)
    for name, found in spans.items():
        found.sort(key=lambda s: (s.start, s.stop))
        for one, two in pairwise(found):
            if two.start < one.stop:
                raise EditError(
                    Outcome.OVERLAP,
                    f"blocks {one.number} and {two.number} both change line {two.start + 1} of {name}: "
                    f"make them one block.",
                )
        texts[name] = _rebuild(files[name], found)
    return replace(parent, files=tuple((name, texts[name]) for name, _ in parent.files))
