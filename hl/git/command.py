"""Running git: reads straight from the binary, writes through GitPython's facade; references and identity."""

import os
import subprocess
import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from hl.errors import RepositoryError
from hl.git.batch import Batch
from hl.git.objects import Identity, Objects

OPTIONS = (
    "--no-optional-locks",
    "--literal-pathspecs",
    "-c",
    "core.quotePath=false",
    "-c",
    "color.ui=false",
    # A repository that came from elsewhere names no program that runs here: `Git._switched_off` does the rest.
    "-c",
    "core.fsmonitor=false",
    "-c",
    "core.hooksPath=/dev/null",
    "-c",
    "log.showSignature=false",
)
TOUCHING = frozenset({"status", "hash-object", "gc", "fetch", "push"})
"""Commands that run filters, or hooks that the configuration names; those that write do too."""
EMPTY = "HL_EMPTY"
"""A variable that holds nothing: as a program it is none, as a switch it is off."""
REMOVED = frozenset(
    {
        "GIT_DIR",
        "GIT_WORK_TREE",
        "GIT_INDEX_FILE",
        "GIT_COMMON_DIR",
        "GIT_OBJECT_DIRECTORY",
        "GIT_ALTERNATE_OBJECT_DIRECTORIES",
        "GIT_NAMESPACE",
        "GIT_PREFIX",
        "GIT_NOTES_REF",
        "GIT_NOTES_DISPLAY_REF",
        "GIT_LITERAL_PATHSPECS",
        "GIT_GLOB_PATHSPECS",
        "GIT_ICASE_PATHSPECS",
        "GIT_NOGLOB_PATHSPECS",
    }
)
"""Variables that a hook sets and that would send our commands to another repository or index."""
LOCK_PATIENCE_S = 2.0
"""How long a held reference lock is waited for (ours)."""

_MOVED = ("but expected", "reference already exists", "unable to resolve reference")
"""What git says when a reference is not where a compare-and-swap wants it: elsewhere, there, or gone."""


class GitFailed(RepositoryError):
    """A git command ended with an error.

    Args:
        args: The command.
        status: Its exit status.
        stderr: What it said.
    """

    def __init__(self, args: Sequence[str], status: int, stderr: str) -> None:
        lines = [line.strip() for line in stderr.splitlines() if line.strip()]
        said = next(
            (s for s in lines if s.startswith(("fatal:", "error:"))),
            lines[0] if lines else f"exit status {status}",
        )
        advice = next((s for s in lines if s.startswith("git config --global --add safe.directory")), None)
        super().__init__(
            f"git {args[0]} failed: {said.removeprefix('fatal: ').removeprefix('error: ')}", hint=advice
        )
        self.status = status
        self.stderr = stderr


class RefMovedError(RepositoryError):
    """A reference is not where it was expected: somebody else moved it."""


@dataclass(frozen=True, slots=True)
class RefUpdate:
    """One move of a reference."""

    ref: str
    new: str
    old: str | None
    """The value it must have; None if it must not exist."""


def environment() -> dict[str, str]:
    """The environment of every git command."""
    env = {k: v for k, v in os.environ.items() if k not in REMOVED}
    env |= {"LC_ALL": "C", "LANGUAGE": "C", "GIT_TERMINAL_PROMPT": "0", EMPTY: ""}
    return env


class Git:
    """Git in one directory.

    Args:
        directory: Where commands run.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._places: tuple[str, str] | None = None
        self._off: tuple[str, ...] | None = None

    # --- reading

    def run(self, *args: str, stdin: bytes = b"", apart: bool = True) -> tuple[int, bytes, str]:
        """Run a command; (exit status, stdout, stderr).

        Args:
            args: The command.
            stdin: Its standard input.
            apart: Keep Ctrl-C from it, so that an interruption is ours to handle and not git's failure. False for
                what may ask at the terminal: ssh wants a passphrase.

        Raises:
            RepositoryError: git is not installed, or the directory is gone.
        """
        off = () if TOUCHING.isdisjoint(args[:3]) else self._switched_off()
        try:
            done = subprocess.run(
                ["git", *OPTIONS, *off, *args],
                cwd=self.directory,
                env=environment(),
                input=stdin,
                capture_output=True,
                check=False,
                process_group=0 if apart else None,
            )
        except FileNotFoundError as error:
            raise _not_found(error, self.directory) from None
        return done.returncode, done.stdout, done.stderr.decode("utf-8", "replace")

    def read(self, *args: str, stdin: bytes = b"") -> bytes:
        """The standard output of a command that must succeed.

        Raises:
            GitFailed: It failed.
        """
        status, out, err = self.run(*args, stdin=stdin)
        if status:
            raise GitFailed(args, status, err)
        return out

    def line(self, *args: str) -> str:
        """The output of a command that prints one line.

        Raises:
            GitFailed: It failed.
        """
        return os.fsdecode(self.read(*args)).removesuffix("\n")

    def fields(self, *args: str) -> Iterator[bytes]:
        """The NUL-terminated fields that a command prints, as they come.

        Raises:
            GitFailed: It failed; after the fields that it printed.
        """
        with _spawn(self.directory, args) as (process, errors):
            assert process.stdout is not None
            tail = b""
            while chunk := process.stdout.read1(1 << 16):  # pyright: ignore[reportAttributeAccessIssue]
                head, *rest = (tail + chunk).split(b"\0")
                if not rest:
                    tail = head
                    continue
                yield head
                yield from rest[:-1]
                tail = rest[-1]
            if tail:
                yield tail
            if status := process.wait():
                errors.seek(0)
                raise GitFailed(args, status, errors.read().decode("utf-8", "replace"))

    @contextmanager
    def batch(self) -> Generator[Batch]:
        """A `git cat-file --batch`, closed at the end."""
        with _spawn(self.directory, ("cat-file", "--batch"), feed=True) as (process, _):
            yield Batch(process)

    # --- writing

    def write(self, *args: str, stdin: bytes = b"") -> bytes:
        """Run a command that changes the repository, through GitPython's facade.

        Args:
            args: The command.
            stdin: Its standard input.

        Raises:
            GitFailed: It failed.
        """
        try:
            from git.cmd import Git as Facade
        except ImportError as error:
            raise RepositoryError(f"git cannot be run: {error}", hint="install git") from None
        if self._places is None:
            found = self.read("rev-parse", "--path-format=absolute", "--git-dir", "--git-common-dir")
            git_dir, common = os.fsdecode(found).split("\n")[:2]
            self._places = git_dir, common
        git_dir, common = self._places
        # The facade adds variables and removes none: those that a hook sets are overridden by the true ones.
        env = {
            "GIT_TERMINAL_PROMPT": "0",
            EMPTY: "",
            "GIT_DIR": git_dir,
            "GIT_COMMON_DIR": common,
            "GIT_WORK_TREE": str(self.directory),
            "GIT_INDEX_FILE": f"{git_dir}/index",
            "GIT_OBJECT_DIRECTORY": f"{common}/objects",
            "GIT_ALTERNATE_OBJECT_DIRECTORIES": "",
        }
        with _memory(stdin) as source:
            # A session of its own: Ctrl-C must not end a write half way.
            status, out, err = Facade(str(self.directory)).execute(
                ["git", *OPTIONS, *self._switched_off(), *args],
                istream=source,
                with_extended_output=True,
                with_exceptions=False,
                stdout_as_string=False,
                strip_newline_in_stdout=False,
                env=env,
                start_new_session=True,
            )
        if status:
            raise GitFailed(args, status, err)
        return out

    def store(self, objects: Objects) -> None:
        """Put objects into the repository, in one step.

        Raises:
            GitFailed: git refused them.
        """
        if objects.count:
            self.write("unpack-objects", "-q", "--strict", stdin=objects.pack())

    def move(self, updates: Sequence[RefUpdate], *, reason: str) -> None:
        """Move references in one transaction, each from its old value.

        Args:
            updates: The moves.
            reason: For the reflog.

        Raises:
            RefMovedError: One of them is not where it was expected; none was moved.
            GitFailed: git refused.
        """
        if not updates:
            return
        lines = [b"start"]
        for u in updates:
            verb = "create" if u.old is None else "update"
            values = [u.new] if u.old is None else [u.new, u.old]
            lines.append(b"\0".join([f"{verb} {u.ref}".encode(), *(v.encode() for v in values)]))
        lines += [b"prepare", b"commit"]
        self.patiently("update-ref", "-m", reason, "--stdin", "-z", stdin=b"\0".join(lines) + b"\0")

    def patiently(self, *args: str, stdin: bytes = b"", patience_s: float = LOCK_PATIENCE_S) -> bytes:
        """A write that waits a little for a lock that somebody else holds.

        Raises:
            RefMovedError: A compare-and-swap failed.
            GitFailed: It failed otherwise, or the lock stays.
        """
        deadline = time.monotonic() + patience_s
        pause = 0.02
        while True:
            try:
                return self.write(*args, stdin=stdin)
            except GitFailed as error:
                if any(words in error.stderr for words in _MOVED):
                    raise RefMovedError(error.message) from None
                if ".lock': File exists" not in error.stderr or time.monotonic() > deadline:
                    raise
            time.sleep(pause)
            pause = min(pause * 2, 0.5)

    def _switched_off(self) -> tuple[str, ...]:
        """Options that switch off the filters and hooks that the repository's own configuration names.

        The user's own, from their global configuration, stay: large-file filters above all.
        """
        if self._off is None:
            pattern = r"^(filter|hook)\..*\.(clean|smudge|process|command)$"
            _, out, _ = self.run("config", "--show-scope", "--name-only", "-z", "--get-regexp", pattern)
            words = os.fsdecode(out).split("\0")
            off: list[str] = []
            for scope, key in zip(words[::2], words[1::2], strict=False):
                if scope in ("local", "worktree"):
                    name = key.rpartition(".")[0]
                    keys = (f"{name}.enabled",) if name.startswith("hook.") else (key, f"{name}.required")
                    # Not `-c KEY=`, which ends the key at the first `=` of a name that may hold one.
                    off += [f"--config-env={key}={EMPTY}" for key in keys]
            self._off = tuple(off)
        return self._off

    # --- small questions

    def ref(self, name: str) -> str | None:
        """The object that a full reference name holds, or None."""
        status, out, _ = self.run("rev-parse", "--verify", "--quiet", "--end-of-options", name)
        return out.decode().strip() if status == 0 else None

    def identity(self) -> Identity:
        """Who commits here, and when (SOURCE_DATE_EPOCH is honoured)."""
        fallback = False
        people: list[str] = []
        stamp, zone = str(int(time.time())), "+0000"
        for variable in ("GIT_AUTHOR_IDENT", "GIT_COMMITTER_IDENT"):
            status, out, _ = self.run("var", variable)
            parts = out.decode("utf-8", "replace").strip().rsplit(" ", 2)
            if status or len(parts) != 3:
                fallback = True
                people.append("hl <hl@localhost>")
            else:
                people.append(parts[0])
                stamp, zone = parts[1], parts[2]
        epoch = os.environ.get("SOURCE_DATE_EPOCH", "")
        if epoch.isdigit():
            stamp, zone = epoch, "+0000"
        return Identity(people[0], people[1], int(stamp), zone, fallback)


@contextmanager
def _memory(data: bytes = b"") -> Generator[BinaryIO]:
    """A file in memory: no pipe to fill up, no file to leave behind."""
    with os.fdopen(os.memfd_create("hl-git"), "w+b") as file:
        file.write(data)
        file.flush()
        file.seek(0)
        yield file


@contextmanager
def _spawn(
    directory: Path, args: Sequence[str], *, feed: bool = False
) -> Generator[tuple["subprocess.Popen[bytes]", BinaryIO]]:
    with _memory() as errors:
        try:
            process = subprocess.Popen(
                ["git", *OPTIONS, *args],
                cwd=directory,
                env=environment(),
                stdin=subprocess.PIPE if feed else subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
                process_group=0,
            )
        except FileNotFoundError as error:
            raise _not_found(error, directory) from None
        try:
            yield process, errors
        finally:
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    with suppress(OSError):
                        pipe.close()
            if process.poll() is None and not feed:
                process.terminate()
            process.wait()


def _not_found(error: FileNotFoundError, directory: Path) -> RepositoryError:
    if error.filename == "git":
        return RepositoryError("git is not installed", hint="apt install git")
    return RepositoryError(f"{directory} does not exist")
