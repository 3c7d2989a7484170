"""The user's work tree: is the harness clean, and bringing a clean one along after the branch moved.

The work tree is touched only after the branch moved, only in files that the move changed, and only where the file
holds the old or the new content: somebody's edits are never overwritten. Every step can be repeated after a kill.
"""

from collections.abc import Sequence
from pathlib import Path

from hl.git import Git

PATIENCE_S = 0.5
"""How long a held index lock is waited for: `recover` tries again later (ours)."""


def dirty_paths(git: Git, paths: Sequence[str]) -> list[str]:
    """Which of some paths differ from the head, in the work tree or in the index, or are untracked."""
    if not paths:
        return []
    fields = iter(
        git.read(
            "status", "--porcelain=v1", "-z", "--untracked-files=all", "--no-renames", "--", *paths
        ).split(b"\0")
    )
    return sorted(f[3:].decode("utf-8", "surrogateescape") for f in fields if len(f) > 3)


def find_worktree(git: Git, branch: str) -> Path | None:
    """The work tree that has a branch checked out, if one has."""
    path = git.line("for-each-ref", "--format=%(worktreepath)", f"refs/heads/{branch}")
    return Path(path) if path else None


def bring_along(tree: Git, old: str, new: str) -> list[str]:
    """Move a work tree and its index from one commit to another.

    Returns:
        The paths that stand in the way because they hold something else; if there are any, nothing was changed.

    Raises:
        GitFailed: The index is locked by somebody else for longer than we wait.
    """
    changes = _changes(tree, old, new)
    if not changes:
        return []
    blocked: list[str] = []
    index = _index(tree, list(changes))
    for path, (_, before, after) in changes.items():
        held = index.get(path)
        file = tree.directory / path
        worked = tree.line("hash-object", "--", path) if file.is_file() and not file.is_symlink() else None
        if not {held, worked} <= {before, after}:
            blocked.append(path)
    if blocked:
        return blocked
    lines = b"".join(
        f"{mode} {after}\t{path}".encode("utf-8", "surrogateescape") + b"\0"
        for path, (mode, _, after) in changes.items()
    )
    names = b"".join(path.encode("utf-8", "surrogateescape") + b"\0" for path in changes)
    tree.patiently("update-index", "-z", "--index-info", stdin=lines, patience_s=PATIENCE_S)
    tree.patiently("checkout-index", "-f", "-u", "-q", "-z", "--stdin", stdin=names, patience_s=PATIENCE_S)
    return []


def _changes(git: Git, old: str, new: str) -> dict[str, tuple[str, str | None, str]]:
    """Path -> (new mode, old blob or None if the file is new, new blob). Rounds never remove files."""
    fields = git.fields("diff-tree", "-r", "-z", "--no-renames", old, new)
    found: dict[str, tuple[str, str | None, str]] = {}
    for head in fields:
        path = next(fields).decode("utf-8", "surrogateescape")
        _, mode, before, after, _ = head.decode().split(" ")
        found[path] = (mode, before if before.strip("0") else None, after)
    return found


def _index(git: Git, paths: Sequence[str]) -> dict[str, str]:
    """Path -> blob in the index."""
    found: dict[str, str] = {}
    for entry in git.fields("ls-files", "-s", "-z", "--", *paths):
        head, _, path = entry.partition(b"\t")
        found[path.decode("utf-8", "surrogateescape")] = head.split(b" ")[1].decode()
    return found
