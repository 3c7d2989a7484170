"""The ledger as the rest of hl sees it: one git repository, one harness lineage per branch.

Room 1 (read) and room 8 (record) of a round. Promises: scores follow the harness digest; lines of the notes are only
added; the branch moves last and by compare-and-swap; the user's index and work tree are not touched before that; any
step can be repeated after a kill. Does not measure, select or print.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from hl.errors import RepositoryError
from hl.git import Git, GitFailed
from hl.ledger import log as reading
from hl.ledger.names import ROUNDS, escape, parse_candidate, round_ref
from hl.ledger.revisions import for_git, read_harness, resolve
from hl.types import HistoryEntry, Measurement, Revision, Round

if TYPE_CHECKING:
    from hl.git import Identity
    from hl.ledger.fsck import Problem
    from hl.ledger.log import LogEntry
    from hl.ledger.rounds import RoundRecord
    from hl.ledger.transport import Transfer
    from hl.records import Records

WRITE_WAIT_S = 60.0
"""How long one short write waits for another (ours)."""


class Ledger:
    """One repository.

    Args:
        root: Top of the work tree.
        git_dir: The work tree's own git directory.
        common_dir: The one that all work trees share.
        algorithm: Object format, `sha1` or `sha256`.
    """

    def __init__(self, root: Path, git_dir: Path, common_dir: Path, algorithm: str) -> None:
        self.root = root
        self.git_dir = git_dir
        self.common_dir = common_dir
        self.algorithm = algorithm
        self.git = Git(root)
        self.folder = common_dir / "hl"
        """Everything of ours that is not a git object."""

    # --- opening

    @classmethod
    def open(cls, path: Path) -> "Ledger":
        """The repository that holds a path.

        Raises:
            RepositoryError: There is none, it has no work tree, or git distrusts its owner.
        """
        if not path.is_dir():
            raise RepositoryError(f"{path} is not a directory", hint="hl init DIRECTORY --task TASK")
        args = ("rev-parse", "--path-format=absolute", "--show-object-format")
        args += ("--git-dir", "--git-common-dir", "--show-toplevel")
        status, out, err = Git(path).run(*args)
        if status:
            if "not a git repository" in err:
                raise RepositoryError(
                    f"{path.absolute()} is not in a repository", hint="hl init DIRECTORY --task TASK"
                )
            if "must be run in a work tree" in err:
                raise RepositoryError(
                    f"{path.absolute()} is a bare repository, or inside .git; hl needs a work tree",
                    hint="git worktree add DIRECTORY",
                )
            raise GitFailed(args, status, err)
        algorithm, git_dir, common_dir, root = os.fsdecode(out).rstrip("\n").split("\n", 3)
        return cls(Path(root), Path(git_dir), Path(common_dir), algorithm)

    @staticmethod
    def check_place(path: Path) -> None:
        """Refuse a place where `create` would not make a repository.

        Raises:
            RepositoryError: It holds something that is not a git work tree.
        """
        from hl.ledger.founding import check_place

        check_place(path)

    @classmethod
    def create(cls, path: Path, *, branch: str = "main") -> "Ledger":
        """Make the repository at a path, or adopt the git repository that is there, and set its configuration.

        Args:
            path: Missing, empty, or the top of a git work tree.
            branch: First branch of a new repository.

        Raises:
            RepositoryError: The place is taken.
        """
        from hl.ledger.founding import found

        found(path, branch)
        return cls.open(path)

    # --- small questions

    @cached_property
    def identity(self) -> "Identity":
        """Who commits."""
        return self.git.identity()

    @property
    def notice(self) -> str:
        """What the user should know once, or empty: that commits carry a stand-in identity."""
        if not self.identity.fallback:
            return ""
        return "git knows no user here, so commits are made as hl <hl@localhost> (git config user.name, user.email)"

    @property
    def oid_bytes(self) -> int:
        """Size of an object name."""
        return 32 if self.algorithm == "sha256" else 20

    @property
    def lineage(self) -> str | None:
        """The checked-out branch, or None on a detached head."""
        status, out, _ = self.git.run("symbolic-ref", "--quiet", "HEAD")
        return os.fsdecode(out).strip().removeprefix("refs/heads/") if status == 0 else None

    def require_lineage(self) -> str:
        """The checked-out branch.

        Raises:
            RepositoryError: The head is detached.
        """
        if (lineage := self.lineage) is None:
            raise RepositoryError(
                "HEAD is detached, and rounds belong to a branch", hint="git switch -c NEW-BRANCH"
            )
        return lineage

    @property
    def head(self) -> str | None:
        """The commit that is checked out, or None before the first."""
        return self.git.ref("HEAD^{commit}")

    def is_dirty(self, files: Sequence[str]) -> list[str]:
        """Which of some files differ from the head, in the work tree or the index, or are untracked."""
        from hl.ledger.worktree import dirty_paths

        return dirty_paths(self.git, files)

    # --- locks

    def lock(self) -> AbstractContextManager[None]:
        """The lock of a whole run: one `revise` or `eval` a repository at a time.

        Raises:
            LockedError: Another hl holds it; its process number is in the message.
        """
        from hl.ledger.locks import LOOK_S, hold

        return hold(self.folder / "lock", wait_s=LOOK_S)

    def is_locked(self) -> bool:
        """Whether a run of another hl is under way."""
        from hl.ledger.locks import is_held

        return is_held(self.folder / "lock")

    def write_lock(self) -> AbstractContextManager[None]:
        """The lock of one short write; waits for its turn."""
        from hl.ledger.locks import hold

        return hold(self.folder / "write-lock", wait_s=WRITE_WAIT_S)

    # --- reading

    def resolve(self, rev: str) -> str:
        """The commit that a revision names: any git syntax, or a candidate as `<lineage>/<round>/<k>` or `<round>/<k>`.

        Raises:
            RepositoryError: There is no such commit.
        """
        return resolve(self.git, rev, self.lineage if parse_candidate(rev) else None)

    def read(self, rev: str, files: Sequence[str], entry: str) -> Revision:
        """The harness at a revision.

        Args:
            rev: See `resolve`.
            files: That hl.toml lists now.
            entry: The file that defines solve.

        Raises:
            RepositoryError: Unknown revision, or a listed file is missing, not regular or not UTF-8 there.
        """
        commit = self.resolve(rev)
        harness = read_harness(self.git, commit, files, entry, self.oid_bytes)
        return Revision(commit, harness, self.lineage or "")

    def measurements(
        self, *, harness: str | None = None, commit: str | None = None
    ) -> tuple[Measurement, ...]:
        """Measurements, oldest first: of a harness digest, wherever they hang, or all that hang from one commit."""
        if harness is not None:
            return self.measurements_of([harness]).get(harness, ())
        if commit is None:
            return ()
        from hl.ledger.notes import lines_of

        return tuple(sorted(lines_of(self.git, self.resolve(commit), self.oid_bytes), key=lambda m: m.time))

    def measurements_of(self, digests: Sequence[str]) -> Mapping[str, tuple[Measurement, ...]]:
        """Measurements of many harness digests; digests without any are left out."""
        from hl.ledger.index import measurements_of

        return measurements_of(self.git, self.folder / "index.sqlite", digests)

    def log(
        self,
        revs: Sequence[str] = ("HEAD",),
        *,
        files: Sequence[str],
        entry: str,
        limit: int | None = None,
        losers: bool = False,
        graph: bool = False,
    ) -> Iterator["LogEntry"]:
        """History, newest first, streamed.

        Args:
            revs: Revisions and ranges, as for `git log`.
            files: That hl.toml lists now.
            entry: The file that defines solve.
            limit: Commits at most, losers not counted.
            losers: Put the candidates that lost before the commit they revised.
            graph: Fill in the lines of git's graph.

        Raises:
            RepositoryError: A revision is unknown.
        """
        source = reading.Reading(self.git, files, entry, self.measurements_of)
        lineage = self.lineage if any("/" in rev for rev in revs) else None
        names = [for_git(self.git, rev, lineage) for rev in revs]
        try:
            entries = reading.read_log(source, names, limit=limit, graph=graph)
            if losers:
                entries = reading.with_losers(entries, source, self.round_refs())
            yield from entries
        except GitFailed as error:
            raise reading.explain(error, revs) from None

    def entry(self, rev: str, *, files: Sequence[str], entry: str) -> "LogEntry":
        """One commit as `log` shows it.

        Raises:
            RepositoryError: Unknown revision.
        """
        source = reading.Reading(self.git, files, entry, self.measurements_of)
        return next(reading.read_commits(source, [self.resolve(rev)]))

    # --- rounds

    def round_refs(self, lineage: str | None = None) -> Sequence[tuple[str, int, str]]:
        """(lineage, number, round's commit) of the rounds, of one lineage or of all."""
        from hl.ledger.rounds import round_refs

        return round_refs(self.git, f"{ROUNDS}/{escape(lineage)}" if lineage else ROUNDS)

    def next_round(self, lineage: str | None = None) -> int:
        """Highest round number ever used on a lineage (the current one) + 1.

        Raises:
            RepositoryError: The head is detached.
        """
        from hl.ledger.recording import highest_round

        lineage = lineage or self.require_lineage()
        return highest_round(self, lineage) + 1

    def round(self, lineage: str, number: int) -> "RoundRecord":
        """One recorded round.

        Raises:
            RepositoryError: It is not here, or cannot be read.
        """
        from hl.ledger.rounds import read_round

        commit = self.git.ref(round_ref(lineage, number))
        if commit is None:
            raise RepositoryError(f"{lineage} has no round {number} here", hint="hl log --all")
        with self.git.batch() as batch:
            return read_round(batch, commit)

    def rounds(self, lineage: str | None = None) -> Iterator["RoundRecord"]:
        """The readable rounds, of one lineage or of all, by lineage and number."""
        from hl.ledger.rounds import read_rounds

        with self.git.batch() as batch:
            yield from read_rounds(batch, [commit for _, _, commit in self.round_refs(lineage)])

    def history(self, solver: str, rev: str = "HEAD") -> tuple[HistoryEntry, ...]:
        """Earlier edits of the chain that ends at a revision, rejected ones on it included, oldest first.

        Args:
            solver: `Measurement.solver`; rounds of others are left out.
            rev: Where the chain ends.
        """
        from hl.ledger.chain import history

        return history(self, self.resolve(rev), solver)

    def known_programs(self, solver: str, rev: str = "HEAD") -> Mapping[str, str]:
        """Program digest -> harness digest of every candidate of a revision's chain that met this solver.

        Args:
            solver: `Measurement.solver`.
            rev: Where the chain ends.
        """
        from hl.ledger.chain import known_programs

        return known_programs(self, self.resolve(rev), solver)

    # --- writing

    def commit_files(self, message: str, paths: Sequence[str]) -> str:
        """Commit files of the work tree as they are now, on the current branch.

        Args:
            message: First line and more.
            paths: Relative to the root, with `/`.

        Returns:
            The new commit, or the head if nothing differs.

        Raises:
            RepositoryError: A file cannot be read, or the branch moved meanwhile.
        """
        from hl.ledger.founding import commit_files

        with self.write_lock():
            return commit_files(self, message, paths)

    def add_measurements(self, commit: str, measurements: Sequence[Measurement]) -> None:
        """Hang measurements from a commit. Lines are only added; a measurement that is there already is not repeated.

        Raises:
            LockedError: Another hl writes for too long.
        """
        from hl.ledger.recording import add_lines

        with self.write_lock():
            add_lines(self, {self.resolve(commit): measurements})

    def record_round(self, round: Round, records: "Records") -> str | None:
        """Room 8: record a round; the branch moves last.

        Recording a round that is recorded already finishes what a kill left undone, and changes nothing else.

        Returns:
            The new head, or None if the round was rejected.

        Raises:
            RepositoryError: The branch was moved meanwhile (the round is recorded all the same), or another round has
                this number.
        """
        from hl.ledger.recording import record_round

        return record_round(self, round, records)

    def recover(self) -> str | None:
        """Finish what a killed process left undone; says what that was, or None."""
        from hl.ledger.recording import recover

        return recover(self)

    def unfinished(self) -> bool:
        """Whether `recover` has something to look at."""
        return any((self.folder / "unfinished").glob("*.json"))

    # --- other clones

    def push(self, remote: str = "origin", *, records: "Records | None" = None) -> "Transfer":
        """Carry notes, rounds and the current branch to a remote; with `records`, bulk records too.

        Raises:
            RepositoryError: The remote cannot be reached, or holds a branch that ours does not contain.
        """
        from hl.ledger.transport import push

        return push(self, remote, records)

    def fetch(self, remote: str = "origin", *, records: "Records | None" = None) -> "Transfer":
        """Bring notes and rounds (and remote-tracking branches) from a remote; with `records`, bulk records too.

        Raises:
            RepositoryError: The remote cannot be reached.
        """
        from hl.ledger.transport import fetch

        return fetch(self, remote, records)

    def fsck(self, files: Sequence[str], entry: str, records: "Records | None" = None) -> Iterator["Problem"]:
        """Everything that does not add up."""
        from hl.ledger.fsck import check

        return check(self, files, entry, records)

    def stamped(self, measurements: Sequence[Measurement], time: str) -> tuple[Measurement, ...]:
        """The measurements with a time, where they have none."""
        return tuple(m if m.time else replace(m, time=time) for m in measurements)
