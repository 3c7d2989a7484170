"""What every verb gets from the global options, and the few things that all of them build alike."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, cast

import typer

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
