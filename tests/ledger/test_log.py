"""What `hl log` gets: order, scores, believed and disbelieved trailers, few processes."""

import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from hl.errors import RepositoryError
from hl.ledger import Ledger
from hl.ledger.log import LogEntry
from hl.types import Outcome, Role
from tests.ledger import kit
from tests.ledger.kit import ENTRY, FILES, make_round, measure, play, sh, variant


def log(
    ledger: Ledger, *revs: str, losers: bool = False, limit: int | None = None, graph: bool = False
) -> list[LogEntry]:
    return list(
        ledger.log(revs or ("HEAD",), files=FILES, entry=ENTRY, limit=limit, losers=losers, graph=graph)
    )


def test_one_entry_a_commit_newest_first(ledger: Ledger) -> None:
    play(ledger, 1)
    play(ledger, 2, accept=False)
    play(ledger, 3)
    entries = log(ledger)
    assert [(e.name, e.round, e.accepted, e.genuine) for e in entries] == [
        ("main/3/0", 3, True, True),
        ("main/1/0", 1, True, True),
        ("", 0, False, False),
    ]
    top = entries[0]
    assert top.commit == ledger.head and top.parents == (ledger.resolve("HEAD~1"),)
    assert top.harness == kit.read(ledger).harness.digest
    assert top.outcome is Outcome.SCORED and top.verdict is not None and top.verdict.gain == 0.25
    assert {m.role for m in top.measurements} == {Role.SCORING, Role.CONFIRMATION}
    assert entries[1].time == 1767323045 and entries[2].subject == "Start with the minimal harness"


def test_losers_stand_above_the_commit_they_revised(ledger: Ledger) -> None:
    play(ledger, 1)
    play(ledger, 2, accept=False)
    play(ledger, 3)
    shown = [(e.name, e.loser, e.outcome) for e in log(ledger, losers=True)]
    scored, missed = Outcome.SCORED, Outcome.NOT_FOUND
    assert shown == [
        ("main/3/0", False, scored),
        ("main/3/1", True, scored),
        ("main/3/2", True, missed),
        ("main/2/0", True, scored),
        ("main/2/1", True, scored),
        ("main/2/2", True, missed),
        ("main/1/0", False, scored),
        ("main/1/1", True, scored),
        ("main/1/2", True, missed),
        ("", False, None),
    ]
    by_name = {e.name: e for e in log(ledger, losers=True)}
    assert by_name["main/3/2"].detail == "no such text" and by_name["main/3/2"].measurements == ()
    assert len(by_name["main/3/1"].measurements) == 1
    assert by_name["main/2/0"].verdict is not None and not by_name["main/2/0"].accepted


def test_a_duplicate_shows_the_score_of_its_first(ledger: Ledger) -> None:
    play(ledger, 1)
    result = make_round(kit.read(ledger), 2)
    c = result.candidates[2]
    same = replace(
        c.proposal, outcome=Outcome.DUPLICATE, candidate=variant("x  "), duplicate_of=variant("r1-1").digest
    )
    ledger.record_round(
        replace(result, candidates=(*result.candidates[:2], replace(c, proposal=same))), kit.records(ledger)
    )
    twin = next(e for e in log(ledger, losers=True) if e.name == "main/2/2")
    assert twin.duplicate_of == variant("r1-1").digest
    assert [m.harness for m in twin.measurements] == [variant("r1-1").digest]


def test_ranges_limits_and_candidates(ledger: Ledger) -> None:
    for n in (1, 2, 3):
        play(ledger, n)
    assert [e.round for e in log(ledger, "main~2..main")] == [3, 2]
    assert [e.round for e in log(ledger, limit=2)] == [3, 2]
    assert log(ledger, limit=0) == []
    assert [e.round for e in log(ledger, "^main~1", "main")] == [3]
    assert [e.name for e in log(ledger, "2/1", limit=1)] == ["main/2/1"]
    assert [e.name for e in log(ledger, "1/0..main/3/1")] == ["main/3/1", "main/2/0"]
    assert [e.name for e in log(ledger, "^1/0", "3/1")] == ["main/3/1", "main/2/0"]
    assert ledger.entry("2/1", files=FILES, entry=ENTRY).name == "main/2/1"


def test_unknown_revisions(ledger: Ledger) -> None:
    for rev in ("nope", "nope..main", "--all", "-n1", "main/9/9"):
        with pytest.raises(RepositoryError) as caught:
            log(ledger, rev)
        assert caught.value.exit_code == 4 and rev in caught.value.message


def test_a_score_is_found_wherever_it_hangs(ledger: Ledger) -> None:
    play(ledger)
    sh(ledger.root, "revert", "--no-edit", "HEAD")
    sh(ledger.root, "revert", "--no-edit", "HEAD")
    again, reverted, accepted, seed = log(ledger)
    assert again.harness == accepted.harness and again.measurements == accepted.measurements
    assert reverted.harness == seed.harness and reverted.measurements == seed.measurements
    assert len(accepted.measurements) == 2 and len(seed.measurements) == 3
    # git copied no trailer of ours into its own message.
    assert not again.genuine and not again.trailers


def test_copied_and_forged_trailers_are_not_believed(ledger: Ledger) -> None:
    play(ledger)
    play(ledger, 2)
    message = sh(ledger.root, "log", "-1", "--format=%B", ledger.resolve("main/1/1"))
    (ledger.root / "harness.py").write_text("other\n")
    sh(ledger.root, "commit", "-q", "-a", "-m", message)
    forged = sh(ledger.root, "log", "-1", "--format=%B", ledger.resolve("main/2/0")).replace(
        "0.5000", "0.9900"
    )
    (ledger.root / "harness.py").write_text("more\n")
    sh(ledger.root, "commit", "-q", "-a", "-m", forged)
    sh(ledger.root, "switch", "-q", "-c", "picked", ledger.resolve("main/1/1^"))
    sh(ledger.root, "commit", "-q", "--allow-empty", "-m", "between")
    sh(ledger.root, "cherry-pick", ledger.resolve("main/1/1"))
    picked = log(ledger, limit=1)[0]
    # The cherry-pick has the loser's score because it has its text, not because of what its message says.
    assert not picked.genuine and picked.round == 0 and picked.outcome is None and picked.trailers["HL-Round"]
    assert picked.measurements == log(ledger, "main/1/1", limit=1)[0].measurements
    entries = log(ledger, "main")
    assert [e.genuine for e in entries] == [False, False, True, True, False]
    assert entries[0].measurements == () and entries[0].verdict is None and not entries[0].accepted
    assert any("copied" in p.message for p in ledger.fsck(FILES, ENTRY))


def test_a_losers_message_on_the_branch_is_believed_only_for_the_loser(ledger: Ledger) -> None:
    play(ledger)
    sh(ledger.root, "reset", "-q", "--hard", ledger.resolve("main/1/1"))
    top = log(ledger, limit=1)[0]
    assert top.genuine and top.name == "main/1/1" and not top.accepted


def test_in_a_plain_clone_trailers_are_shown_but_not_believed_yet(ledger: Ledger, tmp_path: Path) -> None:
    play(ledger)
    sh(tmp_path, "clone", "-q", str(ledger.root), "clone")
    clone = Ledger.open(tmp_path / "clone")
    top = log(clone, losers=True)[0]
    assert top.trailers["HL-Score"].startswith("0.5000") and not top.genuine and top.measurements == ()


def test_odd_messages_and_notes_do_not_derail(ledger: Ledger) -> None:
    play(ledger)
    for message in (
        b"latin \xe9\n",
        b"",
        b"x\n\n\nHL-Round: main/1/0\nHL-Round\n",
        b"\xff\xfe\n\nHL-Round: 1\n",
    ):
        sh(ledger.root, "commit", "-q", "--allow-empty", "--allow-empty-message", "-m", "tmp")
        tree = sh(ledger.root, "rev-parse", "HEAD^{tree}")
        raw = f"tree {tree}\nparent {ledger.head}\nauthor A <a@b> 1 +0000\ncommitter A <a@b> 1 +0000\n\n"
        oid = subprocess.run(
            ["git", "hash-object", "-t", "commit", "-w", "--stdin"],
            input=raw.encode() + message, cwd=ledger.root, capture_output=True, check=True,
        ).stdout.decode().strip()  # fmt: skip
        sh(ledger.root, "reset", "-q", "--hard", oid)
    blob = (
        subprocess.run(
            ["git", "hash-object", "-w", "--stdin"],
            input=b"a\0b\0\n\0\0",
            cwd=ledger.root,
            capture_output=True,
            check=True,
        )
        .stdout.decode()
        .strip()
    )
    sh(ledger.root, "notes", "--ref=hl/evals", "add", "-f", "-C", blob, "HEAD")
    entries = log(ledger)
    assert [e.commit for e in entries] == sh(ledger.root, "rev-list", "HEAD").split()
    assert [e.genuine for e in entries] == [False] * 8 + [True, False]


def test_the_graph_is_gits_own(ledger: Ledger) -> None:
    play(ledger)
    sh(ledger.root, "switch", "-q", "-c", "side", "HEAD~1")
    sh(ledger.root, "commit", "-q", "--allow-empty", "-m", "side")
    sh(ledger.root, "merge", "-q", "-m", "join", "main")
    entries = log(ledger, graph=True)
    drawn = [line for e in entries for line in e.graph]
    expected = sh(ledger.root, "log", "--graph", "--topo-order", "--format=%H").splitlines()
    for e in entries:
        expected = [line.replace(e.commit, "").rstrip() for line in expected]
    assert drawn == expected[: len(drawn)] and len(entries) == 4
    assert [e.commit for e in entries] == sh(ledger.root, "rev-list", "--topo-order", "HEAD").split()


def test_changed_configuration_reads_old_commits_by_todays_files(ledger: Ledger) -> None:
    (ledger.root / "helper.py").write_text("X = 1\n")
    sh(ledger.root, "add", "helper.py")
    sh(ledger.root, "commit", "-q", "-m", "helper")
    entries = list(ledger.log(files=("harness.py", "helper.py"), entry=ENTRY))
    assert entries[0].harness == ledger.read("HEAD", ("helper.py", "harness.py"), ENTRY).harness.digest
    assert entries[1].harness == "" and entries[1].measurements == ()


def test_a_page_costs_three_processes_however_long_the_history(
    ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    grow(ledger, 600)
    for n in range(3):
        ledger.add_measurements(
            f"HEAD~{n}", [measure(kit.read(ledger, f"HEAD~{n}").harness, Role.SCORING, [1])]
        )
    clean = os.environ["PATH"]
    for name, value in kit.spy(tmp_path / "spy").items():
        monkeypatch.setenv(name, value)
    kit.arm(tmp_path / "spy", 0)
    assert len(log(Ledger.open(ledger.root), limit=3)) == 3
    page = len(kit.calls(tmp_path / "spy"))
    kit.arm(tmp_path / "spy", 0)
    entries = log(Ledger.open(ledger.root))
    whole = len(kit.calls(tmp_path / "spy"))
    monkeypatch.setenv("PATH", clean)
    # rev-parse, is there a notes reference, log, cat-file; a few more where notes of other commits are looked up.
    assert page == 4 and whole <= 12
    assert len(entries) == 601


def grow(ledger: Ledger, count: int) -> None:
    """Commits by fast-import, each with another harness."""
    parts: list[bytes] = []
    for n in range(count):
        text = variant(f"n{n}").text("harness.py").encode()
        parts.append(
            b"commit refs/heads/main\ncommitter A <a@b> %d +0000\ndata 1\nx\n" % (1767323046 + n)
            + (f"from {ledger.head}\n".encode() if n == 0 else b"")
            + b"M 100644 inline harness.py\ndata %d\n%s\n" % (len(text), text)
        )
    subprocess.run(["git", "fast-import", "--quiet"], input=b"".join(parts), cwd=ledger.root, check=True)
    sh(ledger.root, "reset", "-q", "--hard")
