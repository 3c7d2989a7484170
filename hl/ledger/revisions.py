"""Room 1, read: a name becomes a commit, a commit becomes a harness. The files that hl.toml lists, nothing else."""

import hashlib
from collections.abc import Iterable, Iterator, Sequence

from hl.errors import RepositoryError
from hl.git import Batch, Git, parse_tree
from hl.ledger.names import parse_candidate, round_ref
from hl.types import Harness


def resolve(git: Git, rev: str, lineage: str | None) -> str:
    """The commit that a revision names: anything git understands, or a candidate (hl.ledger.names).

    Raises:
        RepositoryError: There is no such commit.
    """
    if commit := find_commit(git, rev):
        return commit
    name = parse_candidate(rev)
    if name and (of := name.lineage or lineage):
        ref = round_ref(of, name.round)
        if commit := find_commit(git, f"{ref}^{name.index + 1}{name.suffix}"):
            return commit
        if git.ref(ref):
            raise RepositoryError(
                f"round {name.round} of {of} has no candidate {name.index}", hint="hl log --all"
            )
        raise RepositoryError(
            f"unknown revision {rev!r}: {of} has no round {name.round} here", hint="hl fetch"
        )
    if rev in ("HEAD", "@"):
        raise RepositoryError("this branch has no commit yet", hint="hl init")
    raise RepositoryError(f"unknown revision {rev!r}", hint="hl log --all")


def for_git(git: Git, rev: str, lineage: str | None) -> str:
    """A revision or range as git understands it: candidate names in it become commits.

    Raises:
        RepositoryError: It names a candidate that is not there.
    """
    for sign in ("...", ".."):
        left, found, right = rev.partition(sign)
        if found:
            return for_git(git, left, lineage) + sign + for_git(git, right, lineage)
    if rev.startswith("^"):
        return "^" + for_git(git, rev[1:], lineage)
    return resolve(git, rev, lineage) if parse_candidate(rev) else rev


def find_commit(git: Git, rev: str) -> str | None:
    """The commit that git understands by a revision, or None."""
    if not rev or "\0" in rev:
        return None
    if rev.startswith(":/"):
        # The rest is a pattern, to which a suffix would belong.
        found = git.ref(rev)
        return git.ref(f"{found}^{{commit}}") if found else None
    return git.ref(f"{rev}^{{commit}}")


def read_harness(git: Git, commit: str, files: Sequence[str], entry: str, oid_bytes: int) -> Harness:
    """The harness at a commit.

    Raises:
        RepositoryError: A listed file is missing there, not a regular file, or not UTF-8.
    """
    with git.batch() as batch:
        tree = batch.get(f"{commit}^{{tree}}")
        entries = parse_tree(tree[2], oid_bytes) if tree else {}
        texts: list[tuple[str, str]] = []
        for name in sorted(set(files)):
            found = entries.get(name.encode())
            if found is None:
                raise RepositoryError(
                    f"{name}, which hl.toml lists, does not exist at {commit[:12]}",
                    hint="hl config set harness.files NAMES",
                )
            if found.mode not in ("100644", "100755"):
                raise RepositoryError(f"{name} at {commit[:12]} is not a regular file")
            blob = batch.get(found.oid)
            if blob is None:
                raise RepositoryError(f"the content of {name} at {commit[:12]} is missing", hint="git fsck")
            try:
                texts.append((name, blob[2].decode("utf-8")))
            except UnicodeDecodeError as error:
                raise RepositoryError(f"{name} at {commit[:12]} is not UTF-8 (byte {error.start})") from None
    return Harness(tuple(texts), entry)


def digests(batch: Batch, commits: Iterable[str], files: Sequence[str], entry: str) -> Iterator[str | None]:
    """`Harness.digest` of each commit, without making harnesses; None where a listed file is missing."""
    names = sorted(set(files))
    wanted = (f"{commit}:{name}" for commit in commits for name in names)
    group: list[bytes | None] = []
    for found in batch.get_many(wanted):
        group.append(found[2] if found and found[1] == "blob" else None)
        if len(group) == len(names):
            yield _digest(names, group, entry)
            group = []


def _digest(names: Sequence[str], contents: Sequence[bytes | None], entry: str) -> str | None:
    h = hashlib.sha256(entry.encode())
    for name, content in zip(names, contents, strict=True):
        if content is None:
            return None
        for part in (name.encode(), content):
            h.update(len(part).to_bytes(8, "big"))
            h.update(part)
    return h.hexdigest()
