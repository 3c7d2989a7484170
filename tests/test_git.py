"""git as a program: objects as git makes them, clean commands, compare-and-swap."""

import hashlib
import io
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hl.commands.place import find_pager
from hl.errors import RepositoryError
from hl.git import Git, GitFailed, Objects, RefMovedError, RefUpdate, TreeEntry, parse_tree
from hl.git.objects import Identity
from hl.ledger import Ledger
from hl.ledger.worktree import bring_along, dirty_paths

WHO = Identity("Ada <ada@example.org>", "Bob <bob@example.org>", 1700000000, "+0130", False)


def sh(root: Path, *args: str, stdin: bytes = b"") -> bytes:
    return subprocess.run(["git", *args], cwd=root, input=stdin, capture_output=True, check=True).stdout


@pytest.fixture(params=["sha1", "sha256"])
def git(tmp_path: Path, request: pytest.FixtureRequest) -> Git:
    root = tmp_path / "r"
    root.mkdir()
    sh(root, "init", "-q", "-b", "main", f"--object-format={request.param}")
    return Git(root)


def algorithm(git: Git) -> str:
    return git.line("rev-parse", "--show-object-format")


def test_objects_have_the_names_that_git_gives_them(git: Git) -> None:
    objects = Objects(algorithm(git))
    small, empty, large = b"x\n", b"", bytes(range(256)) * 5000
    blobs = [objects.blob(data) for data in (small, empty, large)]
    inner = objects.tree([TreeEntry("100755", b"run", blobs[0])])
    # Directories sort as if they ended in a slash: a.b before a/ before a0.
    entries = [
        TreeEntry("40000", b"a", inner),
        TreeEntry("100644", b"a.b", blobs[1]),
        TreeEntry("100644", b"a0", blobs[2]),
    ]
    tree = objects.tree(entries)
    first = objects.commit(tree, [], WHO, "Subject\n\nBody é\n\n\n")
    second = objects.commit(tree, [first, first], WHO, "nul \0, lone \ud800")
    git.store(objects)
    assert sh(git.directory, "fsck", "--strict", "--no-dangling") == b""
    for oid, data in zip(blobs, (small, empty, large), strict=True):
        assert sh(git.directory, "cat-file", "blob", oid) == data
        assert sh(git.directory, "hash-object", "--stdin", stdin=data).decode().strip() == oid
    names = sh(git.directory, "ls-tree", "-r", "-t", "--name-only", tree).decode().split()
    assert names == ["a.b", "a", "a/run", "a0"]
    size = hashlib.new(algorithm(git)).digest_size
    with git.batch() as batch:
        found = batch.get(tree)
        assert found is not None and parse_tree(found[2], size) == {e.name: e for e in entries}
    shown = sh(git.directory, "log", "--format=%H %an %cn %ad %B", "--date=raw", second).decode()
    assert shown.startswith(f"{second} Ada Bob 1700000000 +0130 nul ?, lone ?")
    # Stored again, nothing happens.
    git.store(objects)


def test_grafting_changes_only_what_it_names(git: Git) -> None:
    (git.directory / "run.sh").write_text("x")
    (git.directory / "run.sh").chmod(0o755)
    (git.directory / "d").mkdir()
    (git.directory / "d" / "kept").write_text("kept")
    (git.directory / "d" / "changed").write_text("old")
    sh(git.directory, "add", ".")
    base = sh(git.directory, "write-tree").decode().strip()
    objects = Objects(algorithm(git))
    new = objects.blob(b"new")
    with git.batch() as batch:
        tree = objects.graft(batch, base, {b"d/changed": new, b"e/f/g": new, b"run.sh": new})
        same = Objects(algorithm(git))
        assert same.graft(batch, base, {}) == base
    git.store(objects)
    listed = sh(git.directory, "ls-tree", "-r", tree).decode()
    assert [line.split("\t")[1] for line in listed.splitlines()] == ["d/changed", "d/kept", "e/f/g", "run.sh"]
    assert "100755" in listed and sh(git.directory, "cat-file", "blob", f"{tree}:d/kept") == b"kept"


@given(st.lists(st.binary(max_size=400), max_size=5))
def test_a_pack_is_one_that_git_indexes(contents: list[bytes]) -> None:
    objects = Objects("sha1")
    for data in contents:
        objects.blob(data)
    pack = objects.pack()
    assert pack[:8] == b"PACK\0\0\0\2" and int.from_bytes(pack[8:12], "big") == len(set(contents))
    assert hashlib.sha1(pack[:-20]).digest() == pack[-20:]


def test_names_that_are_no_single_request_are_nothing(git: Git) -> None:
    blob = sh(git.directory, "hash-object", "-w", "--stdin", stdin=b"data").decode().strip()
    odd = [
        f"{blob}\n{blob}",
        "a\0b",
        "",
        "x" * 5000,
        "HEAD",
        "refs/heads/no such",
        "missing",
        f"{blob} missing",
        ":",
    ]
    with git.batch() as batch:
        answers = list(batch.get_many([n for name in odd for n in (name, blob)] * 40))
    assert answers[0::2] == [None] * (len(odd) * 40)
    assert all(a is not None and a[2] == b"data" for a in answers[1::2])


def test_large_objects_and_many_requests_do_not_block(git: Git) -> None:
    blob = sh(git.directory, "hash-object", "-w", "--stdin", stdin=b"z" * 300_000).decode().strip()
    with git.batch() as batch:
        sizes = {len(a[2]) for a in batch.get_many([blob] * 400) if a is not None}
    assert sizes == {300_000}


def test_fields_come_as_they_are_and_can_be_left_early(git: Git) -> None:
    names = ['na\tme "q"', "new\nline", "é", "plain"]
    for name in names:
        (git.directory / name).write_text("")
    (git.directory / os.fsdecode(b"\xff.py")).write_text("")
    sh(git.directory, "add", ".")
    assert set(git.fields("ls-files", "-z")) == {*(os.fsencode(n) for n in names), b"\xff.py"}
    stream = git.fields("ls-files", "-z")
    next(stream)
    stream.close()
    with pytest.raises(GitFailed, match="not-a-command"):
        list(git.fields("not-a-command"))


def test_references_move_only_from_where_they_are(git: Git) -> None:
    objects = Objects(algorithm(git))
    tree = objects.tree([])
    a, b = (objects.commit(tree, [], WHO, text) for text in ("a", "b"))
    git.store(objects)
    git.move([RefUpdate("refs/hl/x", a, None), RefUpdate("refs/hl/y", a, None)], reason="test")
    with pytest.raises(RefMovedError):
        git.move([RefUpdate("refs/hl/x", b, None)], reason="test")
    with pytest.raises(RefMovedError):
        git.move([RefUpdate("refs/hl/y", b, a), RefUpdate("refs/hl/x", b, b)], reason="test")
    with pytest.raises(RefMovedError):
        git.move([RefUpdate("refs/hl/gone", b, a)], reason="test")
    # All or nothing: y stayed too.
    assert (git.ref("refs/hl/x"), git.ref("refs/hl/y"), git.ref("refs/hl/z")) == (a, a, None)
    git.move([], reason="nothing")


def test_a_held_lock_is_waited_for_and_then_named(git: Git) -> None:
    objects = Objects(algorithm(git))
    commit = objects.commit(objects.tree([]), [], WHO, "a")
    git.store(objects)
    lock = git.directory / ".git" / "refs" / "hl" / "x.lock"
    lock.parent.mkdir(parents=True)
    lock.write_text("")
    script = f"import os,time; time.sleep(0.5); os.unlink({str(lock)!r})"
    other = subprocess.Popen([sys.executable, "-c", script])
    git.move([RefUpdate("refs/hl/x", commit, None)], reason="test")
    assert other.wait() == 0
    lock.write_text("")
    with pytest.raises(GitFailed, match=r"x\.lock"):
        git.patiently("update-ref", "refs/hl/x", commit, patience_s=0.1)
    assert lock.exists()


def test_ctrl_c_reaches_us_and_not_git(git: Git) -> None:
    script = (
        "import os, signal, sys\nfrom pathlib import Path\nfrom hl.git import Git\n"
        "os.setpgid(0, 0)\ncaught = []\nsignal.signal(signal.SIGINT, lambda *a: caught.append(1))\n"
        f"git = Git(Path({str(git.directory)!r}))\n"
        "status, out, err = git.run('-c', 'alias.hit=!kill -INT -' + str(os.getpid()) + '; echo alive', 'hit')\n"
        "assert (status, out, caught) == (0, b'alive\\n', [1]), (status, out, err, caught)\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


def test_a_failure_is_one_sentence_with_gits_reason(git: Git) -> None:
    with pytest.raises(GitFailed) as caught:
        git.read("cat-file", "blob", "nope")
    assert caught.value.message == "git cat-file failed: Not a valid object name nope"
    assert caught.value.exit_code == 4
    with pytest.raises(RepositoryError, match="does not exist"):
        Git(git.directory / "gone").read("status")


def test_identity_and_date(git: Git, monkeypatch: pytest.MonkeyPatch) -> None:
    who = git.identity()
    assert (who.author, who.committer, who.fallback) == ("Ada Tester <ada@example.org>",) * 2 + (False,)
    assert (who.seconds, who.zone) == (1767323045, "+0000")
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "12345")
    assert git.identity().seconds == 12345
    for name in ("AUTHOR", "COMMITTER"):
        monkeypatch.delenv(f"GIT_{name}_NAME")
        monkeypatch.delenv(f"GIT_{name}_EMAIL")
    sh(git.directory, "config", "user.useConfigOnly", "true")
    nobody = git.identity()
    assert nobody.fallback and nobody.committer == "hl <hl@localhost>"
    sh(git.directory, "config", "user.name", "Eve")
    sh(git.directory, "config", "user.email", "eve@example.org")
    assert git.identity().author == "Eve <eve@example.org>"


def test_reading_does_not_import_the_slow_library(git: Git) -> None:
    script = (
        "import sys\nfrom pathlib import Path\nfrom hl.ledger import Ledger\n"
        f"ledger = Ledger.open(Path({str(git.directory)!r}))\n"
        "assert ledger.lineage == 'main' and ledger.head is None\n"
        "assert 'git' not in sys.modules, sorted(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


def test_no_program_that_a_repository_names_runs(tmp_path: Path) -> None:
    """Hooks, filters and the file-system monitor of a repository that came from elsewhere; plain git runs them."""
    root, ran = tmp_path / "r", tmp_path / "ran"
    ledger = Ledger.create(root)
    (root / "f.txt").write_text("1\n")
    program = tmp_path / "program"
    program.write_text(f'#!/bin/sh\necho "$0 $*" >> {ran}\ncat\n')
    program.chmod(0o755)
    hooks = ("reference-transaction", "post-index-change", "pre-push", "pre-auto-gc", "post-checkout")
    for name in hooks:
        (root / ".git" / "hooks" / name).write_text(program.read_text())
        (root / ".git" / "hooks" / name).chmod(0o755)
    for name in ("plain", "odd=name"):
        for what in ("clean", "smudge"):
            sh(root, "config", f"filter.{name}.{what}", str(program))
    sh(root, "config", "filter.plain.required", "true")
    sh(root, "config", "core.fsmonitor", str(program))
    (root / ".git" / "info" / "attributes").write_text("f.txt filter=plain\ng.txt filter=odd=name\n")
    (root / "g.txt").write_text("1\n")
    sh(root, "add", "f.txt")
    assert ran.read_text().count("reference") == 0 and str(program) in ran.read_text()
    sh(root, "update-ref", "refs/x", sh(root, "hash-object", "-w", "--stdin").decode().strip())
    assert "reference-transaction" in ran.read_text()
    sh(root, "reset", "-q")
    ran.unlink()

    first = ledger.commit_files("One", ["f.txt", "g.txt"])
    (root / "f.txt").write_text("2\n")
    assert dirty_paths(Git(root), ["f.txt"]) == ["f.txt"]
    second = ledger.commit_files("Two", ["f.txt"])
    assert bring_along(Git(root), second, first) == []
    assert (root / "f.txt").read_text() == "1\n"
    remote = tmp_path / "remote.git"
    sh(tmp_path, "init", "-q", "--bare", str(remote))
    assert ledger.push(str(remote)).branch == "main"
    ledger.fetch(str(remote))
    Git(root).run("gc", "--auto", "--quiet")
    assert not ran.exists(), ran.read_text()


def test_the_users_own_filters_still_run(git: Git, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = tmp_path / "gitconfig"
    own.write_text('[filter "upper"]\n\tclean = tr a-z A-Z\n')
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(own))
    (git.directory / ".gitattributes").write_text("f.txt filter=upper\n")
    (git.directory / "f.txt").write_text("abc\n")
    oid = git.line("hash-object", "-w", "--", "f.txt")
    assert sh(git.directory, "cat-file", "blob", oid) == b"ABC\n"


def test_a_repositorys_pager_is_passed_over(
    git: Git, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = tmp_path / "gitconfig"
    own.write_text("[core]\n\tpager = less -S\n")
    terminal = io.StringIO()
    monkeypatch.setattr(terminal, "isatty", lambda: True)
    monkeypatch.setattr(sys, "stdout", terminal)
    sh(git.directory, "config", "core.pager", "touch /tmp/never")
    assert find_pager(True, git.directory) == "less"
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(own))
    assert find_pager(True, git.directory) == "less -S"
