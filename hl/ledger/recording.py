"""The order of writes, and what is done after a kill between two of them.

    1  bulk records                      content-addressed, harmless if the rest never happens
    2  objects                           one pack; unreachable until 4
    3  unfinished/<lineage>.json         names the round that is being recorded
    4  round reference and notes         one transaction of compare-and-swaps
    5  branch, if accepted               compare-and-swap from the revised commit
    6  index and work tree               only where clean
    7  unfinished/<lineage>.json removed

A kill before 4 leaves nothing to see, and the round is run again from the cache. A kill later is finished by
`recover`, or by recording the same round again: both read the round back from its reference.
"""

import json
import os
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from hl.codec import encode
from hl.errors import RepositoryError
from hl.git import Git, GitFailed, Objects, RefMovedError, RefUpdate
from hl.ledger.lines import render_line
from hl.ledger.names import NOTES, escape, parse_candidate, render_candidate, round_ref
from hl.ledger.notes import append
from hl.ledger.rounds import Addresses, RoundRecord, build, read_round
from hl.ledger.worktree import bring_along, find_worktree
from hl.types import Measurement, Round

if TYPE_CHECKING:
    from hl.ledger.repository import Ledger
    from hl.records import Records

CAS_TRIES = 20
"""Compare-and-swaps of the notes before giving up: only foreign writers can make one fail."""
PLAUSIBLE_ROUND = 1_000_000
"""Up to here the number in a trailer is believed, which anybody can write: the next must still be a reference's."""
NOTES_MESSAGE = "Add measurements\n"


@dataclass(frozen=True, slots=True)
class Unfinished:
    """A round that is being recorded."""

    lineage: str
    number: int
    base: str
    """Commit that the work tree still holds."""
    target: str
    """Commit that it should hold: the head after the round."""


def now() -> str:
    """UTC, ISO 8601, to the second; SOURCE_DATE_EPOCH is honoured."""
    epoch = os.environ.get("SOURCE_DATE_EPOCH", "")
    moment = datetime.fromtimestamp(int(epoch), UTC) if epoch.isdigit() else datetime.now(UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def highest_round(ledger: "Ledger", lineage: str) -> int:
    """Highest round number ever used on a lineage, as far as this clone knows; 0 if none."""
    numbers = [number for _, number, _ in ledger.round_refs(lineage)]
    # A plain clone has no round references yet, but its commits name the rounds that made them.
    fields = ledger.git.run(
        "log", "-z", "--grep=^HL-Round: ", "--format=%(trailers:key=HL-Round,valueonly)", "HEAD", "--"
    )[1].split(b"\0")
    for field in fields:
        name = parse_candidate(field.decode("utf-8", "replace").strip())
        if name is not None and name.lineage == lineage and name.round <= PLAUSIBLE_ROUND:
            numbers.append(name.round)
    return max(numbers, default=0)


def add_lines(ledger: "Ledger", measured: Mapping[str, Sequence[Measurement]]) -> None:
    """Add measurements to notes, in one notes commit. The caller holds the write lock."""
    _transact(ledger, measured, Objects(ledger.algorithm), [])


def record_round(ledger: "Ledger", round: Round, records: "Records") -> str | None:
    """See `Ledger.record_round`."""
    if not round.lineage:
        raise RepositoryError(
            "HEAD is detached, and rounds belong to a branch", hint="git switch -c NEW-BRANCH"
        )
    if sorted(c.proposal.index for c in round.candidates) != list(range(len(round.candidates))):
        raise ValueError("candidates are not numbered 0 to K-1")
    with ledger.write_lock():
        ref = round_ref(round.lineage, round.number)
        if (commit := ledger.git.ref(ref)) is None:
            record = _write(ledger, round, records)
        else:
            with ledger.git.batch() as batch:
                record = read_round(batch, commit)
            if record.parent != round.parent.commit:
                raise RepositoryError(
                    f"round {round.number} of {round.lineage} is recorded already, on {record.parent[:12]}"
                    f" and not on {round.parent.commit[:12]}",
                    hint="hl log --all",
                )
        head = _finish(ledger, record)[0]
    # A round leaves some forty loose objects; people who never commit by hand would never have them packed.
    ledger.git.run("-c", "gc.autoDetach=false", "gc", "--auto", "--quiet")
    return head


def recover(ledger: "Ledger") -> str | None:
    """See `Ledger.recover`."""
    done: list[str] = []
    for path in sorted((ledger.folder / "unfinished").glob("*.json")):
        with ledger.write_lock():
            unfinished = _load(path)
            commit = ledger.git.ref(round_ref(unfinished.lineage, unfinished.number)) if unfinished else None
            if unfinished is None or commit is None:
                path.unlink(missing_ok=True)
                continue
            _free_locks(ledger, path, unfinished)
            with ledger.git.batch() as batch:
                record = read_round(batch, commit)
            what = f"round {record.number} of {record.lineage}"
            try:
                _, blocked = _finish(ledger, record)
            except GitFailed:
                raise
            except RepositoryError as error:
                done.append(f"{what} is recorded; {error.message}")
                continue
            if blocked:
                names = ", ".join(blocked)
                done.append(f"{what} is recorded, but the work tree lags behind: {names} is in the way")
            else:
                done.append(f"finished recording {what}")
    return "; ".join(done) or None


def _write(ledger: "Ledger", round: Round, records: "Records") -> RoundRecord:
    stamp = now()
    round = _stamped(round, stamp)
    addresses = Addresses(
        records.put({"kind": "report", "report": encode(round.report)}),
        {
            c.proposal.index: records.put(
                {
                    "kind": "reply",
                    "text": c.proposal.reply.text,
                    "finish_reason": c.proposal.reply.finish_reason,
                    "error": c.proposal.reply.error,
                    "earlier": list(c.proposal.reply.earlier),
                }
            )
            for c in round.candidates
        },
    )
    objects, who = Objects(ledger.algorithm), ledger.identity
    with ledger.git.batch() as batch:
        record = build(round, addresses, batch, objects, who, stamp)
    _begin(ledger, record)
    update = RefUpdate(round_ref(round.lineage, round.number), record.commit, None)
    _transact(ledger, record.measured(), objects, [update])
    return record


def _transact(
    ledger: "Ledger",
    measured: Mapping[str, Sequence[Measurement]],
    objects: Objects,
    updates: Sequence[RefUpdate],
) -> None:
    """Store objects, add notes, move references: all or nothing, tried again if somebody else moved the notes."""
    stamp = now()
    lines = {c: [render_line(m) for m in ledger.stamped(ms, stamp)] for c, ms in measured.items()}
    for _ in range(CAS_TRIES):
        tip = ledger.git.ref(NOTES)
        with ledger.git.batch() as batch:
            tree = append(batch, objects, tip, lines, ledger.oid_bytes)
        moves = list(updates)
        if tree is not None:
            note = objects.commit(tree, [tip] if tip else [], ledger.identity, NOTES_MESSAGE)
            moves.append(RefUpdate(NOTES, note, tip))
        ledger.git.store(objects)
        try:
            return move(ledger, moves, "hl: record")
        except RefMovedError:
            if ledger.git.ref(NOTES) == tip:
                raise
    raise RepositoryError(f"{NOTES} is moved by somebody else all the time", hint="try again")


def move(ledger: "Ledger", updates: Sequence[RefUpdate], reason: str) -> None:
    """Move references; a lock on one of ours that stays although we hold the write lock is a dead process's."""
    try:
        ledger.git.move(updates, reason=reason)
    except GitFailed as error:
        ours = [ledger.common_dir / f"{u.ref}.lock" for u in updates if u.ref.startswith(("refs/hl/", NOTES))]
        stale = [p for p in ours if p.exists()]
        if not stale or ".lock': File exists" not in error.stderr:
            raise
        for path in stale:
            path.unlink(missing_ok=True)
        ledger.git.move(updates, reason=reason)


def _finish(ledger: "Ledger", record: RoundRecord) -> tuple[str | None, Sequence[str]]:
    """Steps 4 to 7 as far as they are not done; the new head (None for a rejected round), and what blocks 6."""
    add_lines(ledger, record.measured())
    accepted = record.accepted
    if accepted is not None:
        _move_branch(ledger, record, accepted.commit, accepted.index)
    blocked = _catch_up(ledger, record.lineage)
    return (accepted.commit if accepted is not None else None), blocked


def _move_branch(ledger: "Ledger", record: RoundRecord, winner: str, index: int) -> None:
    branch = f"refs/heads/{record.lineage}"
    if ledger.git.ref(branch) == record.parent:
        _begin(ledger, record)
        with suppress(RefMovedError):
            reason = f"hl: round {record.number} accepted"
            move(ledger, [RefUpdate(branch, winner, record.parent)], reason)
    tip = ledger.git.ref(branch)
    if tip is None or ledger.git.run("merge-base", "--is-ancestor", winner, tip)[0]:
        _path(ledger, record.lineage).unlink(missing_ok=True)
        raise RepositoryError(
            f"{record.lineage} was moved while round {record.number} ran; its winner is kept as"
            f" {render_candidate(record.lineage, record.number, index)}",
            hint=f"git cherry-pick {winner[:12]}",
        )


def _catch_up(ledger: "Ledger", lineage: str) -> Sequence[str]:
    """Bring the branch's work tree along, if it has one; what stands in the way."""
    path = _path(ledger, lineage)
    unfinished = _load(path)
    if unfinished is None:
        return ()
    tree = find_worktree(ledger.git, lineage)
    blocked: Sequence[str] = ()
    is_here = (
        tree is not None and tree.is_dir() and ledger.git.ref(f"refs/heads/{lineage}") == unfinished.target
    )
    if tree is not None and is_here and unfinished.base != unfinished.target:
        try:
            blocked = bring_along(Git(tree), unfinished.base, unfinished.target)
        except GitFailed as error:
            if ".lock': File exists" not in error.stderr:
                raise
            blocked = ("index.lock",)
    if not blocked:
        path.unlink(missing_ok=True)
    return blocked


def _stamped(round: Round, stamp: str) -> Round:
    def one(m: Measurement) -> Measurement:
        return m if m.time else replace(m, time=stamp)

    return replace(
        round,
        feedback=one(round.feedback),
        scoring=one(round.scoring),
        candidates=tuple(replace(c, scoring=one(c.scoring) if c.scoring else None) for c in round.candidates),
        confirmation=tuple(one(m) for m in round.confirmation),
    )


def _begin(ledger: "Ledger", record: RoundRecord) -> None:
    """Note what is being recorded. A work tree that an earlier round could not bring along keeps its base."""
    path = _path(ledger, record.lineage)
    before = _load(path)
    target = record.accepted.commit if record.accepted is not None else record.parent
    lags = before is not None and record.parent == before.target
    base = before.base if before is not None and (lags or before.number == record.number) else record.parent
    unfinished = Unfinished(record.lineage, record.number, base, target)
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_suffix(".tmp")
    with draft.open("w", encoding="ascii") as file:
        json.dump(encode(unfinished), file)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)


def _load(path: Path) -> Unfinished | None:
    try:
        raw: Any = json.loads(path.read_bytes())
        data = cast("dict[str, Any]", raw)
        return Unfinished(str(data["lineage"]), int(data["number"]), str(data["base"]), str(data["target"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _path(ledger: "Ledger", lineage: str) -> Path:
    return ledger.folder / "unfinished" / f"{escape(lineage)}.json"


def _free_locks(ledger: "Ledger", path: Path, unfinished: Unfinished) -> None:
    """Remove git's lock files that the killed process left: those made while it was recording, and by now old."""
    tree = find_worktree(ledger.git, unfinished.lineage)
    git_dir = Git(tree).line("rev-parse", "--absolute-git-dir") if tree and tree.is_dir() else None
    names = [round_ref(unfinished.lineage, unfinished.number), NOTES, f"refs/heads/{unfinished.lineage}"]
    files = [ledger.common_dir / f"{n}.lock" for n in names]
    files += [Path(git_dir) / f"{n}.lock" for n in ("HEAD", "index")] if git_dir else []
    with suppress(OSError):
        began = path.stat().st_mtime
        for file in files:
            with suppress(FileNotFoundError):
                made = file.stat().st_mtime
                if began - 1 <= made <= began + 30:
                    # The killed process's git may still be at work.
                    time.sleep(max(0.0, made + 2 - time.time()))
                    file.unlink(missing_ok=True)
