"""kill -9 at any instant: what is left passes `git fsck` and `hl fsck`, and the work goes on.

The fault is a `git` that stands before the real one on PATH and kills whoever calls it; the product has no hook.
"""

import os
import random
import shutil
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from hl.ledger import Ledger
from tests.ledger import kit
from tests.ledger.kit import ENTRY, FILES, make_round, sh, variant


def descendants(pid: int) -> list[int]:
    """A process's children, their children, and so on."""
    with suppress(OSError):
        children = [int(c) for c in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
        return [d for c in children for d in (c, *descendants(c))]
    return []


def run_child(work: Callable[[], object], *, kill_after_s: float | None = None) -> int:
    """Run in a forked child, perhaps killed with its children; its exit status, negative for a signal."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            work()
            code = 0
        finally:
            os._exit(code)
    if kill_after_s is not None:
        time.sleep(kill_after_s)
        for victim in (pid, *descendants(pid)):
            with suppress(ProcessLookupError):
                os.kill(victim, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


@pytest.fixture
def template(tmp_path: Path) -> Path:
    """A repository with one accepted round, to be copied."""
    ledger = kit.new(tmp_path / "template")
    kit.play(ledger)
    return ledger.root


def check_and_continue(root: Path, accept: bool) -> None:
    """The repository is sound as it is; recovery and recording the same round again end in the same state."""
    ledger = Ledger.open(root)
    assert [p for p in kit.serious(ledger) if "missing from the notes" not in p] == []
    ledger.recover()
    assert not ledger.unfinished() and kit.serious(ledger) == []
    assert sh(root, "status", "--porcelain") == ""
    result = make_round(kit.read(ledger, "main/1/0"), 2, accept=accept)
    head = ledger.record_round(result, kit.records(ledger))
    assert (head is not None) == accept
    assert sh(root, "status", "--porcelain") == "" and kit.serious(ledger) == []
    assert [e.name for e in ledger.log(files=FILES, entry=ENTRY)] == [*["main/2/0"][:accept], "main/1/0", ""]
    assert [r.number for r in ledger.rounds()] == [1, 2]
    expected = variant("r2-0" if accept else "r1-0").text("harness.py")
    assert (root / "harness.py").read_text() == expected
    assert len(ledger.measurements(harness=result.parent.harness.digest)) == (5 if accept else 4)
    assert len(ledger.measurements(harness=variant("r2-0").digest)) == (2 if accept else 1)
    assert not list((root / ".git").rglob("*.lock"))


@pytest.mark.slow
@pytest.mark.parametrize(("mode", "accept"), [("before", True), ("during", True), ("before", False)])
def test_killed_at_every_call_of_git(
    template: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str, accept: bool
) -> None:
    spy = tmp_path / "spy"
    clean = os.environ["PATH"]
    environment = kit.spy(spy)
    result = make_round(kit.read(Ledger.open(template)), 2, accept=accept)

    def record(root: Path) -> None:
        ledger = Ledger.open(root)
        ledger.record_round(result, kit.records(ledger))

    # A first run, unharmed, tells how many calls there are, and which of them write.
    monkeypatch.setenv("PATH", environment["PATH"])
    shutil.copytree(template, tmp_path / "whole", symlinks=True)
    kit.arm(spy, 0)
    assert run_child(lambda: record(tmp_path / "whole")) == 0
    made = kit.calls(spy)
    words = (" unpack-objects", " update-ref", " update-index", " checkout-index")
    writes = [n for n, call in enumerate(made, 1) if any(word in call for word in words)]
    assert len(writes) >= (5 if accept else 2)
    # Before and after each write; between two reads nothing changes.
    after = [n + 1 for n in writes if n < len(made)]
    chosen = sorted({1, len(made), *writes, *after}) if mode == "before" else writes
    killed = 0
    for at in chosen:
        root = tmp_path / f"at-{at}"
        shutil.copytree(template, root, symlinks=True)
        monkeypatch.setenv("PATH", environment["PATH"])
        kit.arm(spy, at, mode)
        killed += run_child(lambda root=root: record(root)) == -signal.SIGKILL
        monkeypatch.setenv("PATH", clean)
        if mode == "during":
            # The orphan ends by itself.
            time.sleep(0.05)
        check_and_continue(root, accept)
        shutil.rmtree(root)
    assert killed == len(chosen)


@pytest.mark.slow
def test_killed_with_its_children_at_random_moments(template: Path, tmp_path: Path) -> None:
    dice = random.Random(7)
    result = make_round(kit.read(Ledger.open(template)), 2)

    def record(root: Path) -> None:
        ledger = Ledger.open(root)
        ledger.record_round(result, kit.records(ledger))

    whole = tmp_path / "whole"
    shutil.copytree(template, whole, symlinks=True)
    begun = time.monotonic()
    assert run_child(lambda: record(whole)) == 0
    took = time.monotonic() - begun
    for n in range(8):
        root = tmp_path / f"try-{n}"
        shutil.copytree(template, root, symlinks=True)
        run_child(lambda root=root: record(root), kill_after_s=dice.uniform(0, took))
        check_and_continue(root, True)
        shutil.rmtree(root)


def test_locks_of_the_dead_are_removed_and_those_of_others_are_not(template: Path) -> None:
    ledger = Ledger.open(template)
    result = make_round(kit.read(ledger), 2)
    old = ledger.root / ".git" / "refs" / "heads" / "side.lock"
    old.write_text("")
    # A kill of the whole process group inside `git update-ref` leaves these.
    for name in ("refs/notes/hl/evals.lock", "refs/hl/rounds/main/2.lock"):
        path = ledger.common_dir / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")
    assert ledger.record_round(result, kit.records(ledger)) == ledger.head
    assert [p.name for p in ledger.common_dir.rglob("*.lock")] == ["side.lock"]


def test_locks_on_branch_and_index_are_removed_only_when_our_own_death_left_them(
    template: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spy = tmp_path / "spy"
    environment = kit.spy(spy)
    clean = os.environ["PATH"]
    result = make_round(kit.read(Ledger.open(template)), 2)

    def record(root: Path) -> None:
        ledger = Ledger.open(root)
        ledger.record_round(result, kit.records(ledger))

    whole = tmp_path / "whole"
    shutil.copytree(template, whole, symlinks=True)
    monkeypatch.setenv("PATH", environment["PATH"])
    kit.arm(spy, 0)
    assert run_child(lambda: record(whole)) == 0
    moves = [n for n, call in enumerate(kit.calls(spy), 1) if " update-ref" in call]
    kit.arm(spy, moves[-1])
    assert run_child(lambda: record(template)) == -signal.SIGKILL
    monkeypatch.setenv("PATH", clean)
    left = [template / ".git" / name for name in ("refs/heads/main.lock", "HEAD.lock", "index.lock")]
    for path in left:
        path.write_text("")
    ledger = Ledger.open(template)
    assert "finished" in (ledger.recover() or "")
    assert not any(path.exists() for path in left)
    assert sh(template, "status", "--porcelain") == "" and kit.serious(ledger) == []
    # The same locks, made by somebody else while nothing of ours was unfinished, stay.
    left[0].write_text("")
    assert ledger.recover() is None
    with pytest.raises(Exception, match=r"main\.lock"):
        kit.play(ledger, 3)
    assert left[0].exists()
