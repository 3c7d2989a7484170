"""What `hl log` shows: commits with their scores, and between them the candidates that lost.

One `git log` streams commits and notes, one `git cat-file` gives harness digests and confirms trailers, and only a
commit whose own note lacks its harness is looked up among all notes. Nothing is read that is not shown.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice

from hl.errors import RepositoryError
from hl.git import Batch, Git, GitFailed
from hl.ledger.lines import parse_lines
from hl.ledger.messages import RoundVerdict, parse_outcome, parse_trailers, parse_verdict
from hl.ledger.names import NOTES, parse_candidate, render_candidate, round_ref
from hl.ledger.revisions import digests
from hl.types import Measurement, Outcome

PAGE = 256
"""Commits looked at together."""
_LOG = (
    "log",
    "-z",
    "--format=tformat:%H%x00%P%x00%ct%x00%B%x00%N",
    "--encoding=UTF-8",
    # The user's configuration may ask for these.
    "--no-show-signature",
    "--no-patch",
)


@dataclass(frozen=True, slots=True)
class LogEntry:
    """One commit of the history, or one losing candidate."""

    commit: str
    parents: tuple[str, ...]
    time: int
    """Unix time."""
    subject: str
    message: str
    harness: str
    """Digest, or empty where a file that hl.toml lists is missing."""
    measurements: tuple[Measurement, ...]
    """Of this harness, wherever they hang, oldest first."""
    trailers: Mapping[str, str]
    """`HL-*` trailers as they stand in the message: the scores at decision time."""
    genuine: bool
    """Whether the round's own commit confirms them; copied or forged ones stay False, as do all before `hl fetch`."""
    lineage: str = ""
    """Of the round that made this commit, if genuine; so are the following fields."""
    round: int = 0
    index: int = -1
    outcome: Outcome | None = None
    verdict: RoundVerdict | None = None
    """Of that round."""
    accepted: bool = False
    """Whether that round chose this candidate and moved the branch."""
    detail: str = ""
    """Why the proposal failed; losing candidates only."""
    loser: bool = False
    """Whether this is a candidate that is not part of the history shown; only with `losers`."""
    duplicate_of: str = ""
    """Harness digest of the earlier equal candidate whose measurements these are."""
    graph: tuple[str, ...] = field(default=())
    """Lines of git's graph, the commit's own last; only with `graph`."""

    @property
    def name(self) -> str:
        """`<lineage>/<round>/<k>`, or empty."""
        return render_candidate(self.lineage, self.round, self.index) if self.round else ""


LookUp = Callable[[Sequence[str]], Mapping[str, tuple[Measurement, ...]]]
"""Harness digests -> measurements: see hl.ledger.index."""


@dataclass(frozen=True, slots=True)
class Reading:
    """What entries are read with."""

    git: Git
    files: Sequence[str]
    """That hl.toml lists now."""
    entry: str
    look_up: LookUp


def read_log(
    reading: Reading,
    revs: Sequence[str],
    *,
    limit: int | None,
    graph: bool = False,
    branches: bool = False,
) -> Iterator[LogEntry]:
    """The commits of some revisions and ranges, or also of all branches, newest first.

    Raises:
        RepositoryError: git does not know one of the revisions.
    """
    git = reading.git
    has_notes = git.ref(NOTES) is not None
    args = [*_LOG]
    args += ["--no-notes", f"--notes={NOTES}"] if has_notes else ["--no-notes"]
    args += [f"--max-count={limit}"] if limit is not None else []
    args += ["--branches"] if branches else []
    lines = iter(_graph(git, revs, limit)) if graph else None
    args += ["--topo-order"] if graph else []
    fields = git.fields(*args, "--end-of-options", *revs, "--")
    commits = _commits(fields)
    with git.batch() as batch:
        while page := list(islice(commits, PAGE)):
            for entry in _page(reading, batch, page):
                yield replace(entry, graph=next(lines, ())) if lines is not None else entry


def read_commits(reading: Reading, commits: Sequence[str]) -> Iterator[LogEntry]:
    """Entries of single commits, in the order given."""
    if not commits:
        return
    args = [*_LOG, "--no-walk=unsorted"]
    args += ["--no-notes", *([f"--notes={NOTES}"] if reading.git.ref(NOTES) else []), "--stdin"]
    with reading.git.batch() as batch:
        # git log ends at the first name that it does not know.
        objects = zip(commits, batch.get_many(commits), strict=True)
        present = [c for c, found in objects if found is not None and found[1] == "commit"]
        out = reading.git.read(*args, stdin="".join(f"{c}\n" for c in present).encode()) if present else b""
        found = {c[0]: c for c in _commits(iter(out.split(b"\0")[:-1]))}
        yield from _page(reading, batch, [found[c] for c in commits if c in found])


_Commit = tuple[str, tuple[str, ...], int, str, bytes, Mapping[str, str]]
"""Name, parents, time, message, note, trailers."""


def _commits(fields: Iterator[bytes]) -> Iterator[_Commit]:
    for commit in fields:
        parents, time, message, note = (next(fields, b"") for _ in range(4))
        text = message.decode("utf-8", "surrogateescape")
        yield (
            commit.decode("ascii", "replace"),
            tuple(parents.decode("ascii", "replace").split()),
            int(time or b"0"),
            text,
            note,
            parse_trailers(text),
        )


def _page(reading: Reading, batch: Batch, page: Sequence[_Commit]) -> Iterator[LogEntry]:
    harnesses = list(digests(batch, [c[0] for c in page], reading.files, reading.entry))
    verdicts = _confirm(batch, page)
    notes = [parse_lines(c[4]) for c in page]
    own = [tuple(m for m in n if m.harness == h) for n, h in zip(notes, harnesses, strict=True)]
    missing = [h for h, o in zip(harnesses, own, strict=True) if h and not o]
    elsewhere = reading.look_up(missing) if missing else {}
    for commit, harness, measurements in zip(page, harnesses, own, strict=True):
        oid, parents, time, message, _, trailers = commit
        entry = LogEntry(
            commit=oid,
            parents=parents,
            time=time,
            subject=message.partition("\n")[0],
            message=message,
            harness=harness or "",
            measurements=measurements or elsewhere.get(harness or "", ()),
            trailers=trailers,
            genuine=oid in verdicts,
        )
        name = parse_candidate(trailers.get("HL-Round", "")) if entry.genuine else None
        if name is not None and name.lineage:
            verdict = verdicts[oid]
            entry = replace(
                entry,
                lineage=name.lineage,
                round=name.round,
                index=name.index,
                outcome=parse_outcome(trailers),
                verdict=verdict,
                accepted=verdict is not None
                and verdict.winner == name.index
                and verdict.decision.value == "accepted",
            )
        yield entry


def _confirm(batch: Batch, page: Sequence[_Commit]) -> Mapping[str, RoundVerdict | None]:
    """Commit -> verdict of its round, for those commits that the round itself names."""
    named: list[tuple[str, str, int]] = []
    for oid, _, _, _, _, trailers in page:
        name = parse_candidate(trailers.get("HL-Round", ""))
        if name is not None and name.lineage and not name.suffix:
            named.append((oid, round_ref(name.lineage, name.round), name.index))
    found: dict[str, RoundVerdict | None] = {}
    for (oid, _, index), round in zip(named, batch.get_many(ref for _, ref, _ in named), strict=True):
        if round is None or round[1] != "commit":
            continue
        head, _, message = round[2].decode("utf-8", "replace").partition("\n\n")
        parents = [line[7:] for line in head.split("\n") if line.startswith("parent ")]
        if index < len(parents) and parents[index] == oid:
            found[oid] = parse_verdict(message)
    return found


def with_losers(
    entries: Iterator[LogEntry], reading: Reading, rounds: Sequence[tuple[str, int, str]]
) -> Iterator[LogEntry]:
    """The same entries, each preceded by the candidates that revised it and are not in the history.

    Args:
        entries: Newest first.
        reading: To read the candidates with.
        rounds: (lineage, number, round's commit) of all rounds.
    """
    from hl.ledger.rounds import RoundRecord, read_rounds

    by_parent: defaultdict[str, list[str]] = defaultdict(list)
    with reading.git.batch() as batch:
        # What the first candidate was made from. The records themselves are read only for commits that are shown.
        revised = batch.get_many(f"{commit}^1^1" for _, _, commit in rounds)
        for (_, _, commit), parent in zip(rounds, revised, strict=True):
            if parent is not None:
                by_parent[parent[0]].append(commit)
    shown: set[str] = set()
    for entry in entries:
        records: list[RoundRecord] = []
        if commits := by_parent.get(entry.commit):
            with reading.git.batch() as batch:
                records = list(read_rounds(batch, commits))
        for record in sorted(records, key=lambda r: r.number, reverse=True):
            rest = {p.commit: p for p in record.proposals if p.commit not in shown}
            twins = reading.look_up([p.duplicate_of for p in rest.values() if p.duplicate_of])
            for loser in read_commits(reading, list(rest)):
                p = rest[loser.commit]
                same = twins.get(p.duplicate_of, ())
                scores = loser.measurements if p.scoring or p.duplicate_of else ()
                yield replace(
                    loser,
                    measurements=scores or same,
                    outcome=p.outcome,
                    detail=p.detail,
                    loser=True,
                    duplicate_of=p.duplicate_of,
                )
        shown.add(entry.commit)
        yield entry


def _graph(git: Git, revs: Sequence[str], limit: int | None) -> list[tuple[str, ...]]:
    """git's own graph, cut into the lines that belong to each commit."""
    args = [
        "log",
        "--graph",
        "--topo-order",
        "--format=tformat:%x01",
        "--no-show-signature",
        "--no-patch",
        "--no-notes",
    ]
    args += [f"--max-count={limit}"] if limit is not None else []
    out = git.read(*args, "--end-of-options", *revs, "--").decode("utf-8", "replace")
    groups: list[tuple[str, ...]] = []
    pending: list[str] = []
    for line in out.splitlines():
        pending.append(line.replace("\x01", "").rstrip())
        if "\x01" in line:
            groups.append(tuple(pending))
            pending = []
    return groups


def explain(error: GitFailed, revs: Sequence[str]) -> RepositoryError:
    """git's complaint about a revision, as ours."""
    if "does not have any commits" in error.stderr or "bad revision 'HEAD'" in error.stderr:
        return RepositoryError("this branch has no commit yet", hint="hl init")
    if "bad revision" in error.stderr or "unknown revision" in error.stderr or "bad object" in error.stderr:
        return RepositoryError(f"unknown revision {' '.join(revs)!r}", hint="hl log --all")
    return error
