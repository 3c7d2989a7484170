"""Harness digest -> measurements, wherever the note hangs. A disposable index; git stays the truth.

Scores follow the harness, so a reverted or cherry-picked commit finds the score of the commit that first had its
files. That needs all notes: SQLite keeps them by digest under `<git common dir>/hl/`, refreshed from the notes commit
it last saw. A missing, foreign or broken index is made anew; where none can be written, one in memory serves.
"""

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from hl.git import Git
from hl.ledger.lines import parse_line
from hl.ledger.names import NOTES
from hl.ledger.notes import listing
from hl.types import Measurement

SCHEMA = 1


def measurements_of(git: Git, path: Path, digests: Sequence[str]) -> Mapping[str, tuple[Measurement, ...]]:
    """The measurements of each harness digest, oldest first; digests without any are left out."""
    tip = git.ref(NOTES)
    if tip is None or not digests:
        return {}
    try:
        return _look_up(git, str(path), tip, digests)
    except (sqlite3.Error, OSError):
        try:
            path.unlink(missing_ok=True)
            return _look_up(git, str(path), tip, digests)
        except (sqlite3.Error, OSError):
            return _look_up(git, ":memory:", tip, digests)


def _look_up(git: Git, name: str, tip: str, digests: Sequence[str]) -> Mapping[str, tuple[Measurement, ...]]:
    database = sqlite3.connect(name, timeout=5)
    try:
        _refresh(git, database, tip)
        found: dict[str, tuple[Measurement, ...]] = {}
        for digest in dict.fromkeys(digests):
            rows = database.execute(
                "SELECT DISTINCT line FROM lines WHERE harness = ? ORDER BY line", (digest,)
            )
            parsed = [parse_line(row[0]) for row in rows]
            if measurements := tuple(m for m in parsed if m is not None):
                found[digest] = tuple(sorted(measurements, key=lambda m: m.time))
        return found
    finally:
        database.close()


def _refresh(git: Git, database: sqlite3.Connection, tip: str) -> None:
    database.execute("PRAGMA synchronous = OFF")
    version = database.execute("PRAGMA user_version").fetchone()[0]
    seen: str | None = None
    if version == SCHEMA:
        row = database.execute("SELECT tip FROM seen").fetchone()
        seen = row[0] if row else None
        if seen == tip:
            return
    with database:
        database.execute("BEGIN IMMEDIATE")
        if version != SCHEMA or seen is None or git.ref(f"{seen}^{{commit}}") is None:
            database.execute("DROP TABLE IF EXISTS lines")
            database.execute("DROP TABLE IF EXISTS seen")
            database.execute("CREATE TABLE lines (harness TEXT, annotated TEXT, line TEXT)")
            database.execute("CREATE INDEX by_harness ON lines (harness)")
            database.execute("CREATE INDEX by_annotated ON lines (annotated)")
            database.execute("CREATE TABLE seen (tip TEXT)")
            database.execute(f"PRAGMA user_version = {SCHEMA}")
            changed = ((c, oid) for c, _, oid in listing(git, tip))
        else:
            changed = _changes(git, seen, tip)
        pairs = list(changed)
        with git.batch() as batch:
            blobs = batch.get_many([oid if oid else "" for _, oid in pairs])
            for (annotated, _), blob in zip(pairs, blobs, strict=True):
                database.execute("DELETE FROM lines WHERE annotated = ?", (annotated,))
                for line in blob[2].split(b"\n") if blob else ():
                    if line.strip() and (m := parse_line(line)) is not None:
                        row = (m.harness, annotated, line.decode("utf-8", "replace"))
                        database.execute("INSERT INTO lines VALUES (?, ?, ?)", row)
        database.execute("DELETE FROM seen")
        database.execute("INSERT INTO seen VALUES (?)", (tip,))


def _changes(git: Git, old: str, new: str) -> Iterator[tuple[str, str | None]]:
    """(annotated object, blob or None if the note is gone) of what differs between two notes commits."""
    removed: dict[str, None] = {}
    present: dict[str, str] = {}
    fields = git.fields("diff-tree", "-r", "-z", "--no-renames", old, new)
    for head in fields:
        path = next(fields)
        _, _, _, oid, status = head.decode().split(" ")
        annotated = path.replace(b"/", b"").decode("ascii", "replace")
        if status == "D":
            removed[annotated] = None
        else:
            present[annotated] = oid
    # A note that only moved between fan-outs is removed in one place and present in another.
    for annotated in removed:
        if annotated not in present:
            yield annotated, None
    yield from present.items()
