"""The journal of a run in progress: what `hl revise --continue` needs to go on.

Promises: the file is always whole (written aside, then renamed), and is removed when the run ends. Does not hold
measurements: those are in the attempt cache and the ledger.
"""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hl.codec import decode, encode
from hl.errors import RepositoryError
from hl.types import Cost


@dataclass(frozen=True, slots=True)
class RunState:
    """A `revise` run between two of its steps."""

    lineage: str
    started_head: str
    """Commit from which the run started."""
    first_round: int
    """Number of its first round."""
    rounds_done: int
    """How many of its rounds are recorded."""
    spent: Cost
    """So far, without cached replies."""
    options: Mapping[str, str] = field(default_factory=dict[str, str])
    """The command's options, as written."""
    stale_rounds: int = 0
    """Rounds since the last accepted one, for `--patience`."""
    before: Mapping[str, str] = field(default_factory=dict[str, str])
    """What the command wants to remember of the start, such as the record of the first evaluation."""


class Journal:
    """The journal file.

    Args:
        path: Such as `<git common dir>/hl/run.json`.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def load(self) -> RunState | None:
        """The run in progress, or None.

        Raises:
            RepositoryError: The file cannot be read.
        """
        try:
            data: Any = json.loads(self.path.read_bytes())
            return decode(RunState, data)
        except FileNotFoundError:
            return None
        except ValueError as error:
            raise RepositoryError(f"{self.path} is damaged: {error}", hint=f"rm {self.path}") from None

    def save(self, state: RunState) -> None:
        """Replace the journal."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        draft = self.path.with_suffix(".tmp")
        with draft.open("w", encoding="ascii") as file:
            json.dump(encode(state), file, sort_keys=True)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(self.path)

    def clear(self) -> None:
        """Remove the journal; fine if there is none."""
        self.path.unlink(missing_ok=True)
