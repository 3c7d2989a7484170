"""What a proposer is asked to revise: a task, a parent harness, and the report of how it ran. A row of every data set.

A context names the question blocks by digest and by place, so that whoever scores its candidates meets the very
questions that its parent met. It holds no gold that the report does not show.
"""

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hl.codec import decode, encode
from hl.config.trust import write_file
from hl.errors import RepositoryError
from hl.types import Harness, ProposalContext, Report, Score

FILE = "contexts.jsonl"


@dataclass(frozen=True, slots=True)
class Context:
    """One thing to revise."""

    task: str
    """As `hl init --task` takes it."""
    family: str
    cluster: str
    """Families are split by it, never by question."""
    role: str
    """On the track: `sft`, `rl`, `unseen`, ...; empty off it."""
    harness: Harness
    """The parent."""
    report: Report
    """Of the parent on the feedback block."""
    round: int
    """Rounds between the seed and this parent, plus one."""
    block: int
    """Which block of the task's pools the questions are."""
    feedback: str
    """Digest of the feedback block."""
    scoring: str
    """Digest of the scoring block."""
    parent: Score
    """The parent on the scoring block."""

    @property
    def id(self) -> str:
        """Content: task, parent, blocks and report, but not how long its runs took; 16 hexadecimal digits."""
        parts = [self.task, self.harness.digest, self.feedback, self.scoring, _untimed(encode(self.report))]
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]

    def to_propose(self, seed: int = 0) -> ProposalContext:
        """As a proposer takes it.

        Args:
            seed: Of its replies.
        """
        return ProposalContext(self.report.task, self.harness, self.report, self.round, seed=seed)


def _untimed(value: Any) -> Any:
    """The JSON value without its durations, which no two runs share."""
    if isinstance(value, dict):
        return {k: _untimed(v) for k, v in value.items() if not k.startswith("seconds")}
    return [_untimed(v) for v in value] if isinstance(value, list) else value


def save_contexts(path: Path, contexts: Iterable[Context]) -> None:
    """Write them, one JSON line each, at once or not at all."""
    lines = (json.dumps(encode(c), sort_keys=True, allow_nan=False) + "\n" for c in contexts)
    write_file(path, "".join(lines))


def load_contexts(path: Path) -> tuple[Context, ...]:
    """Read them.

    Raises:
        RepositoryError: The file is missing or holds something else; the message names the line.
    """
    try:
        lines = path.read_bytes().splitlines()
    except OSError as error:
        raise RepositoryError(f"{path} cannot be read: {error.strerror}.") from None
    found: list[Context] = []
    for number, line in enumerate(lines, start=1):
        try:
            found.append(decode(Context, json.loads(line)))
        except (ValueError, RecursionError) as error:
            raise RepositoryError(f"{path}:{number} is not a context: {error}.") from None
    return tuple(found)
