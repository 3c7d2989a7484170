"""Rows: a teacher's revision of a context, what it gained, and whether it is worth learning from.

`rows.jsonl` holds one row a line, whole: a row moves between machines without the run that made it. A file from
elsewhere is data: nothing of it is executed, and no name in it is used as a path.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from hl.codec import decode, encode
from hl.config.trust import write_file
from hl.errors import RepositoryError
from hl.types import Gain
from training.contexts import Context

FILE = "rows.jsonl"

KEPT = "kept"
VERDICTS = (
    KEPT,
    "not applied",
    "repeated",
    "held out",
    "no gain",
    "screened",
    "over budget",
    "not confirmed",
    "not measured again",
)
"""`kept`, or the first filter that a row did not pass, in their order."""
(_, NOT_APPLIED, REPEATED, HELD_OUT, NO_GAIN, SCREENED, OVER_BUDGET, NOT_CONFIRMED, NOT_MEASURED) = VERDICTS


@dataclass(frozen=True, slots=True)
class Row:
    """One revision."""

    context: Context
    teacher: str
    """Who wrote it: the teacher's label, or the proposer's name in a ledger."""
    reply: str
    """What a model shall learn to write: one line of prose and the edit blocks; empty if the reply did not apply."""
    summary: str
    candidate: str
    """Digest of the harness that it makes; empty if it makes none."""
    verdict: str
    """One of `VERDICTS`."""
    detail: str = ""
    """Why it was dropped, in one sentence."""
    pattern: str = ""
    """One of `training.patterns.PATTERNS`; empty if the reply did not apply."""
    tags: tuple[str, ...] = ()
    """What the screen noticed without refusing it."""
    tokens: int = 0
    """Of the reply, estimated (characters / 2.75)."""
    gain: Gain | None = None
    """Over the parent on the scoring questions: biased upwards where it chose the row."""
    fresh: Gain | None = None
    """Over the parent on questions that chose nothing."""
    solver: str = ""
    """Digest of the frozen model under which it was measured (`Measurement.solver`)."""
    solver_name: str = ""
    """The same, readable."""
    grade: str = ""
    """`raw` or `strict`."""

    @property
    def id(self) -> str:
        """Content: context, teacher and what was written; 16 hexadecimal digits."""
        parts = [self.context.id, self.teacher, self.reply or self.summary, self.detail]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]

    @property
    def kept(self) -> bool:
        """Whether it passed every filter."""
        return self.verdict == KEPT


def save_rows(folder: Path, rows: Iterable[Row]) -> None:
    """Write them, at once or not at all; the same rows give the same bytes."""
    lines = (
        json.dumps({"id": r.id, **encode(r)}, sort_keys=True, allow_nan=False, ensure_ascii=True) + "\n"
        for r in rows
    )
    write_file(folder / FILE, "".join(lines))


def load_rows(folder: Path) -> tuple[Row, ...]:
    """The rows of a data set.

    Raises:
        RepositoryError: There is no data set here, or a line is no row; the message names it.
    """
    path = folder / FILE
    try:
        lines = path.read_bytes().splitlines()
    except OSError as error:
        raise RepositoryError(
            f"{path} cannot be read: {error.strerror}.", hint=f"hl train data --out {folder}"
        ) from None
    found: list[Row] = []
    for number, line in enumerate(lines, start=1):
        try:
            row = decode(Row, json.loads(line))
        except (ValueError, RecursionError) as error:
            raise RepositoryError(f"{path}:{number} is not a row: {error}.") from None
        if row.verdict not in VERDICTS:
            raise RepositoryError(f"{path}:{number} is not a row: its verdict is {row.verdict[:40]!r}.")
        found.append(row)
    return tuple(found)


@dataclass(frozen=True, slots=True)
class Stats:
    """What a set of rows is."""

    rows: int
    kept: int
    contexts: int
    verdicts: Mapping[str, int]
    """Rows by verdict, all of them named."""
    patterns: Mapping[str, int]
    """Kept rows by pattern, the commonest first."""
    families: Mapping[str, tuple[int, int]]
    """Family -> kept rows, rows."""
    teachers: Mapping[str, tuple[int, int]]
    """Teacher -> kept rows, rows."""
    tags: Mapping[str, int]
    """Kept rows by tag."""
    tokens: tuple[int, int, int]
    """Of kept replies, estimated: least, median, most."""
    gain: float | None
    """Mean over kept rows on the questions that chose them."""
    fresh: float | None
    """The same on fresh questions: the difference is what choosing alone had added."""


def stats_of(rows: Sequence[Row]) -> Stats:
    """Count."""
    kept = [r for r in rows if r.kept]
    verdicts = Counter(r.verdict for r in rows)
    tokens = sorted(r.tokens for r in kept)
    return Stats(
        rows=len(rows),
        kept=len(kept),
        contexts=len({r.context.id for r in rows}),
        verdicts={v: verdicts[v] for v in VERDICTS},
        patterns=dict(Counter(r.pattern for r in kept).most_common()),
        families=_shares((r.context.family, r.kept) for r in rows),
        teachers=_shares((r.teacher, r.kept) for r in rows),
        tags=dict(Counter(tag for r in kept for tag in r.tags).most_common()),
        tokens=(tokens[0], int(median(tokens)), tokens[-1]) if tokens else (0, 0, 0),
        gain=_mean([r.gain.mean for r in kept if r.gain is not None]),
        fresh=_mean([r.fresh.mean for r in kept if r.fresh is not None]),
    )


def _shares(pairs: Iterable[tuple[str, bool]]) -> dict[str, tuple[int, int]]:
    found: dict[str, tuple[int, int]] = {}
    for name, kept in pairs:
        good, every = found.get(name, (0, 0))
        found[name] = (good + kept, every + 1)
    return dict(sorted(found.items()))


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None
