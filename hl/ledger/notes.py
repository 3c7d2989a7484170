"""The notes of `refs/notes/hl/evals`: append, merge, list. Lines are only ever added.

`git notes` itself is never used for writing: it moves the reference without looking at its old value, and parallel
writers lose notes silently. Here the new tree is built from objects and the reference moved by compare-and-swap.
"""

from collections.abc import Iterator, Mapping, Sequence

from hl.git import Batch, Git, Objects, parse_tree
from hl.ledger.lines import parse_lines
from hl.ledger.names import NOTES
from hl.types import Measurement


def append(
    batch: Batch, objects: Objects, tip: str | None, lines: Mapping[str, Sequence[str]], oid_bytes: int
) -> str | None:
    """The notes tree of `tip` with lines added to the notes of some commits, as objects.

    Args:
        batch: To read what is there.
        objects: Receives the blobs and trees.
        tip: The notes commit, or None if there is none yet.
        lines: Commit -> lines to add.
        oid_bytes: Size of an object name.

    Returns:
        The new tree, or None if every line is there already.
    """
    changes: dict[bytes, str] = {}
    for commit, added in lines.items():
        path, old = _find(batch, tip, commit, oid_bytes)
        present = [line for line in old.split(b"\n") if line.strip()]
        # Measured again with the same result, only later: nothing new.
        known = {_undated(line) for line in present}
        fresh = [e for e in (line.encode() for line in added) if _undated(e) not in known]
        if fresh:
            # Sorted as git's cat_sort_uniq does it, so that a merge changes nothing that is already in order.
            changes[path] = objects.blob(b"\n".join(sorted({*present, *fresh})) + b"\n")
    if not changes:
        return None
    return objects.graft(batch, f"{tip}^{{tree}}" if tip else None, changes)


def merge(batch: Batch, objects: Objects, git: Git, ours: str, theirs: str) -> str | None:
    """The tree that holds the lines of both notes commits; None if ours has them all already."""
    mine = {c: (path, oid) for c, path, oid in listing(git, ours)}
    changes: dict[bytes, str] = {}
    for commit, _, oid in listing(git, theirs):
        if commit not in mine:
            changes[_fanned(commit)] = oid
            continue
        my_path, my_oid = mine[commit]
        if my_oid == oid:
            continue
        texts = [found[2] if found else b"" for found in batch.get_many([my_oid, oid])]
        merged = sorted({line for text in texts for line in text.split(b"\n") if line.strip()})
        data = b"\n".join(merged) + b"\n"
        if data != texts[0]:
            changes[my_path] = objects.blob(data)
    return objects.graft(batch, f"{ours}^{{tree}}", changes) if changes else None


def lines_of(git: Git, commit: str, oid_bytes: int) -> tuple[Measurement, ...]:
    """The readable lines of one commit's note."""
    with git.batch() as batch:
        return parse_lines(_find(batch, git.ref(NOTES), commit, oid_bytes)[1])


def listing(git: Git, tip: str) -> Iterator[tuple[str, bytes, str]]:
    """(annotated object, path in the notes tree, blob) of every note."""
    for entry in git.fields("ls-tree", "-r", "-z", "--full-tree", tip):
        head, _, path = entry.partition(b"\t")
        yield path.replace(b"/", b"").decode("ascii", "replace"), path, head.rsplit(b" ", 1)[1].decode()


def _find(batch: Batch, tip: str | None, commit: str, oid_bytes: int) -> tuple[bytes, bytes]:
    """(path, content) of a commit's note; git fans trees out by two digits, as deep as it likes, or not at all."""
    if tip is None:
        return _fanned(commit), b""
    name, folder = f"{tip}^{{tree}}", b""
    rest = commit.encode()
    while found := batch.get(name):
        entries = parse_tree(found[2], oid_bytes)
        if note := entries.get(rest):
            blob = batch.get(note.oid)
            return folder + rest, blob[2] if blob else b""
        deeper = entries.get(rest[:2])
        if deeper is None or not deeper.is_tree:
            break
        name, folder, rest = deeper.oid, folder + rest[:2] + b"/", rest[2:]
    return (folder + rest if folder else _fanned(commit)), b""


def _undated(line: bytes) -> bytes:
    return line.partition(b",")[2] if line.startswith(b'{"t":') else line


def _fanned(commit: str) -> bytes:
    return f"{commit[:2]}/{commit[2:]}".encode()
