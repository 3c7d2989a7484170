"""Room 8: what a round leaves in git, and in which order."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from hl.errors import RepositoryError
from hl.ledger import Ledger
from hl.types import Decision, Outcome, Role
from tests.ledger import kit
from tests.ledger.kit import ENTRY, FILES, SEED, make_round, measure, play, sh, variant


def test_an_accepted_round(ledger: Ledger) -> None:
    seed = ledger.head
    result = make_round(kit.read(ledger))
    head = ledger.record_round(result, kit.records(ledger))
    assert head == ledger.head and sh(ledger.root, "rev-parse", "HEAD^") == seed
    # The work tree came along, and only the harness changed.
    assert sh(ledger.root, "status", "--porcelain") == ""
    assert (ledger.root / "harness.py").read_text() == variant("r1-0").text("harness.py")
    assert sh(ledger.root, "diff", "--name-only", "HEAD^", "HEAD") == "harness.py"
    assert sh(ledger.root, "log", "-1", "--format=%s") == "Ask more loudly"
    # One reference, whose parents are all proposals; the one that did not apply keeps the parent's tree.
    refs = sh(ledger.root, "for-each-ref", "--format=%(refname)", "refs/hl").split()
    assert refs == ["refs/hl/rounds/main/1"]
    parents = sh(ledger.root, "log", "-1", "--format=%P", refs[0]).split()
    assert parents[0] == head and len(parents) == 3
    assert sh(ledger.root, "rev-parse", f"{parents[2]}^{{tree}}") == sh(
        ledger.root, "rev-parse", f"{seed}^{{tree}}"
    )
    assert all(sh(ledger.root, "rev-parse", f"{p}^") == seed for p in parents)
    assert kit.serious(ledger) == []


def test_what_is_read_back_is_what_was_recorded(ledger: Ledger) -> None:
    result = make_round(kit.read(ledger))
    ledger.record_round(result, kit.records(ledger))
    record = ledger.round("main", 1)
    assert (record.lineage, record.number, record.parent) == ("main", 1, result.parent.commit)
    assert (record.verdict, record.cost, record.settings) == (result.verdict, result.cost, result.settings)
    assert [p.outcome for p in record.proposals] == [Outcome.SCORED, Outcome.SCORED, Outcome.NOT_FOUND]
    assert record.proposals[2].detail == "no such text"
    for p, c in zip(record.proposals, result.candidates, strict=True):
        assert p.harness == (c.proposal.candidate.digest if c.proposal.candidate else "")
        undated = replace(p.scoring, time="") if p.scoring else None
        assert undated == c.scoring
    assert record.accepted is record.proposals[0]
    reply = kit.records(ledger).get(record.proposals[1].reply)
    assert (reply["kind"], reply["text"]) == ("reply", "reply 1 of round 1")
    assert kit.records(ledger).get(record.report)["report"]["harness"] == result.parent.harness.digest


def test_every_measurement_reaches_the_notes(ledger: Ledger) -> None:
    result = make_round(kit.read(ledger))
    ledger.record_round(result, kit.records(ledger))
    roles = {m.role for m in ledger.measurements(harness=result.parent.harness.digest)}
    assert roles == {Role.FEEDBACK, Role.SCORING, Role.CONFIRMATION}
    assert {m.role for m in ledger.measurements(commit="HEAD")} == {Role.SCORING, Role.CONFIRMATION}
    assert len(ledger.measurements(commit="1/1")) == 1
    assert ledger.measurements(commit="1/2") == ()
    assert all(m.time for m in ledger.measurements(commit="HEAD"))
    assert sh(ledger.root, "rev-list", "--count", "refs/notes/hl/evals") == "1"


def test_a_rejected_round_moves_nothing_but_is_kept(ledger: Ledger) -> None:
    head = ledger.head
    assert play(ledger, accept=False) is None
    assert ledger.head == head and (ledger.root / "harness.py").read_text() == SEED
    assert ledger.round("main", 1).verdict.decision is Decision.REJECTED
    assert ledger.round("main", 1).winner is not None and ledger.round("main", 1).accepted is None
    assert not ledger.unfinished() and kit.serious(ledger) == []


def test_recording_again_changes_nothing(ledger: Ledger) -> None:
    result = make_round(kit.read(ledger))
    head = ledger.record_round(result, kit.records(ledger))
    before = sh(ledger.root, "for-each-ref")
    assert ledger.record_round(result, kit.records(ledger)) == head
    assert ledger.recover() is None
    assert sh(ledger.root, "for-each-ref") == before


def test_another_round_of_the_same_number_is_refused(ledger: Ledger) -> None:
    result = make_round(kit.read(ledger))
    ledger.record_round(result, kit.records(ledger))
    before = sh(ledger.root, "for-each-ref")
    with pytest.raises(RepositoryError, match="recorded already"):
        ledger.record_round(make_round(kit.read(ledger), 1), kit.records(ledger))
    assert sh(ledger.root, "for-each-ref") == before


def test_candidates_must_be_numbered(ledger: Ledger) -> None:
    result = make_round(kit.read(ledger))
    with pytest.raises(ValueError, match="0 to K-1"):
        ledger.record_round(replace(result, candidates=result.candidates[1:]), kit.records(ledger))


def test_a_forged_trailer_cannot_use_up_the_round_numbers(ledger: Ledger) -> None:
    sh(ledger.root, "commit", "--allow-empty", "-m", "Look\n\nHL-Round: main/999999999/0")
    assert ledger.next_round() == 1


def test_round_numbers_never_come_again(ledger: Ledger) -> None:
    seed = ledger.head
    assert ledger.next_round() == 1
    play(ledger, 1)
    play(ledger, 2, accept=False)
    assert ledger.next_round() == 3
    sh(ledger.root, "reset", "-q", "--hard", str(seed))
    assert ledger.next_round() == 3
    play(ledger, 3)
    assert [r.number for r in ledger.rounds("main")] == [1, 2, 3]
    sh(ledger.root, "switch", "-q", "-c", "other")
    assert ledger.next_round() == 1 and ledger.next_round("main") == 4


def test_a_plain_clone_does_not_reuse_the_numbers_it_can_see(ledger: Ledger, tmp_path: Path) -> None:
    play(ledger, 1)
    play(ledger, 2)
    sh(tmp_path, "clone", "-q", str(ledger.root), "clone")
    assert Ledger.open(tmp_path / "clone").next_round() == 3


@pytest.mark.parametrize("branch", ["feature/deep/x", "a%2Fb", "ünï", "a.b-c_d"])
def test_branch_names(tmp_path: Path, branch: str) -> None:
    ledger = kit.new(tmp_path / "agent", branch=branch)
    head = play(ledger)
    assert ledger.resolve(f"{branch}/1/0") == head == ledger.head
    assert ledger.round(branch, 1).lineage == branch
    assert ledger.next_round() == 2
    assert [e.name for e in ledger.log(files=FILES, entry=ENTRY, limit=1)] == [f"{branch}/1/0"]
    assert kit.serious(ledger) == []


def test_sha256_repositories(tmp_path: Path) -> None:
    sh(tmp_path, "init", "-q", "-b", "main", "--object-format=sha256", "agent")
    ledger = kit.new(tmp_path / "agent")
    head = play(ledger)
    assert head and len(head) == 64
    play(ledger, 2, accept=False)
    assert len(ledger.measurements(commit="HEAD")) == 4
    assert [len(e.measurements) for e in ledger.log(files=FILES, entry=ENTRY)] == [4, 3]
    assert kit.serious(ledger) == []


def test_the_branch_is_only_moved_from_where_the_round_began(ledger: Ledger) -> None:
    result = make_round(kit.read(ledger))
    (ledger.root / "harness.py").write_text("mine\n")
    sh(ledger.root, "commit", "-q", "-a", "-m", "meanwhile")
    mine = ledger.head
    with pytest.raises(RepositoryError, match=r"moved while round 1 ran.*main/1/0") as caught:
        ledger.record_round(result, kit.records(ledger))
    assert ledger.head == mine and (ledger.root / "harness.py").read_text() == "mine\n"
    # Nothing measured is lost, and the hint works.
    assert ledger.resolve("main/1/0") and not ledger.unfinished()
    assert (caught.value.hint or "").startswith("git cherry-pick ")
    assert ledger.next_round() == 2 and kit.serious(ledger) == []


def test_another_checked_out_branch_is_left_alone(ledger: Ledger) -> None:
    result = make_round(kit.read(ledger))
    sh(ledger.root, "switch", "-q", "-c", "other")
    head = ledger.record_round(result, kit.records(ledger))
    assert sh(ledger.root, "rev-parse", "main") == head != ledger.head
    assert sh(ledger.root, "status", "--porcelain") == "" and not ledger.unfinished()
    sh(ledger.root, "switch", "-q", "main")
    assert (ledger.root / "harness.py").read_text() == variant("r1-0").text("harness.py")


def test_a_linked_work_tree_comes_along_wherever_the_round_is_recorded(
    ledger: Ledger, tmp_path: Path
) -> None:
    sh(ledger.root, "worktree", "add", "-q", "-b", "side", str(tmp_path / "side"))
    side = Ledger.open(tmp_path / "side")
    assert (side.lineage, side.common_dir) == ("side", ledger.common_dir)
    head = play(side)
    assert side.head == head and sh(side.root, "status", "--porcelain") == ""
    result = make_round(replace(kit.read(side), lineage="side"), 2)
    ledger.record_round(result, kit.records(ledger))
    assert sh(side.root, "status", "--porcelain") == ""
    assert (side.root / "harness.py").read_text() == variant("r2-0").text("harness.py")
    assert ledger.lineage == "main" and sh(ledger.root, "status", "--porcelain") == ""
    assert ledger.next_round() == 1 and kit.serious(ledger) == []


def test_edits_and_staged_changes_of_the_user_survive(ledger: Ledger) -> None:
    (ledger.root / "hl.toml").write_text("# mine\n")
    (ledger.root / "staged").write_text("mine\n")
    sh(ledger.root, "add", "staged")
    play(ledger)
    assert sh(ledger.root, "status", "--porcelain").split("\n") == ["M hl.toml", "A  staged"]
    assert (ledger.root / "harness.py").read_text() == variant("r1-0").text("harness.py")


def test_a_dirty_harness_is_never_overwritten(ledger: Ledger) -> None:
    result = make_round(kit.read(ledger))
    (ledger.root / "harness.py").write_text("precious\n")
    head = ledger.record_round(result, kit.records(ledger))
    assert ledger.head == head and (ledger.root / "harness.py").read_text() == "precious\n"
    assert ledger.unfinished()
    assert "harness.py" in (ledger.recover() or "")
    (ledger.root / "harness.py").write_text(SEED)
    assert "finished" in (ledger.recover() or "")
    assert sh(ledger.root, "status", "--porcelain") == "" and not ledger.unfinished()
    assert ledger.recover() is None


def test_a_foreign_index_lock_delays_only_the_work_tree(ledger: Ledger) -> None:
    lock = ledger.root / ".git" / "index.lock"
    lock.write_text("")
    os.utime(lock, (1, 1))
    first = play(ledger)
    assert ledger.head == first and (ledger.root / "harness.py").read_text() == SEED
    # A second round on top: the work tree still goes all the way once the lock is gone.
    second = ledger.record_round(make_round(kit.read(ledger), 2), kit.records(ledger))
    assert "index.lock" in (ledger.recover() or "") and lock.exists()
    lock.unlink()
    assert "finished" in (ledger.recover() or "")
    assert ledger.head == second and sh(ledger.root, "status", "--porcelain") == ""


def test_gc_loses_nothing(ledger: Ledger) -> None:
    play(ledger, 1)
    play(ledger, 2, accept=False)
    sh(ledger.root, "reset", "-q", "--hard", "HEAD~1")
    sh(ledger.root, "reflog", "expire", "--expire=now", "--all")
    sh(ledger.root, "gc", "-q", "--prune=now")
    sh(ledger.root, "notes", "--ref=hl/evals", "prune")
    assert len(ledger.measurements(commit="main/1/0")) == 4
    assert [len(r.proposals) for r in ledger.rounds()] == [3, 3]
    assert ledger.resolve("2/2") and kit.serious(ledger) == []
    play(ledger, 3)
    assert kit.serious(ledger) == []


def test_replies_of_every_kind_are_kept(ledger: Ledger) -> None:
    result = make_round(kit.read(ledger))
    text = "\ud800 lone, \x00 nul, \U0001f600 " + "x" * 10_000_000
    c = result.candidates[2]
    reply = replace(c.proposal.reply, text=text, error="", earlier=("first try",))
    c = replace(c, proposal=replace(c.proposal, reply=reply, detail="\ud800\x00" * 9000, summary="\ud800"))
    ledger.record_round(replace(result, candidates=(*result.candidates[:2], c)), kit.records(ledger))
    p = ledger.round("main", 1).proposals[2]
    stored = kit.records(ledger).get(p.reply)
    assert (stored["text"], stored["earlier"], p.repairs) == (text, ["first try"], 1)
    assert len(p.detail) == 4096 and kit.serious(ledger) == []


# --- measurements


def test_measuring_again_only_adds(ledger: Ledger) -> None:
    seed = kit.read(ledger).harness
    for grades in ([1, 0], [1, 0], [1, 1]):
        ledger.add_measurements("HEAD", [measure(seed, Role.EVALUATION, grades)])
    found = ledger.measurements(harness=seed.digest)
    # The same result twice is one line.
    assert sorted(m.grades for m in found) == [(1.0, 0.0), (1.0, 1.0)]


def test_scores_follow_the_harness(ledger: Ledger) -> None:
    play(ledger)
    scored = ledger.measurements(commit="HEAD")
    sh(ledger.root, "revert", "--no-edit", "HEAD")
    assert kit.read(ledger).harness.digest == kit.read(ledger, "HEAD~2").harness.digest
    assert len(ledger.measurements(harness=kit.read(ledger).harness.digest)) == 3
    sh(ledger.root, "switch", "-q", "-c", "picked", "HEAD~2")
    sh(ledger.root, "commit", "-q", "--allow-empty", "-m", "between")
    sh(ledger.root, "cherry-pick", "main~1")
    assert ledger.head != ledger.resolve("main~1")
    assert ledger.measurements(harness=kit.read(ledger).harness.digest) == scored
    (ledger.root / "harness.py").write_text(variant("r1-1").text("harness.py"))
    sh(ledger.root, "commit", "-q", "-a", "-m", "by hand, the text of a loser")
    assert ledger.measurements(harness=kit.read(ledger).harness.digest) == ledger.measurements(
        commit="main/1/1"
    )
    (ledger.root / "harness.py").write_text("new\n")
    sh(ledger.root, "commit", "-q", "--amend", "-a", "-m", "nobody measured this")
    assert ledger.measurements(harness=kit.read(ledger).harness.digest) == ()


def test_notes_written_and_rewritten_by_git_are_read(ledger: Ledger) -> None:
    play(ledger)
    sh(ledger.root, "notes", "--ref=hl/evals", "append", "-m", "a human's remark", "HEAD")
    sh(ledger.root, "commit", "-q", "--allow-empty", "-m", "x")
    sh(ledger.root, "notes", "--ref=hl/evals", "add", "-m", "{not json", "HEAD")
    sh(ledger.root, "notes", "--ref=hl/evals", "copy", "HEAD~1", "HEAD~2", "-f")
    before = ledger.measurements(commit="HEAD~1")
    assert len(before) == 2
    ledger.add_measurements("HEAD~1", [measure(variant("r1-0"), Role.EVALUATION, [1, 1])])
    assert len(ledger.measurements(commit="HEAD~1")) == 3
    assert "a human's remark" in sh(ledger.root, "notes", "--ref=hl/evals", "show", "HEAD~1")
    # Copied notes do not make the seed look like its successor.
    assert all(
        m.harness != kit.read(ledger, "HEAD~2").harness.digest for m in ledger.measurements(commit="HEAD~2")
    )
    assert [m for m in kit.serious(ledger) if "missing from the notes" not in m] == []


def test_measurements_of_a_commit_that_does_not_exist(ledger: Ledger) -> None:
    with pytest.raises(RepositoryError):
        ledger.add_measurements("f" * 40, [])


# --- the chain


def test_history_tells_of_every_edit_up_to_the_commit(ledger: Ledger) -> None:
    seed = ledger.head
    play(ledger, 1, accept=False, word="a", summary="First idea")
    play(ledger, 2, word="b", summary="Second idea")
    play(ledger, 3, accept=False, word="c", summary="Third idea")
    entries = ledger.history(kit.SOLVER)
    assert [e.round for e in entries] == [1, 1, 1, 2, 2, 2, 3, 3, 3]
    first, second = entries[0], entries[3]
    # Not accepted: the selection gain. Accepted: the confirmed one.
    assert (first.summary, first.accepted, first.gain, first.n) == ("First idea", False, 0.5, 4)
    assert [e.confirmed for e in entries[:4]] == [False, False, False, True]
    assert (second.summary, second.accepted, second.gain) == ("Second idea", True, 0.25)
    assert first.classes == {"wrong": 1}
    failed = entries[2]
    assert (failed.outcome, failed.gain, failed.classes, failed.n) == (Outcome.NOT_FOUND, None, {}, 0)
    # Seen from the seed, round 3 has not happened; round 2 was made from it, but is not part of it.
    assert [(e.round, e.accepted) for e in ledger.history(kit.SOLVER, str(seed))] == [
        (n, False) for n in (1, 1, 1, 2, 2, 2)
    ]
    assert ledger.history("another solver") == ()


def test_known_programs_are_those_that_ran(ledger: Ledger) -> None:
    from hl.edits import program_digest

    assert ledger.known_programs(kit.SOLVER) == {}
    result = make_round(kit.read(ledger))
    c = result.candidates[1]
    duplicate = replace(c.proposal, index=3, outcome=Outcome.DUPLICATE, candidate=variant("never-ran"))
    result = replace(result, candidates=(*result.candidates, replace(c, proposal=duplicate, scoring=None)))
    ledger.record_round(result, kit.records(ledger))
    known = ledger.known_programs(kit.SOLVER)
    seed = result.parent.harness
    assert known == {program_digest(h): h.digest for h in (seed, variant("r1-0"), variant("r1-1"))}


def test_an_accepted_program_that_a_reset_undid_may_win_again(ledger: Ledger) -> None:
    from hl.edits import program_digest

    seed = kit.read(ledger)
    result = make_round(seed)
    ledger.record_round(result, kit.records(ledger))
    winner = result.candidates[result.verdict.winner or 0].proposal.candidate
    assert winner is not None
    assert program_digest(winner) in ledger.known_programs(kit.SOLVER)
    assert ledger.known_programs("another solver") == {}
    kit.sh(ledger.root, "reset", "-q", "--hard", seed.commit)
    known = ledger.known_programs(kit.SOLVER)
    assert program_digest(winner) not in known
    assert program_digest(seed.harness) in known
