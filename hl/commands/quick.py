"""The plain `hl log` without typer and without the nouns, for a start in a fraction of the time.

Takes over only what it understands completely; everything else, every error included, is left to the full command
(`hl.commands.log`), which prints the same lines.
"""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from hl.ledger.log import LogEntry


def run_log(arguments: list[str]) -> int | None:
    """Print the log and return the exit code; None if the full command is needed, and then nothing was printed."""
    rest = list(arguments)
    directory, paged = Path.cwd(), True
    while rest and rest[0] in ("-C", "--no-pager"):
        if rest.pop(0) == "--no-pager":
            paged = False
        elif rest:
            directory = directory / rest.pop(0)
    if not rest or rest.pop(0) != "log":
        return None
    revs: list[str] = []
    limit: int | None = None
    oneline = False
    while rest:
        word = rest.pop(0)
        if word == "--oneline":
            oneline = True
        elif word == "-n" and rest and rest[0].isdecimal():
            limit = int(rest.pop(0))
        elif word.startswith("-") or not word:
            return None
        else:
            revs.append(word)
    return _log(directory, revs or ["HEAD"], limit, oneline=oneline, paged=paged)


def _log(directory: Path, revs: list[str], limit: int | None, *, oneline: bool, paged: bool) -> int | None:
    from hl.commands.place import find_pager, find_root, harness_files
    from hl.errors import HlError
    from hl.git import Git, GitFailed
    from hl.ledger.names import parse_candidate
    from hl.ledger.quick import quick_log
    from hl.ui.history import LogWriter
    from hl.ui.output import open_output

    root = find_root(directory) if directory.is_dir() else None
    if root is None or not (root / ".git").exists() or not (root / "hl.toml").is_file():
        return None
    if any(parse_candidate(rev) for rev in revs):
        return None
    try:
        files, entry = harness_files(root)
        entries = quick_log(Git(directory), revs, files, entry, limit)
        first = next(entries, None)
    except (GitFailed, HlError):
        return None
    with open_output(find_pager(paged, directory)) as out:
        lines = LogWriter(out, oneline=oneline)
        while first is not None:
            commit, quick = first
            lines.write(_full(directory, commit) if quick is None else cast("LogEntry", quick))
            first = next(entries, None)
        lines.end()
    sys.stdout.flush()
    return 0


def _full(directory: Path, commit: str) -> "LogEntry":
    """One commit by the full reader."""
    from hl.commands.place import harness_files
    from hl.ledger import Ledger

    ledger = Ledger.open(directory)
    files, entry = harness_files(ledger.root)
    return ledger.entry(commit, files=files, entry=entry)
