"""The rows of a bench run: one a measured harness or proposal, with the two grades that every table is made from.

A cell's rows are written together once the cell is finished, so a cell that has rows is never opened again.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from hl.codec import decode, encode
from hl.config.trust import write_file
from hl.errors import RepositoryError
from hl.types import Measurement

FILE = "rows.jsonl"

SEED, PROPOSAL, AGAIN, BASELINE = "seed", "proposal", "again", "baseline"
ROUND, HEAD = "round", "head"
"""Kinds of rows."""
SINGLE, CHAIN, INDEPENDENT = "single", "chain", "independent"
"""Protocols."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One harness on one block of questions."""

    raw: tuple[float | None, ...]
    """Mean grade over trials a question, in set order; None where every attempt was lost through our fault."""
    strict: tuple[float | None, ...]
    """Likewise."""
    questions: str
    """Digest of the block."""
    attempts: int
    calls: int
    tokens: int
    zero_call_share: float = 0.0
    """Share of attempts that never asked the model."""
    grade: str = "raw"
    """Which of the two `grades` are: the one that made the score when it was measured, until `in_grade`."""

    @property
    def grades(self) -> tuple[float | None, ...]:
        """The raw or the strict ones."""
        return self.strict if self.grade == "strict" else self.raw

    @property
    def mean(self) -> float | None:
        """Over the graded questions; None where there is none."""
        graded = [g for g in self.grades if g is not None]
        return sum(graded) / len(graded) if graded else None


@dataclass(frozen=True, slots=True)
class Took:
    """What a round took, before anything was measured on the evaluation set."""

    calls: int
    """Of the solver, replies from the cache counted: feedback runs, scoring of parent and candidates, confirmation."""
    tokens: int
    """Of those calls, prompt and completion."""
    paid_calls: int
    """Of solver and proposer, as the ledger has them: replies from the cache not counted."""
    paid_tokens: int


@dataclass(frozen=True, slots=True)
class Row:
    """One line of `rows.jsonl`."""

    cell: str
    """Name of the cell's repository."""
    protocol: str
    """`single`, `chain` or `independent`."""
    kind: str
    """`seed`, `proposal`, `again` (A/A), `baseline` (a hand-made harness), `round` (what it revised, and what it took),
    or `head` (after a round of a chain)."""
    task: str
    family: str
    cluster: str
    role: str
    """On the track: `sft`, `rl`, `unseen`, `near`, `excluded`; empty off it."""
    solver: str
    """Label of the frozen model."""
    proposer: str
    """Label of what wrote the edits."""
    block: int
    """Number of the context or of the chain, from 1."""
    name: str = ""
    """Which harness: `seed`, `winner` or `head` of an A/A row, the seed harness's name of a baseline."""
    round: int = 0
    """In its chain; 0 before the first."""
    index: int = 0
    """Of the proposal within its round."""
    outcome: str = ""
    """What became of the proposal."""
    summary: str = ""
    harness: str = ""
    """Digest."""
    duplicate_of: str = ""
    """Digest of the equal candidate, for a duplicate."""
    behavioural_noop: bool = False
    commit: str = ""
    """In the cell's repository."""
    scoring: Sample | None = None
    evaluation: Sample | None = None
    proposer_tokens: int = 0
    """What the reply cost the proposer, prompt and completion."""
    took: Took | None = None
    """Of a `round`."""


def sample(measurement: Measurement) -> Sample:
    """The part of a measurement that tables need.

    Raises:
        RepositoryError: It holds one grade only.
    """
    m = measurement
    if len(m.other_grades) != len(m.grades):
        raise RepositoryError(
            "A score in a cell of this run holds one grade only: an older hl wrote it.",
            hint="run it again with another --out",
        )
    raw, strict = (m.grades, m.other_grades) if m.mode == "raw" else (m.other_grades, m.grades)
    return Sample(
        raw=raw,
        strict=strict,
        questions=m.questions,
        attempts=sum(m.counts.values()),
        calls=m.calls,
        tokens=m.tokens,
        zero_call_share=m.zero_call_share,
        grade=m.mode,
    )


def in_grade(rows: Sequence[Row], grade: str) -> tuple[Row, ...]:
    """The rows with their evaluation shown in a grade; scoring keeps the one that selection went by."""
    return tuple(
        replace(r, evaluation=replace(r.evaluation, grade=grade)) if r.evaluation is not None else r
        for r in rows
    )


def write_rows(run: Path, rows: Sequence[Row]) -> None:
    """Replace the run's rows, at once or not at all."""
    lines = (json.dumps(encode(row), sort_keys=True, allow_nan=False) + "\n" for row in rows)
    write_file(run / FILE, "".join(lines))


def load_rows(run: Path) -> tuple[Row, ...]:
    """The run's rows so far; none before its first cell is finished.

    Raises:
        RepositoryError: The file holds something else; the message names the line.
    """
    path = run / FILE
    try:
        lines = path.read_bytes().split(b"\n")
    except FileNotFoundError:
        return ()
    except OSError as error:
        raise RepositoryError(f"{path} cannot be read: {error.strerror}.") from None
    rows: list[Row] = []
    for number, line in enumerate(lines[:-1] if lines[-1] == b"" else lines, start=1):
        try:
            rows.append(_parse_row(line))
        except (ValueError, RecursionError) as error:
            raise RepositoryError(
                f"{path}:{number} is not a row of a bench run: {error}.", hint=f"rm {path}, and run it again"
            ) from None
    return tuple(rows)


def _parse_row(line: bytes) -> Row:
    found = decode(Row, json.loads(line.decode()))
    for part in (found.scoring, found.evaluation):
        if part is None:
            continue
        if len(part.raw) != len(part.strict):
            raise ValueError("it has raw grades of other questions than strict ones")
        if not all(g is None or 0.0 <= g <= 1.0 for g in (*part.raw, *part.strict)):
            raise ValueError("a grade lies outside 0 to 1")
    return found


def per_attempt(rows: Sequence[Row]) -> tuple[float, float] | None:
    """Solver calls and tokens of an attempt, over all that was measured; None where nothing was."""
    samples = [s for row in rows for s in (row.scoring, row.evaluation) if s is not None]
    attempts = sum(s.attempts for s in samples)
    if not attempts:
        return None
    return sum(s.calls for s in samples) / attempts, sum(s.tokens for s in samples) / attempts
