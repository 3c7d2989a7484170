"""Push and fetch between real clones."""

import shutil
from pathlib import Path

import pytest

from hl.errors import RepositoryError
from hl.ledger import Ledger
from hl.types import Role
from tests.ledger import kit
from tests.ledger.kit import ENTRY, FILES, measure, play, sh, variant


@pytest.fixture
def hub(tmp_path: Path, ledger: Ledger) -> Path:
    """A bare repository that `ledger` knows as origin."""
    path = tmp_path / "hub.git"
    sh(tmp_path, "init", "-q", "--bare", "-b", "main", str(path))
    sh(ledger.root, "remote", "add", "origin", str(path))
    return path


def clone(hub: Path, name: str) -> Ledger:
    sh(hub.parent, "clone", "-q", str(hub), name)
    return Ledger.open(hub.parent / name)


def scores(ledger: Ledger) -> list[tuple[str, int]]:
    return [(e.name, len(e.measurements)) for e in ledger.log(files=FILES, entry=ENTRY, losers=True)]


def test_a_plain_clone_keeps_the_story_and_fetch_brings_the_rest(ledger: Ledger, hub: Path) -> None:
    play(ledger, 1)
    play(ledger, 2, accept=False)
    sent = ledger.push()
    assert (sent.branch, sent.rounds, sent.notes, sent.conflicts) == ("main", 2, True, ())
    other = clone(hub, "other")
    assert "HL-Score: 0.5000" in sh(other.root, "log", "-1")
    assert scores(other) == [("", 0), ("", 0)]
    got = other.fetch()
    assert (got.rounds, got.notes, got.conflicts, got.records) == (2, True, (), 0)
    assert scores(other) == scores(ledger) and len(scores(other)) == 7
    assert other.round("main", 2).verdict == ledger.round("main", 2).verdict
    assert other.next_round() == 3
    problems = list(other.fsck(FILES, ENTRY, kit.records(other)))
    assert [p.serious for p in problems] == [False] and "replies" in problems[0].message
    again = other.fetch()
    assert (again.rounds, again.notes) == (0, False)
    assert ledger.push() == type(sent)("origin", "main", 0, False, 0, ())


def test_the_working_tree_and_branch_stay_on_fetch(ledger: Ledger, hub: Path) -> None:
    ledger.push()
    other = clone(hub, "other")
    before = other.head
    play(ledger)
    ledger.push()
    other.fetch()
    assert other.head == before and sh(other.root, "rev-parse", "origin/main") == ledger.head
    sh(other.root, "merge", "-q", "--ff-only", "origin/main")
    assert scores(other) == scores(ledger)


def test_two_clones_measuring_at_once_keep_both(ledger: Ledger, hub: Path) -> None:
    ledger.push()
    other = clone(hub, "other")
    seed = kit.read(ledger).harness
    for n, one in enumerate((ledger, other)):
        one.add_measurements("HEAD", [measure(seed, Role.EVALUATION, [1, n])])
        one.push()
    ledger.fetch()
    other.fetch()
    assert sorted(m.grades for m in ledger.measurements(harness=seed.digest)) == [(1.0, 0.0), (1.0, 1.0)]
    assert ledger.measurements(harness=seed.digest) == other.measurements(harness=seed.digest)
    ledger.push()
    other.fetch()
    tips = {sh(r, "rev-parse", "refs/notes/hl/evals") for r in (ledger.root, other.root, hub)}
    assert len(tips) == 1 and kit.serious(ledger) == [] and kit.serious(other) == []


def test_lines_that_a_remote_dropped_are_not_lost(ledger: Ledger, hub: Path) -> None:
    play(ledger)
    ledger.push()
    # Somebody rewrites the notes at the hub, once as a descendant and once as another history.
    other = clone(hub, "other")
    other.fetch()
    sh(other.root, "notes", "--ref=hl/evals", "remove", "HEAD")
    sh(other.root, "push", "-q", "origin", "refs/notes/hl/evals")
    before = scores(ledger)
    ledger.fetch()
    assert scores(ledger) == before
    sh(other.root, "update-ref", "-d", "refs/notes/hl/evals")
    sh(other.root, "notes", "--ref=hl/evals", "add", "-m", "remark", "HEAD")
    sh(other.root, "push", "-q", "-f", "origin", "refs/notes/hl/evals")
    ledger.push()
    assert scores(ledger) == before and kit.serious(ledger) == []
    assert "remark" in sh(ledger.root, "notes", "--ref=hl/evals", "show", "HEAD")


def test_a_different_round_of_the_same_name_is_told_and_kept(ledger: Ledger, hub: Path) -> None:
    ledger.push()
    other = clone(hub, "other")
    play(ledger, 1, word="mine")
    play(other, 1, word="theirs", accept=False)
    play(other, 2, word="later", accept=False)
    ledger.push()
    got = other.fetch()
    assert got.conflicts == ("main/1",) and got.rounds == 0
    assert other.round("main", 1).proposals[0].harness == variant("theirs-0").digest
    sent = other.push()
    assert sent.conflicts == ("main/1",) and sent.rounds == 1
    got = ledger.fetch()
    # The hub holds this one's round 1: for it there is no conflict.
    assert (got.conflicts, got.rounds) == ((), 1)
    assert ledger.round("main", 1).proposals[0].harness == variant("mine-0").digest
    # The scores of both are everywhere.
    assert ledger.measurements(harness=variant("theirs-0").digest)
    assert other.measurements(harness=variant("mine-0").digest)


def test_a_branch_that_went_elsewhere_is_refused_but_scores_travel(ledger: Ledger, hub: Path) -> None:
    ledger.push()
    other = clone(hub, "other")
    play(ledger, 1)
    ledger.push()
    sh(other.root, "commit", "-q", "--allow-empty", "-m", "other work")
    other.add_measurements("HEAD", [measure(variant("o"), Role.SCORING, [1])])
    with pytest.raises(RepositoryError, match="refused main") as caught:
        other.push()
    assert "git pull --rebase origin main" in (caught.value.hint or "")
    ledger.fetch()
    assert ledger.measurements(harness=variant("o").digest)
    sh(other.root, "pull", "-q", "--rebase", "origin", "main")
    other.push()
    # Rebase carried the note along.
    assert other.measurements(commit="HEAD")


def test_bulk_records_travel_when_asked(ledger: Ledger, hub: Path) -> None:
    play(ledger)
    assert ledger.push().records == 0
    other = clone(hub, "other")
    other.fetch()
    address = other.round("main", 1).proposals[0].reply
    assert kit.records(other).find(address) is None
    sent = ledger.push(records=kit.records(ledger))
    assert sent.records == 4
    got = other.fetch(records=kit.records(other))
    assert got.records == 4 and kit.records(other).get(address)["text"] == "reply 0 of round 1"
    assert kit.serious(other) == [] and list(other.fsck(FILES, ENTRY, kit.records(other))) == []
    # Only what is new travels, in both directions.
    kit.records(other).put({"kind": "note"})
    assert other.push(records=kit.records(other)).records == 1
    assert ledger.push(records=kit.records(ledger)).records == 0
    assert ledger.fetch(records=kit.records(ledger)).records == 1
    assert ledger.fetch(records=kit.records(ledger)).records == 0


def test_a_forged_record_is_not_taken(ledger: Ledger, hub: Path, tmp_path: Path) -> None:
    play(ledger)
    store = kit.records(ledger)
    address = ledger.round("main", 1).proposals[0].reply
    lie = ledger.folder / "records" / "lie"
    shutil.copy(store.path(ledger.round("main", 1).proposals[1].reply), lie)
    shutil.copy(lie, store.path(address))
    ledger.push(records=store)
    other = clone(hub, "other")
    got = other.fetch(records=kit.records(other))
    assert got.records == 3 and kit.records(other).find(address) is None
    assert any("damaged" in p.message for p in ledger.fsck(FILES, ENTRY, store))


def test_a_path_serves_as_remote(ledger: Ledger, tmp_path: Path) -> None:
    play(ledger)
    other = kit.new(tmp_path / "other")
    got = other.fetch(str(ledger.root))
    assert (got.rounds, got.notes) == (1, True)
    assert other.measurements(harness=variant("r1-0").digest)
    assert sh(other.root, "remote") == ""


@pytest.mark.parametrize(
    "remote", ["", "--upload-pack=touch x", "nowhere", "a\nb", "/no/such/path", "ext::sh -c id"]
)
def test_a_remote_that_is_none_is_named(ledger: Ledger, remote: str, tmp_path: Path) -> None:
    before = sh(ledger.root, "for-each-ref")
    for act in (ledger.fetch, ledger.push):
        with pytest.raises(RepositoryError) as caught:
            act(remote)
        assert caught.value.exit_code == 4
    assert sh(ledger.root, "for-each-ref") == before


def test_detached_pushes_scores_but_no_branch(ledger: Ledger, hub: Path) -> None:
    play(ledger)
    sh(ledger.root, "checkout", "-q", "--detach")
    sent = ledger.push()
    assert (sent.branch, sent.rounds, sent.notes) == ("", 1, True)
    assert sh(hub, "for-each-ref", "refs/heads") == ""


def test_fetching_teaches_a_fresh_clone_the_configuration(ledger: Ledger, hub: Path) -> None:
    play(ledger)
    ledger.push()
    other = clone(hub, "other")
    other.fetch()
    assert sh(other.root, "config", "log.excludeDecoration") == "refs/hl/"
    # A plain fetch from now on looks at the hub's notes without touching ours.
    ours = sh(other.root, "rev-parse", "refs/notes/hl/evals")
    other.add_measurements("HEAD", [measure(variant("x"), Role.SCORING, [1])])
    sh(other.root, "fetch", "-q")
    assert sh(other.root, "rev-parse", "refs/notes/hl/evals^") == ours
    assert sh(other.root, "rev-parse", "refs/hl/remotes/origin/notes/evals") == ours
