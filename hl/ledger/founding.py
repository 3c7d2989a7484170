"""New repositories: `git init`, local configuration, and commits of files of the work tree."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from hl.errors import RepositoryError
from hl.git import Git, Objects, RefMovedError, RefUpdate
from hl.ledger.names import tracking_ref

if TYPE_CHECKING:
    from hl.ledger.repository import Ledger

CONFIGURATION = (
    # Rebase and amend carry notes along; lines name the harness they measured, so none is misread.
    ("notes.rewriteRef", "refs/notes/hl/*"),
    ("notes.rewriteMode", "cat_sort_uniq"),
    ("notes.mergeStrategy", "cat_sort_uniq"),
    # Round references would be drawn beside the commits of `git log --decorate`.
    ("log.excludeDecoration", "refs/hl/"),
)


def check_place(path: Path) -> None:
    """Refuse a place where `found` would not make a repository.

    Raises:
        RepositoryError: It holds something that is not a git work tree.
    """
    if not path.exists():
        return
    if not path.is_dir():
        raise RepositoryError(f"{path} is a file", hint="hl init OTHER-DIRECTORY")
    if not (path / ".git").exists() and any(path.iterdir()):
        raise RepositoryError(
            f"{path} is not empty and not a git repository",
            hint=f"git init {path}, or choose a new directory",
        )


def found(path: Path, branch: str) -> None:
    """Make the repository, or adopt the one that is there, and set its local configuration.

    Raises:
        RepositoryError: The place is taken, or git refuses.
    """
    check_place(path)
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RepositoryError(f"{path} cannot be made: {error.strerror}") from None
    git = Git(path)
    if not (path / ".git").exists():
        git.read("init", "--quiet", f"--initial-branch={branch}")
    configure(git)


def configure(git: Git) -> None:
    """Set the local configuration, for a new repository or a fresh clone; what is set already stays."""
    present = git.run("config", "--local", "--null", "--list")[1].split(b"\0")
    wanted = list(CONFIGURATION)
    for remote in git.read("remote").decode("utf-8", "surrogateescape").split("\n"):
        if remote:
            # Never onto refs/notes/hl itself: a forced fetch there would drop lines that only this clone has.
            spec = f"+refs/notes/hl/*:{tracking_ref(remote, 'notes/*')}"
            wanted.append((f"remote.{remote}.fetch", spec))
    for key, value in wanted:
        section, _, name = key.rpartition(".")
        shown = f"{section}.{name.lower()}\n{value}".encode("utf-8", "surrogateescape")
        if shown not in present:
            git.read("config", "--local", "--add", key, value)


def commit_files(ledger: "Ledger", message: str, paths: Sequence[str]) -> str:
    """See `Ledger.commit_files`. Only these paths of index and tree change; whatever else is staged stays staged."""
    git, objects = ledger.git, Objects(ledger.algorithm)
    blobs: dict[bytes, str] = {}
    for path in paths:
        file = ledger.root / path
        try:
            if file.is_symlink():
                raise RepositoryError(f"{path} is a symbolic link")
            blobs[os.fsencode(path)] = objects.blob(file.read_bytes())
        except OSError as error:
            raise RepositoryError(f"{path} cannot be read: {error.strerror}") from None
    head = ledger.head
    with git.batch() as batch:
        old = batch.get(f"{head}^{{tree}}") if head else None
        tree = objects.graft(batch, old[0] if old else None, blobs)
    git.store(objects)
    if head and old and old[0] == tree:
        return head
    commit_objects = Objects(ledger.algorithm)
    commit = commit_objects.commit(tree, [head] if head else [], ledger.identity, message)
    git.store(commit_objects)
    branch = f"refs/heads/{ledger.lineage}" if ledger.lineage else "HEAD"
    try:
        git.move([RefUpdate(branch, commit, head)], reason="hl: " + message.split("\n")[0][:80])
    except RefMovedError:
        raise RepositoryError(f"{branch} was moved by somebody else", hint="try again") from None
    lines = git.read("ls-tree", "-r", "-z", "--full-tree", commit, "--", *paths)
    git.patiently("update-index", "--add", "-z", "--index-info", stdin=lines)
    git.patiently("update-index", "-q", "--refresh")
    return commit
