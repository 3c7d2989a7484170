"""Opening, founding, naming and reading."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from hl.errors import LockedError, RepositoryError
from hl.ledger import Ledger
from hl.types import Harness, Role
from tests.ledger import kit
from tests.ledger.kit import ENTRY, FILES, SEED, measure, play, sh


def test_a_new_repository_holds_what_was_given(tmp_path: Path) -> None:
    ledger = kit.new(tmp_path / "a" / "b")
    assert ledger.lineage == "main"
    assert sh(ledger.root, "status", "--porcelain") == ""
    assert sh(ledger.root, "show", "HEAD:harness.py") + "\n" == SEED
    revision = kit.read(ledger)
    assert revision.harness == Harness((("harness.py", SEED),))
    assert (revision.commit, revision.lineage) == (ledger.head, "main")
    assert sh(ledger.root, "fsck", "--strict") == ""


def test_plain_git_is_told_where_not_to_look(ledger: Ledger) -> None:
    assert sh(ledger.root, "config", "--get-all", "log.excludeDecoration") == "refs/hl/"
    assert sh(ledger.root, "config", "notes.rewriteMode") == "cat_sort_uniq"
    play(ledger)
    assert "refs/hl" not in sh(ledger.root, "log", "--decorate=full", "--all", "-n", "3")


def test_configuring_twice_adds_nothing(ledger: Ledger) -> None:
    before = (ledger.root / ".git" / "config").read_text()
    Ledger.create(ledger.root)
    assert (ledger.root / ".git" / "config").read_text() == before


@pytest.mark.parametrize("holds", ["a file", "files"])
def test_a_place_that_is_taken_is_refused(tmp_path: Path, holds: str) -> None:
    place = tmp_path / "x"
    if holds == "a file":
        place.write_text("")
    else:
        place.mkdir()
        (place / "mine.txt").write_text("precious")
    with pytest.raises(RepositoryError, match=str(place)):
        Ledger.create(place)
    assert holds == "a file" or [p.name for p in place.iterdir()] == ["mine.txt"]


def test_a_git_work_tree_is_adopted_with_its_history(tmp_path: Path) -> None:
    sh(tmp_path, "init", "-q", "-b", "trunk", "own")
    root = tmp_path / "own"
    (root / "README").write_text("mine\n")
    (root / "run.sh").write_text("#!/bin/sh\n")
    (root / "run.sh").chmod(0o755)
    sh(root, "add", ".")
    sh(root, "commit", "-q", "-m", "mine")
    (root / "staged").write_text("later\n")
    sh(root, "add", "staged")
    ledger = kit.new(root)
    assert ledger.lineage == "trunk"
    assert sh(root, "log", "--format=%s") == "Start with the minimal harness\nmine"
    # What the user had staged is neither committed nor lost.
    assert sh(root, "status", "--porcelain") == "A  staged"
    assert "100755" in sh(root, "ls-tree", "HEAD", "run.sh")


def test_committing_the_same_again_makes_no_commit(ledger: Ledger) -> None:
    head = ledger.head
    assert ledger.commit_files("Again", ["harness.py"]) == head


def test_opened_from_anywhere_inside(ledger: Ledger) -> None:
    inner = ledger.root / "deep" / "er"
    inner.mkdir(parents=True)
    assert Ledger.open(inner).root == ledger.root


def test_elsewhere_is_not_a_repository(tmp_path: Path) -> None:
    with pytest.raises(RepositoryError) as caught:
        Ledger.open(tmp_path)
    assert str(tmp_path) in caught.value.message and "hl init" in (caught.value.hint or "")
    assert caught.value.exit_code == 4
    with pytest.raises(RepositoryError):
        Ledger.open(tmp_path / "missing")
    sh(tmp_path, "init", "-q", "--bare", "bare")
    with pytest.raises(RepositoryError, match="work tree"):
        Ledger.open(tmp_path / "bare")


def test_variables_of_a_hook_do_not_lead_astray(
    ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = kit.new(tmp_path / "other")
    before = sh(other.root, "rev-parse", "HEAD"), (other.root / ".git" / "index").read_bytes()
    for name, value in {
        "GIT_DIR": str(other.root / ".git"),
        "GIT_WORK_TREE": str(other.root),
        "GIT_INDEX_FILE": str(other.root / ".git" / "index"),
        "GIT_OBJECT_DIRECTORY": str(other.root / ".git" / "objects"),
        "GIT_COMMON_DIR": str(other.root / ".git"),
    }.items():
        monkeypatch.setenv(name, value)
    opened = Ledger.open(ledger.root)
    assert opened.root == ledger.root
    head = play(opened)
    assert Ledger.open(ledger.root).head == head
    for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_COMMON_DIR"):
        monkeypatch.delenv(name)
    assert (sh(other.root, "rev-parse", "HEAD"), (other.root / ".git" / "index").read_bytes()) == before
    assert kit.serious(ledger) == [] and kit.serious(other) == []


def test_another_owner_is_gits_refusal_with_gits_advice(ledger: Ledger) -> None:
    if os.getuid() != 0:
        pytest.skip("needs root to give a folder away")
    for folder, _, files in os.walk(ledger.root):
        for path in [folder, *(f"{folder}/{f}" for f in files)]:
            os.chown(path, 65534, 65534)
    with pytest.raises(RepositoryError, match="dubious ownership") as caught:
        Ledger.open(ledger.root)
    assert (caught.value.hint or "").startswith("git config --global --add safe.directory")


def test_git_missing_is_said(ledger: Ledger, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    with pytest.raises(RepositoryError, match="not installed"):
        Ledger.open(ledger.root)


# --- names


def test_revisions_of_git_and_candidates(ledger: Ledger) -> None:
    seed = ledger.head
    assert seed
    first = play(ledger)
    assert first
    sh(ledger.root, "tag", "good")
    for rev in ("HEAD", "main", "good", first, first[:10], "main/1/0", "1/0", "@", ":/Ask", "HEAD^{commit}"):
        assert ledger.resolve(rev) == first, rev
    for rev in ("HEAD~1", "main^", "main/1/1^", "1/2~1", "main/1/0~1"):
        assert ledger.resolve(rev) == seed, rev
    assert ledger.resolve("1/1") == sh(ledger.root, "rev-parse", "refs/hl/rounds/main/1^2")


def test_an_unknown_revision_is_named(ledger: Ledger) -> None:
    play(ledger)
    unknown = [
        "nope",
        "main/7/0",
        "1/9",
        "HEAD~99",
        "",
        "-n",
        "--all",
        "a\0b",
        "a\nb",
        "HEAD:harness.py",
        "x" * 5000,
    ]
    for rev in unknown:
        with pytest.raises(RepositoryError) as caught:
            ledger.resolve(rev)
        assert caught.value.exit_code == 4 and caught.value.hint, rev


def test_an_unborn_branch_says_so(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "x")
    assert ledger.head is None
    with pytest.raises(RepositoryError, match="no commit yet"):
        kit.read(ledger)
    with pytest.raises(RepositoryError, match="no commit yet"):
        list(ledger.log(files=FILES, entry=ENTRY))


# --- reading harnesses


def commit(ledger: Ledger, message: str) -> None:
    sh(ledger.root, "add", "-A")
    sh(ledger.root, "commit", "-q", "-m", message)


def test_only_listed_files_are_the_harness(ledger: Ledger) -> None:
    (ledger.root / "helper.py").write_text("X = 1\n")
    (ledger.root / "README").write_text("changed\n")
    commit(ledger, "more")
    assert kit.read(ledger).harness.digest == kit.read(ledger, "HEAD~1").harness.digest
    both = ledger.read("HEAD", ("helper.py", "harness.py"), ENTRY).harness
    assert [name for name, _ in both.files] == ["harness.py", "helper.py"]
    with pytest.raises(RepositoryError, match=r"helper\.py.*does not exist"):
        ledger.read("HEAD~1", ("helper.py", "harness.py"), ENTRY)


def test_text_is_kept_byte_for_byte(ledger: Ledger) -> None:
    text = "\ufeffdef solve(model, question):\r\n\treturn 'é\u2028'  \r\n\n\n"
    (ledger.root / "harness.py").write_bytes(text.encode())
    commit(ledger, "odd bytes")
    assert kit.read(ledger).harness.text("harness.py") == text
    entry = next(ledger.log(files=FILES, entry=ENTRY, limit=1))
    assert entry.harness == kit.read(ledger).harness.digest


def test_what_is_not_text_is_refused(ledger: Ledger) -> None:
    (ledger.root / "harness.py").write_bytes(b"x = '\xff'\n")
    commit(ledger, "latin")
    with pytest.raises(RepositoryError, match="UTF-8"):
        kit.read(ledger)
    (ledger.root / "harness.py").unlink()
    (ledger.root / "harness.py").symlink_to("/etc/passwd")
    commit(ledger, "link")
    with pytest.raises(RepositoryError, match="regular"):
        kit.read(ledger)
    # The log goes on: such a commit has no harness, or one that nothing was measured for.
    assert [e.measurements for e in ledger.log(files=FILES, entry=ENTRY)] == [(), (), ()]


# --- states


def test_a_detached_head_can_be_read_but_not_revised(ledger: Ledger) -> None:
    head = play(ledger)
    sh(ledger.root, "checkout", "-q", "--detach")
    assert ledger.lineage is None
    revision = kit.read(ledger)
    assert (revision.commit, revision.lineage) == (head, "")
    assert [e.subject for e in ledger.log(files=FILES, entry=ENTRY, losers=True)][-1].startswith("Start")
    with pytest.raises(RepositoryError, match="detached") as caught:
        ledger.next_round()
    assert "git switch" in (caught.value.hint or "")
    with pytest.raises(RepositoryError, match="detached"):
        ledger.record_round(kit.make_round(revision, 2), kit.records(ledger))


def test_dirty_files_are_named(ledger: Ledger) -> None:
    assert ledger.is_dirty(["harness.py", "hl.toml"]) == []
    (ledger.root / "harness.py").write_text("changed\n")
    (ledger.root / "unrelated").write_text("new\n")
    assert ledger.is_dirty(["harness.py", "hl.toml"]) == ["harness.py"]
    sh(ledger.root, "add", "harness.py")
    assert ledger.is_dirty(["harness.py"]) == ["harness.py"]
    sh(ledger.root, "commit", "-q", "-m", "own")
    assert ledger.is_dirty(["harness.py"]) == []
    (ledger.root / "new.py").write_text("")
    assert ledger.is_dirty(["harness.py", "new.py"]) == ["new.py"]
    assert ledger.is_dirty([]) == []


def test_no_identity_is_replaced_and_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith(("GIT_AUTHOR", "GIT_COMMITTER")) or name == "EMAIL":
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    ledger = Ledger.create(tmp_path / "agent")
    sh(ledger.root, "config", "user.useConfigOnly", "true")
    (ledger.root / "harness.py").write_text(SEED)
    ledger.commit_files("Start", ["harness.py"])
    play(ledger)
    assert "hl@localhost" in ledger.notice
    assert (
        sh(ledger.root, "log", "-1", "--format=%an <%ae>|%cn <%ce>") == "hl <hl@localhost>|hl <hl@localhost>"
    )


def test_a_known_identity_is_kept(ledger: Ledger) -> None:
    play(ledger)
    assert ledger.notice == ""
    assert sh(ledger.root, "log", "-1", "--format=%an") == "Ada Tester"


def test_commits_repeat_with_a_fixed_date(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GIT_AUTHOR_DATE")
    monkeypatch.delenv("GIT_COMMITTER_DATE")
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    ids: list[str] = []
    for name in ("a", "b"):
        ledger = kit.new(tmp_path / name)
        play(ledger)
        play(ledger, 2, accept=False)
        ids.append(sh(ledger.root, "for-each-ref"))
    assert ids[0] == ids[1]
    assert " 1700000000 +0000" in sh(ledger.root, "cat-file", "-p", "HEAD")


def test_hooks_and_signing_do_not_stop_a_round(ledger: Ledger) -> None:
    for hook in ("pre-commit", "commit-msg", "post-checkout"):
        path = ledger.root / ".git" / "hooks" / hook
        path.parent.mkdir(exist_ok=True)
        path.write_text("#!/bin/sh\nexit 1\n")
        path.chmod(0o755)
    sh(ledger.root, "config", "commit.gpgSign", "true")
    sh(ledger.root, "config", "gpg.program", "false")
    sh(ledger.root, "config", "log.showSignature", "true")
    assert play(ledger) == ledger.head
    assert [e.accepted for e in ledger.log(files=FILES, entry=ENTRY)] == [True, False]


# --- locks


def test_the_lock_names_its_holder(ledger: Ledger) -> None:
    script = (
        "import sys, time\nfrom pathlib import Path\nfrom hl.ledger import Ledger\n"
        f"with Ledger.open(Path({str(ledger.root)!r})).lock():\n    print('held', flush=True)\n    time.sleep(60)\n"
    )
    holder = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    try:
        assert holder.stdout is not None and holder.stdout.readline() == "held\n"
        with pytest.raises(LockedError, match=str(holder.pid)) as caught, ledger.lock():
            pass
        assert caught.value.exit_code == 5
        # A short write does not wait for a long run.
        ledger.add_measurements("HEAD", [measure(kit.read(ledger).harness, Role.EVALUATION, [1])])
    finally:
        holder.kill()
        holder.communicate()
    with ledger.lock():
        pass


def test_reading_takes_no_lock(ledger: Ledger) -> None:
    play(ledger)
    with ledger.lock(), ledger.write_lock():
        assert len(list(ledger.log(files=FILES, entry=ENTRY))) == 2
