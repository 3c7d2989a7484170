"""hl fsck finds what does not add up, and nothing else."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from hl.git import Objects, RefUpdate
from hl.ledger import Ledger
from hl.ledger.names import round_ref
from hl.types import Role
from tests.ledger import kit
from tests.ledger.kit import ENTRY, FILES, measure, play, sh, variant


def messages(ledger: Ledger, serious: bool | None = None) -> list[str]:
    found = ledger.fsck(FILES, ENTRY, kit.records(ledger))
    return [f"{p.where}: {p.message}" for p in found if serious is None or p.serious == serious]


def test_a_sound_ledger(ledger: Ledger) -> None:
    assert messages(ledger) == []
    play(ledger, 1)
    play(ledger, 2, accept=False)
    ledger.add_measurements("HEAD", [measure(kit.read(ledger).harness, Role.EVALUATION, [1, None])])
    assert messages(ledger) == []


def rewrite(ledger: Ledger, change: Callable[[dict[str, object]], object], *, parents: int = 3) -> None:
    """Replace round 1 by a changed one."""
    ref = round_ref("main", 1)
    record = json.loads(sh(ledger.root, "show", f"{ref}:round.json"))
    text = change(record)
    data = text if isinstance(text, bytes) else json.dumps(record).encode()
    objects = Objects(ledger.algorithm)
    with ledger.git.batch() as batch:
        tree = objects.graft(batch, None, {b"round.json": objects.blob(data)})
    old = sh(ledger.root, "log", "-1", "--format=%P", ref).split()
    commit = objects.commit(tree, old[:parents], ledger.identity, "forged\n")
    ledger.git.store(objects)
    ledger.git.move([RefUpdate(ref, commit, ledger.git.ref(ref))], reason="test")


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda r: b"garbage", "round.json cannot be read"),
        (lambda r: b"[]", "round.json cannot be read: not an object"),
        (lambda r: r.pop("verdict"), "lacks or misuses 'verdict'"),
        (lambda r: r["proposals"][0].update(outcome="splendid"), "splendid"),
        (lambda r: r["scoring"].update(g="1"), "1 grades"),
        (lambda r: r.update(number=9), "it holds round 9 of main"),
        (lambda r: r["proposals"][1].update(harness="0" * 64), "is not the harness 000000000000"),
        (lambda r: r["proposals"][1].update(scoring=None), "candidate 1 is scored but has no measurement"),
        (lambda r: r["proposals"][0].update(commit="0" * 40), "not the candidates"),
        (lambda r: r["proposals"][0].update(commit="--all"), "is not a commit"),
        (lambda r: r["feedback"].update(g="1111"), "the feedback score of"),
        (lambda r: r["proposals"][1]["scoring"].update(g="1111"), "the score in the message of"),
        (lambda r: r["confirmation"][1].update(g="1111"), "the score in the message of"),
    ],
)
def test_a_changed_round_is_found(
    ledger: Ledger, change: Callable[[dict[str, object]], object], expected: str
) -> None:
    play(ledger)
    rewrite(ledger, change)
    assert any(expected in m for m in messages(ledger, serious=True)), messages(ledger)
    # Reading goes on around it.
    assert len(list(ledger.log(files=FILES, entry=ENTRY, losers=True))) >= 2
    ledger.history(kit.SOLVER)


def test_candidates_missing_from_the_parents(ledger: Ledger) -> None:
    play(ledger)
    rewrite(ledger, lambda r: None, parents=2)
    assert any("its parents are not the candidates" in m for m in messages(ledger, serious=True))


def test_a_reference_that_is_no_round(ledger: Ledger) -> None:
    sh(ledger.root, "update-ref", "refs/hl/rounds/main/5", "HEAD")
    sh(ledger.root, "update-ref", "refs/hl/rounds/main/odd", "HEAD")
    assert messages(ledger) == ["refs/hl/rounds/main/5: it is not a round: there is no round.json"]
    assert ledger.next_round() == 6 and list(ledger.rounds()) == []


def test_notes(ledger: Ledger) -> None:
    play(ledger)
    sh(ledger.root, "notes", "--ref=hl/evals", "append", "-m", "a remark", "HEAD")
    lie = json.dumps(
        {
            **json.loads(sh(ledger.root, "notes", "--ref=hl/evals", "show", "HEAD").splitlines()[0]),
            "n": 99,
            "mean": 1,
        }
    )
    sh(ledger.root, "notes", "--ref=hl/evals", "append", "-m", lie, "HEAD")
    found = messages(ledger)
    assert sum("cannot be read and is ignored" in m for m in found) == 1
    assert any("n=99, but 4 grades" in m for m in found) and any("mean=1" in m for m in found)
    sh(ledger.root, "notes", "--ref=hl/evals", "remove", "HEAD")
    assert any(
        "the scoring score of" in m and "missing from the notes" in m for m in messages(ledger, serious=True)
    )


def test_a_note_of_a_commit_that_is_gone_still_counts(ledger: Ledger) -> None:
    sh(ledger.root, "commit", "-q", "--allow-empty", "-m", "short-lived")
    ledger.add_measurements("HEAD", [measure(kit.read(ledger).harness, Role.EVALUATION, [1])])
    sh(ledger.root, "reset", "-q", "--hard", "HEAD~1")
    sh(ledger.root, "reflog", "expire", "--expire=now", "--all")
    sh(ledger.root, "gc", "-q", "--prune=now")
    assert any("its commit is not here" in m for m in messages(ledger, serious=False))
    assert messages(ledger, serious=True) == []
    assert len(ledger.measurements(harness=kit.read(ledger).harness.digest)) == 1


def test_records(ledger: Ledger) -> None:
    play(ledger)
    store = kit.records(ledger)
    first, second = (p.reply for p in ledger.round("main", 1).proposals[:2])
    store.path(first).unlink()
    store.path(second).write_bytes(b"junk")
    stray = store.put({"kind": "stray"})
    store.path(stray).write_bytes(b"junk")
    assert any("1 transcripts, replies or reports are not here" in m for m in messages(ledger, serious=False))
    assert [m for m in messages(ledger, serious=True) if second[:16] in m and "damaged" in m]
    assert [m for m in messages(ledger, serious=False) if stray[:16] in m]


def test_leftovers(ledger: Ledger) -> None:
    play(ledger)
    (ledger.folder / "unfinished").mkdir(exist_ok=True)
    (ledger.folder / "unfinished" / "main.json").write_text("{torn")
    (ledger.common_dir / "refs" / "hl" / "x.lock").write_text("")
    found = messages(ledger)
    assert any("not recorded to its end" in m for m in found) and any("x.lock" in m for m in found)
    assert messages(ledger, serious=True) == []
    assert ledger.recover() is None and not ledger.unfinished()


def test_rounds_that_are_elsewhere(ledger: Ledger, tmp_path: Path) -> None:
    play(ledger)
    subprocess.run(["git", "clone", "-q", str(ledger.root), str(tmp_path / "clone")], check=True)
    clone = Ledger.open(tmp_path / "clone")
    assert ["names round 1 of main, which is not here" in m for m in messages(clone)] == [True]
    assert variant("r1-0").digest == kit.read(clone).harness.digest
