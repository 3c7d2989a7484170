"""Which context stands at which place of a run: `contexts.jsonl`, in the order in which training meets them.

A run is one pass over it. In single-step training it is written whole before the first update; in multi-step training
phase by phase, since later contexts are states that the policy reached. A written phase never changes, so a run that
is resumed meets what it would have met.
"""

from collections.abc import Sequence
from pathlib import Path

from hl.errors import RepositoryError, UsageError
from training.contexts import FILE, Context, load_contexts, save_contexts
from training.settings import GrpoSettings


def phase_ends(settings: GrpoSettings) -> tuple[int, ...]:
    """How many contexts are met by the end of each phase; whole updates, shared out evenly.

    Raises:
        UsageError: The contexts are no whole number of updates.
    """
    updates, rest = divmod(settings.contexts, settings.contexts_per_update)
    if rest or not updates:
        raise UsageError(
            f"grpo.contexts = {settings.contexts} is no multiple of grpo.contexts_per_update = "
            f"{settings.contexts_per_update}.",
            hint=f"grpo.contexts={max(1, updates) * settings.contexts_per_update}",
        )
    phases = min(settings.phases, updates) if settings.mode == "multi" else 1
    return tuple(settings.contexts_per_update * (updates * p // phases) for p in range(1, phases + 1))


class Schedule:
    """The contexts so far.

    Args:
        out: The run's directory.
    """

    def __init__(self, out: Path) -> None:
        self._path = out / FILE
        self.contexts: tuple[Context, ...] = ()
        self.reload()

    def reload(self) -> None:
        """Read what is on disk.

        Raises:
            RepositoryError: It is damaged.
        """
        self.contexts = load_contexts(self._path) if self._path.exists() else ()

    def extend(self, more: Sequence[Context]) -> None:
        """Add a phase; on disk when this returns."""
        self.contexts = (*self.contexts, *more)
        save_contexts(self._path, self.contexts)

    def at(self, place: int) -> Context:
        """The context at a place, from 0.

        Raises:
            RepositoryError: The run has not come so far.
        """
        if place >= len(self.contexts):
            raise RepositoryError(
                f"{self._path} holds {len(self.contexts)} contexts, and no number {place + 1}."
            )
        return self.contexts[place]
