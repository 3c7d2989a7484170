"""What every verb gets from the global options, and the few things that all of them build alike."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

if TYPE_CHECKING:
    from hl.ledger import Ledger

JsonOption = Annotated[bool, typer.Option("--json", help="Print versioned JSON lines instead of text.")]
"""The `--json` of a read command."""

UnsafeOption = Annotated[
    bool,
    typer.Option("--unsafe-no-sandbox", help="Run untrusted code unconfined; every score then says so."),
]
"""The `--unsafe-no-sandbox` of the verbs that run harnesses: the command line only, never a file."""


@dataclass(frozen=True, slots=True)
class Invocation:
    """The global options, parsed. `-C` has already been obeyed: the process stands in that directory."""

    overrides: tuple[str, ...] = ()
    """`key=value` texts of `-c`, in order."""
    pager: bool = True
    """False after `--no-pager`."""


def new_app(help: str | None = None) -> typer.Typer:
    """An empty app for one verb: plain help, `-h`, no completion options."""
    return typer.Typer(
        help=help,
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        no_args_is_help=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )


def invocation(context: typer.Context) -> Invocation:
    """The global options of this call."""
    return cast(Invocation, context.obj)


def find_root(start: Path | None = None) -> Path | None:
    """The nearest directory upwards that holds `.git` or `hl.toml`, without asking git; None if none does."""
    here = (start or Path.cwd()).resolve()
    for directory in (here, *here.parents):
        if (directory / ".git").exists() or (directory / "hl.toml").is_file():
            return directory
    return None


def find_pager(wanted: bool) -> str | None:
    """The pager that git would use: GIT_PAGER, core.pager, PAGER, less; None without a terminal or if not wanted."""
    import os
    import sys

    if not wanted or not sys.stdout.isatty():
        return None
    if "GIT_PAGER" in os.environ:
        return os.environ["GIT_PAGER"]
    from hl.git import Git

    status, out, _ = Git(Path.cwd()).run("config", "--get", "core.pager")
    if status == 0:
        return out.decode("utf-8", "surrogateescape").strip()
    return os.environ.get("PAGER", "less")


@dataclass(frozen=True, slots=True)
class Reader:
    """What the reading verbs work on: the ledger here, and which files are the harness."""

    ledger: "Ledger"
    files: tuple[str, ...]
    entry: str


def open_reader(invocation: Invocation) -> Reader:
    """The repository that holds the current directory; reading needs no trust.

    Raises:
        RepositoryError: There is none, or it has no hl.toml.
        UsageError: Its hl.toml is wrong.
    """
    from hl.errors import RepositoryError
    from hl.ledger import Ledger

    ledger = Ledger.open(Path.cwd())
    if not (ledger.root / "hl.toml").is_file():
        raise RepositoryError(
            f"{ledger.root} is a git repository without an hl.toml.", hint="hl init . --task TASK"
        )
    files, entry = harness_files(ledger.root, invocation.overrides)
    return Reader(ledger, files, entry)


def harness_files(root: Path, overrides: tuple[str, ...] = ()) -> tuple[tuple[str, ...], str]:
    """(files, entry) as the configuration lists them; without loading it where hl.toml has no such section."""
    import tomllib

    if not overrides:
        try:
            data = tomllib.loads((root / "hl.toml").read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError):
            data = {"harness": {}}  # what is wrong with it is said by the real reader
        if "harness" not in data:
            return ("harness.py",), "harness.py"
    from hl.config import load_config

    harness = load_config(root, overrides, require_trust=False).harness
    return harness.files, harness.entry
