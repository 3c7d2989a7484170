"""Two harnesses side by side: the difference of their code, and of their grades by question. Pure functions."""

import difflib
from collections.abc import Sequence
from dataclasses import dataclass

from hl.types import Harness, Measurement
from hl.ui.text import clean

ROLES = ("evaluation", "confirmation", "scoring", "feedback")
"""In which measurements are preferred for a comparison."""


@dataclass(frozen=True, slots=True)
class Changed:
    """One question on which two harnesses differ."""

    id: str
    before: float
    after: float


def harness_diff(before: Harness | None, after: Harness, names: tuple[str, str] = ("a", "b")) -> str:
    """A unified diff of all files, harmless on a terminal; empty where nothing differs.

    Args:
        before: None for a first commit.
        after: The later harness.
        names: What to call the sides in the file headers.
    """
    old = dict(before.files) if before else {}
    new = dict(after.files)
    lines: list[str] = []
    for name in sorted({*old, *new}):
        if old.get(name) == new.get(name):
            continue
        sides = (
            f"{names[0]}/{name}" if name in old else "/dev/null",
            f"{names[1]}/{name}" if name in new else "/dev/null",
        )
        one, two = (_lines(side.get(name, "")) for side in (old, new))
        for line in difflib.unified_diff(one, two, *sides, lineterm=""):
            lines.append(clean(line))
    return "\n".join(lines) + "\n" if lines else ""


def _lines(text: str) -> list[str]:
    lines = text.split("\n")
    if lines[-1] == "":
        return lines[:-1]
    return [*lines[:-1], lines[-1] + "\n\\ No newline at end of file"]


def comparable(
    before: Sequence[Measurement], after: Sequence[Measurement], role: str = ""
) -> tuple[Measurement, Measurement] | None:
    """The best two measurements to compare: same solver and grading, most questions in common, preferred role first.

    Args:
        before: Of one harness, oldest first.
        after: Of the other.
        role: Only this role, if given.
    """
    best: tuple[tuple[int, int, int], Measurement, Measurement] | None = None
    for i, one in enumerate(before):
        for j, two in enumerate(after):
            if (
                one.ablation
                or two.ablation
                or (one.solver, one.mode, one.role) != (two.solver, two.mode, two.role)
            ):
                continue
            if role and one.role != role:
                continue
            shared = len(_graded(one) & _graded(two))
            rank = (-ROLES.index(one.role), shared, i + j)
            if shared and (best is None or rank > best[0]):
                best = (rank, one, two)
    return None if best is None else (best[1], best[2])


def _graded(m: Measurement) -> set[str]:
    return {i for i, g in zip(m.ids, m.grades, strict=True) if g is not None}


def changed(before: Measurement, after: Measurement) -> tuple[tuple[Changed, ...], tuple[Changed, ...]]:
    """(won, lost): the questions whose grade rose and fell, largest change first."""
    old = {i: g for i, g in zip(before.ids, before.grades, strict=True) if g is not None}
    pairs = [
        Changed(i, old[i], g)
        for i, g in zip(after.ids, after.grades, strict=True)
        if g is not None and i in old
    ]
    won = sorted((c for c in pairs if c.after > c.before), key=lambda c: (c.before - c.after, c.id))
    lost = sorted((c for c in pairs if c.after < c.before), key=lambda c: (c.after - c.before, c.id))
    return tuple(won), tuple(lost)
