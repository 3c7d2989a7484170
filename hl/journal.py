"""The journal of a `revise` run in progress: what `--continue` needs to go on.

Promises: the file is always whole (written aside, then renamed), and is removed when the run ends. Does not hold
measurements or rounds: those are in the attempt cache and the ledger, which also tells how far the run is.
"""

import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hl.codec import decode, encode
from hl.errors import RepositoryError
from hl.types import Cost


@dataclass(frozen=True, slots=True)
class Options:
    """What the command line asked for, so that `--continue` means the same run."""

    rounds: int
    patience: int | None = None
    target: float | None = None
    max_calls: int | None = None
    max_tokens: int | None = None
    max_seconds: float | None = None
    max_cost: float | None = None
    overrides: tuple[str, ...] = ()
    """`key=value` texts, the rules of the round among them."""
    profile: str = ""


@dataclass(frozen=True, slots=True)
class Run:
    """A run between two of its steps."""

    lineage: str
    start: str
    """Commit at which it began."""
    first_round: int
    """Number of its first round: from here on the ledger's rounds are this run's, whatever instant it was killed at."""
    options: Options
    spent: Cost = field(default_factory=Cost)
    """So far, without cached replies."""


class Journal:
    """The journal file.

    Args:
        path: `<git common dir>/hl/run.json`.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def load(self) -> Run | None:
        """The run in progress, or None.

        Raises:
            RepositoryError: The file cannot be read.
        """
        try:
            data: Any = json.loads(self.path.read_bytes())
            return decode(Run, data)
        except FileNotFoundError:
            return None
        except ValueError as error:
            raise RepositoryError(f"{self.path} is damaged: {error}.", hint="hl revise --abandon") from None

    def save(self, run: Run) -> None:
        """Replace the journal."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        draft = self.path.with_suffix(".tmp")
        with draft.open("w", encoding="ascii") as file:
            json.dump(encode(run), file, sort_keys=True)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(self.path)

    def clear(self) -> None:
        """Remove the journal; fine if there is none."""
        self.path.unlink(missing_ok=True)
