"""Push and fetch: branch, notes, rounds, and bulk records if asked.

Notes are fetched beside ours, merged line by line, and pushed without force, again if somebody was faster. A round
reference is only ever made: if the other side has another round of the same name, both stay as they are and the
conflict is told. Bulk records travel as blobs of `refs/hl/records`, one tree of compressed files; pushing or fetching
them keeps a second copy in the local object store.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

from hl.errors import RepositoryError
from hl.git import GitFailed, Objects, RefMovedError, RefUpdate
from hl.ledger.founding import configure
from hl.ledger.names import NOTES, RECORDS, ROUNDS, parse_round_ref, tracking_ref
from hl.ledger.notes import merge
from hl.ledger.recording import move

if TYPE_CHECKING:
    from hl.ledger.repository import Ledger
    from hl.records import Records

TRIES = 8
"""How often notes are fetched, merged and pushed again when somebody else was faster (ours)."""
REFS_CHUNK = 500
"""References pushed by one command: its arguments must fit."""
RECORDS_CHUNK = 32
"""Records stored by one command: they are in memory together."""

_FETCH = ("fetch", "--no-tags", "--no-prune", "--no-recurse-submodules", "--no-write-fetch-head", "--quiet")


@dataclass(frozen=True, slots=True)
class Transfer:
    """What a push or fetch carried."""

    remote: str
    branch: str
    """The branch that was pushed; empty on a detached head, and for a fetch."""
    rounds: int
    """Rounds that the receiving side did not have."""
    notes: bool
    """Whether the receiving side's notes changed."""
    records: int
    """Bulk records that the receiving side did not have."""
    conflicts: tuple[str, ...]
    """`<lineage>/<round>` of rounds that differ on the two sides; neither was changed."""


def fetch(ledger: "Ledger", remote: str, records: "Records | None") -> Transfer:
    """See `Ledger.fetch`."""
    _check_remote(ledger, remote)
    configure(ledger.git)
    if remote in _remotes(ledger):
        _talk(ledger, remote, "fetch", "--no-recurse-submodules", "--", remote)
    theirs = _advertised(ledger, remote)
    ours = _local_rounds(ledger)
    wanted = [ref for ref in theirs if parse_round_ref(ref) and ref not in ours]
    specs = [f"{ref}:{ref}" for ref in wanted]
    _fetch_refs(ledger, remote, [*specs, *_tracked(theirs, remote)])
    changed = _merge_notes(ledger, remote) if NOTES in theirs else False
    adopted = _adopt_records(ledger, remote, records) if records is not None and RECORDS in theirs else 0
    return Transfer(remote, "", len(wanted), changed, adopted, _conflicts(ours, theirs))


def push(ledger: "Ledger", remote: str, records: "Records | None") -> Transfer:
    """See `Ledger.push`."""
    _check_remote(ledger, remote)
    configure(ledger.git)
    theirs = _advertised(ledger, remote)
    ours = _local_rounds(ledger)
    missing = [ref for ref in ours if ref not in theirs]
    for part in _parts(missing, REFS_CHUNK):
        _push_refs(ledger, remote, [f"{ref}:{ref}" for ref in part])
    changed = _push_notes(ledger, remote)
    sent = _push_records(ledger, remote, records) if records is not None else 0
    # The branch goes last: whoever sees it finds its rounds and scores.
    branch = ledger.lineage
    if branch is not None and ledger.head is not None:
        refused = _push_refs(ledger, remote, [f"refs/heads/{branch}:refs/heads/{branch}"])
        if refused and not _is_behind(ledger, remote, branch):
            raise RepositoryError(
                f"{remote} refused {branch}: {next(iter(refused.values()))}",
                hint=f"git pull --rebase {remote} {branch}, then hl push {remote}",
            )
    return Transfer(remote, branch or "", len(missing), changed, sent, _conflicts(ours, theirs))


# --- parts


def _check_remote(ledger: "Ledger", remote: str) -> None:
    if not remote or remote.startswith("-") or "\0" in remote or "\n" in remote:
        raise RepositoryError(f"{remote!r} is not a remote", hint="git remote -v")
    if "/" not in remote and ":" not in remote and remote not in _remotes(ledger):
        raise RepositoryError(f"there is no remote {remote!r}", hint=f"git remote add {remote} URL")


def _remotes(ledger: "Ledger") -> Sequence[str]:
    return ledger.git.read("remote").decode("utf-8", "surrogateescape").split("\n")[:-1]


def _talk(ledger: "Ledger", remote: str, *args: str, stdin: bytes = b"") -> bytes:
    """A command that talks to a remote, and may ask for a passphrase."""
    status, out, err = ledger.git.run(*args, stdin=stdin, apart=False)
    if status:
        failure = GitFailed(args, status, err)
        raise RepositoryError(f"{remote}: {failure.message}", hint=failure.hint or "git remote -v")
    return out


def _advertised(ledger: "Ledger", remote: str) -> Mapping[str, str]:
    """Reference -> object of what the remote offers of ours."""
    out = _talk(ledger, remote, "ls-remote", "--", remote, f"{ROUNDS}/*", NOTES, RECORDS)
    found: dict[str, str] = {}
    for line in out.decode("utf-8", "surrogateescape").splitlines():
        oid, _, ref = line.partition("\t")
        if parse_round_ref(ref) or ref in (NOTES, RECORDS):
            found[ref] = oid
    return found


def _local_rounds(ledger: "Ledger") -> Mapping[str, str]:
    out = ledger.git.read("for-each-ref", "--format=%(objectname) %(refname)", f"{ROUNDS}/")
    lines = out.decode("utf-8", "surrogateescape").splitlines()
    return {ref: oid for oid, _, ref in (line.partition(" ") for line in lines) if parse_round_ref(ref)}


def _conflicts(ours: Mapping[str, str], theirs: Mapping[str, str]) -> tuple[str, ...]:
    names = [parse_round_ref(ref) for ref, oid in ours.items() if theirs.get(ref, oid) != oid]
    return tuple(f"{name[0]}/{name[1]}" for name in sorted(n for n in names if n is not None))


def _tracked(theirs: Mapping[str, str], remote: str) -> list[str]:
    return [f"+{NOTES}:{tracking_ref(remote, 'notes/evals')}"] if NOTES in theirs else []


def _fetch_refs(ledger: "Ledger", remote: str, specs: Sequence[str]) -> None:
    if specs:
        args = (
            "fetch",
            "--no-tags",
            "--no-recurse-submodules",
            "--no-write-fetch-head",
            "--quiet",
            "--stdin",
        )
        _talk(ledger, remote, *args, "--", remote, stdin="".join(f"{s}\n" for s in specs).encode())


def _push_refs(ledger: "Ledger", remote: str, specs: Sequence[str]) -> Mapping[str, str]:
    """Push without force; reference -> reason of those that were refused.

    Raises:
        RepositoryError: The remote could not be reached.
    """
    args = ("push", "--porcelain", "--no-follow-tags", "--recurse-submodules=no", "--", remote, *specs)
    status, out, err = ledger.git.run(*args, apart=False)
    refused: dict[str, str] = {}
    for line in out.decode("utf-8", "replace").splitlines():
        flag, _, rest = line.partition("\t")
        refs, _, reason = rest.partition("\t")
        if flag == "!":
            refused[refs.partition(":")[2]] = reason
    if status and not refused:
        failure = GitFailed(args, status, err)
        raise RepositoryError(f"{remote}: {failure.message}", hint=failure.hint or "git remote -v")
    return refused


def _is_behind(ledger: "Ledger", remote: str, branch: str) -> bool:
    """Whether the remote's branch contains ours already."""
    ref = f"refs/heads/{branch}"
    tip = _talk(ledger, remote, "ls-remote", "--", remote, ref).split(b"\t")[0].decode()
    if not tip:
        return False
    _talk(ledger, remote, *_FETCH, "--", remote, ref)
    return ledger.git.run("merge-base", "--is-ancestor", ref, tip)[0] == 0


def _parts(items: Sequence[str], size: int) -> Iterator[list[str]]:
    rest = iter(items)
    while part := list(islice(rest, size)):
        yield part


# --- notes


def _merge_notes(ledger: "Ledger", remote: str) -> bool:
    """Bring the lines that were fetched into our notes; whether there were new ones."""
    with ledger.write_lock():
        for _ in range(TRIES):
            theirs = ledger.git.ref(tracking_ref(remote, "notes/evals"))
            ours = ledger.git.ref(NOTES)
            if theirs is None or theirs == ours:
                return False
            new = _merged(ledger, ours, theirs) if ours is not None else theirs
            if new == ours:
                return False
            try:
                move(ledger, [RefUpdate(NOTES, new, ours)], "hl: fetch")
                return True
            except RefMovedError:
                continue
    raise RepositoryError(f"{NOTES} is moved by somebody else all the time", hint="try again")


def _merged(ledger: "Ledger", ours: str, theirs: str) -> str:
    """A notes commit with the lines of both, ours itself if it has them all."""
    objects = Objects(ledger.algorithm)
    with ledger.git.batch() as batch:
        tree = merge(batch, objects, ledger.git, ours, theirs)
        if tree is None:
            return ours
        is_older = ledger.git.run("merge-base", "--is-ancestor", ours, theirs)[0] == 0
        # A fast-forward only if no line of ours was dropped on the other side.
        if is_older and merge(batch, Objects(ledger.algorithm), ledger.git, theirs, ours) is None:
            return theirs
    commit = objects.commit(tree, [ours, theirs], ledger.identity, "Merge measurements\n")
    ledger.git.store(objects)
    return commit


def _push_notes(ledger: "Ledger", remote: str) -> bool:
    for _ in range(TRIES):
        theirs = _advertised(ledger, remote)
        _fetch_refs(ledger, remote, _tracked(theirs, remote))
        if NOTES in theirs:
            _merge_notes(ledger, remote)
        ours = ledger.git.ref(NOTES)
        if ours is None or theirs.get(NOTES) == ours:
            return False
        refused = _push_refs(ledger, remote, [f"{ours}:{NOTES}"])
        if not refused:
            return True
    raise RepositoryError(f"{remote} refused the notes {TRIES} times", hint=f"hl push {remote}")


# --- records


def _adopt_records(ledger: "Ledger", remote: str, records: "Records") -> int:
    ref = tracking_ref(remote, "records")
    _fetch_refs(ledger, remote, [f"+{RECORDS}:{ref}"])
    wanted = [(a, oid) for a, oid in _listed(ledger, ref).items() if not records.path(a).exists()]
    adopted = 0
    with ledger.git.batch() as batch:
        for (address, _), blob in zip(wanted, batch.get_many(oid for _, oid in wanted), strict=True):
            if blob is not None and records.adopt(address, blob[2]):
                adopted += 1
    return adopted


def _push_records(ledger: "Ledger", remote: str, records: "Records") -> int:
    ref = tracking_ref(remote, "records")
    for _ in range(TRIES):
        theirs = _advertised(ledger, remote).get(RECORDS)
        if theirs is not None:
            _fetch_refs(ledger, remote, [f"+{RECORDS}:{ref}"])
        present = _listed(ledger, theirs) if theirs is not None else {}
        missing = [a for a in records.addresses() if a not in present]
        if not missing:
            return 0
        changes: dict[bytes, str] = {}
        for part in _parts(missing, RECORDS_CHUNK):
            objects = Objects(ledger.algorithm)
            for address in part:
                changes[f"{address[:2]}/{address[2:]}".encode()] = objects.blob(records.packed(address))
            ledger.git.store(objects)
        objects = Objects(ledger.algorithm)
        with ledger.git.batch() as batch:
            tree = objects.graft(batch, f"{theirs}^{{tree}}" if theirs else None, changes)
        parents = [theirs] if theirs else []
        commit = objects.commit(tree, parents, ledger.identity, f"Add {len(missing)} records\n")
        ledger.git.store(objects)
        if not _push_refs(ledger, remote, [f"{commit}:{RECORDS}"]):
            move(ledger, [RefUpdate(ref, commit, ledger.git.ref(ref))], "hl: push")
            return len(missing)
    raise RepositoryError(f"{remote} refused the records {TRIES} times", hint=f"hl push --records {remote}")


def _listed(ledger: "Ledger", rev: str) -> Mapping[str, str]:
    """Address -> blob of the records in a records commit."""
    found: dict[str, str] = {}
    for entry in ledger.git.fields("ls-tree", "-r", "-z", "--full-tree", rev):
        head, _, path = entry.partition(b"\t")
        address = path.replace(b"/", b"").decode("ascii", "replace")
        if len(address) == 64 and all(c in "0123456789abcdef" for c in address):
            found[address] = head.rsplit(b" ", 1)[1].decode()
    return found
