"""What every verb gets from the global options, and the few things that all of them build alike."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from hl.commands.place import find_pager, find_root, harness_files

if TYPE_CHECKING:
    from hl.ledger import Ledger

__all__ = [
    "Invocation",
    "JsonOption",
    "Reader",
    "UnsafeOption",
    "find_pager",
    "find_root",
    "invocation",
    "new_app",
    "open_reader",
]

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
