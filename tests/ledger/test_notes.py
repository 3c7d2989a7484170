"""The notes under many writers, and merged."""

import os
import time
from pathlib import Path

import pytest

from hl.git import Objects
from hl.ledger import Ledger
from hl.ledger.lines import render_line
from hl.ledger.notes import append, listing
from hl.types import Role
from tests.ledger import kit
from tests.ledger.kit import measure, play, sh, variant

NOTES = "refs/notes/hl/evals"


def in_parallel(count: int, work: object) -> list[int]:
    pids: list[int] = []
    for n in range(count):
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                work(n)  # pyright: ignore[reportCallIssue]
                code = 0
            finally:
                os._exit(code)
        pids.append(pid)
    return [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids]


def test_twenty_writers_lose_nothing(ledger: Ledger) -> None:
    play(ledger)
    before = len(ledger.measurements(commit="HEAD"))

    def add(n: int) -> None:
        one = Ledger.open(ledger.root)
        # Half of them on the same commit, half on another.
        one.add_measurements(
            "HEAD" if n % 2 else "HEAD~1", [measure(variant(str(n)), Role.EVALUATION, [1, 0])]
        )

    assert in_parallel(20, add) == [0] * 20
    for n in range(20):
        assert len(ledger.measurements(harness=variant(str(n)).digest)) == 1
    assert len(ledger.measurements(commit="HEAD")) == before + 10
    assert kit.serious(ledger) == []


def test_writers_that_use_git_itself_lose_nothing_of_ours(ledger: Ledger) -> None:
    play(ledger)

    def add(n: int) -> None:
        one = Ledger.open(ledger.root)
        if n % 2:
            one.add_measurements("HEAD", [measure(variant(str(n)), Role.EVALUATION, [1, 0])])
        else:
            # Ours is a compare-and-swap, so it sees git's note or is tried again.
            sh(ledger.root, "notes", "--ref=hl/evals", "append", "-m", f"remark {n}", "HEAD~1", check=False)
            time.sleep(0.01)

    tip = sh(ledger.root, "rev-parse", NOTES)
    assert in_parallel(6, add) == [0] * 6
    assert sh(ledger.root, "merge-base", "--is-ancestor", tip, NOTES) == ""


@pytest.mark.parametrize("layout", ["flat", "fanned", "deep", "mixed"])
def test_every_fan_out_is_understood(ledger: Ledger, layout: str) -> None:
    head = ledger.head
    assert head
    old = render_line(measure(variant("old"), Role.SCORING, [1], time="2026-01-01T00:00:00Z"))
    objects = Objects(ledger.algorithm)
    blob = objects.blob(old.encode() + b"\n")
    path = {"flat": head, "fanned": f"{head[:2]}/{head[2:]}", "deep": f"{head[:2]}/{head[2:4]}/{head[4:]}"}
    other = "ab" * 20
    with ledger.git.batch() as batch:
        paths = {path.get(layout, head): blob}
        if layout == "mixed":
            paths |= {f"{other[:2]}/{other[2:]}": blob, f"{head[:2]}/{'0' * 38}": blob}
        tree = objects.graft(batch, None, {p.encode(): oid for p, oid in paths.items()})
    commit = objects.commit(tree, [], ledger.identity, "notes")
    ledger.git.store(objects)
    sh(ledger.root, "update-ref", NOTES, commit)
    ledger.add_measurements("HEAD", [measure(variant("new"), Role.SCORING, [1], time="2026-01-02T00:00:00Z")])
    assert [m.harness for m in ledger.measurements(commit="HEAD")] == [
        variant(w).digest for w in ("old", "new")
    ]
    # git agrees: one note, both lines.
    assert len(sh(ledger.root, "notes", "--ref=hl/evals", "show", "HEAD").splitlines()) == 2
    assert len(list(listing(ledger.git, NOTES))) == len(paths)


def test_adding_what_is_there_makes_no_commit(ledger: Ledger) -> None:
    m = measure(variant("a"), Role.SCORING, [1])
    ledger.add_measurements("HEAD", [m])
    tip = sh(ledger.root, "rev-parse", NOTES)
    ledger.add_measurements("HEAD", [m, m])
    ledger.add_measurements("HEAD", [])
    assert sh(ledger.root, "rev-parse", NOTES) == tip


def test_many_notes_cost_one_small_tree_each_time(ledger: Ledger) -> None:
    objects = Objects(ledger.algorithm)
    with ledger.git.batch() as batch:
        lines = {f"{n:040x}"[::-1]: [f"line {n}"] for n in range(600)}
        tree = append(batch, objects, None, lines, 20)
    assert tree
    commit = objects.commit(tree, [], ledger.identity, "notes")
    ledger.git.store(objects)
    more = Objects(ledger.algorithm)
    with ledger.git.batch() as batch:
        append(batch, more, commit, {"f" * 40: ["x"]}, 20)
    # The blob, its folder, the root.
    assert more.count == 3


# --- the index


def test_the_index_is_only_a_cache(ledger: Ledger, tmp_path: Path) -> None:
    play(ledger)
    digest = variant("r1-0").digest
    expected = ledger.measurements(harness=digest)
    index = ledger.folder / "index.sqlite"
    assert len(expected) == 2 and index.exists()
    index.unlink()
    assert ledger.measurements(harness=digest) == expected
    index.write_bytes(b"not a database" * 1000)
    assert ledger.measurements(harness=digest) == expected
    index.unlink()
    index.mkdir()
    assert ledger.measurements(harness=digest) == expected


def test_the_index_follows_the_notes_wherever_they_go(ledger: Ledger) -> None:
    play(ledger)
    digest = variant("r1-0").digest
    assert len(ledger.measurements(harness=digest)) == 2
    first = sh(ledger.root, "rev-parse", NOTES)
    ledger.add_measurements("HEAD", [measure(variant("r1-0"), Role.EVALUATION, [1])])
    assert len(ledger.measurements(harness=digest)) == 3
    # git rewrites the fan-out; lines stay.
    sh(ledger.root, "notes", "--ref=hl/evals", "add", "-f", "-m", "remark", "HEAD~1")
    assert len(ledger.measurements(harness=digest)) == 3
    # Somebody goes back in time, and removes a note.
    sh(ledger.root, "update-ref", NOTES, first)
    assert len(ledger.measurements(harness=digest)) == 2
    sh(ledger.root, "notes", "--ref=hl/evals", "remove", "HEAD")
    assert ledger.measurements(harness=digest) == ()
    sh(ledger.root, "update-ref", "-d", NOTES)
    sh(ledger.root, "gc", "-q", "--prune=now")
    assert ledger.measurements(harness=digest) == ()
    ledger.add_measurements("HEAD", [measure(variant("r1-0"), Role.EVALUATION, [1])])
    assert len(ledger.measurements(harness=digest)) == 1
