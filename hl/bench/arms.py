"""The arms of a run, one a pair of models: what is averaged over the same contexts or chains in all of them."""

from collections.abc import Mapping, Sequence
from typing import Protocol, TypeVar

from hl.bench.text import arm_text

Arm = tuple[str, str]
"""(solver, proposer)."""


class Placed(Protocol):
    """A context or a chain of a family."""

    @property
    def family(self) -> str: ...
    @property
    def block(self) -> int:
        """Its number, from 1."""
        ...


_T = TypeVar("_T", bound=Placed)


def shared_cells(by_arm: Mapping[Arm, Sequence[_T]]) -> dict[Arm, tuple[_T, ...]]:
    """The contexts or chains that all arms have, so that their means are over the same questions."""
    if not by_arm:
        return {}
    common = set.intersection(*({(c.family, c.block) for c in cells} for cells in by_arm.values()))
    return {arm: tuple(c for c in cells if (c.family, c.block) in common) for arm, cells in by_arm.items()}


def left_out(
    everything: Mapping[Arm, Sequence[Placed]],
    by_arm: Mapping[Arm, Sequence[Placed]],
    arms: Sequence[Arm],
    noun: str,
) -> list[str]:
    """Notes on what `shared_cells` took away, and on arms that have nothing yet.

    Args:
        everything: Before.
        by_arm: After.
        arms: Of the run.
        noun: `context` or `chain`.
    """
    notes = [
        f"{arm_text(arm, arms)}: {n} {noun}{'s' * (n > 1)} left out that not every proposer has"
        for arm, cells in everything.items()
        if (n := len(cells) - len(by_arm[arm]))
    ]
    absent = [arm_text(arm, arms) for arm in arms if arm not in everything]
    return notes + ([f"no finished cell yet: {', '.join(absent)}"] if absent and everything else [])
