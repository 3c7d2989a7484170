"""The `hl` program: global options, verbs loaded on demand, and the one place where an error becomes an
exit code.

Promises a quick start: `hl --help` and `hl --version` import neither typer nor any verb, and a verb imports
only its own module. Does no work itself.
"""

import sys
from typing import TYPE_CHECKING, Any

from hl.commands import GROUPS, VERBS
from hl.errors import HlError

if TYPE_CHECKING:
    from collections.abc import Sequence

USAGE = "hl [-C DIR] [-c KEY=VALUE]... [--no-pager] COMMAND [ARGS]..."
OPTIONS = (
    ("-C DIR", "Run as if started in DIR"),
    ("-c KEY=VALUE", "Set a configuration key for this call; may be repeated"),
    ("--no-pager", "Never start a pager"),
    ("--version", "Print the version"),
    ("-h, --help", "Print this page, or a command's with `hl COMMAND --help`"),
)
EXIT_USAGE = 2
EXIT_BUG = 70
EXIT_INTERRUPTED = 130
EXIT_PIPE = 141


def render_help() -> str:
    """The page of `hl --help`."""
    lines = [
        f"Usage: {USAGE}",
        "",
        "git for agent harnesses: revise a program around a frozen language model,",
        "one scored commit at a time.",
        "",
        "Examples:",
        "  hl init my-agent --task reasoning-gym:chain_sum",
        "  cd my-agent && hl revise --rounds 10",
        "  hl log",
        "",
        "Options:",
        *(f"  {name:<14}{text}" for name, text in OPTIONS),
        "",
        "Commands:",
    ]
    for heading, verbs in GROUPS:
        lines += [f" {heading}", *(f"  {verb:<14}{text}" for verb, text in verbs)]
    return "\n".join(lines) + "\n"


def main(arguments: "Sequence[str] | None" = None) -> None:
    """Entry point of the console script: run, then leave with the exit code."""
    _mend_streams()
    sys.exit(run(list(sys.argv[1:] if arguments is None else arguments)))


def _mend_streams() -> None:
    """A closed stream becomes one that goes nowhere, and what a terminal's encoding lacks is written as an escape."""
    for name in ("stdout", "stderr"):
        stream: Any = getattr(sys, name)
        if stream is None:
            import os

            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: PTH123, SIM115
        else:
            stream.reconfigure(errors="backslashreplace")


def run(arguments: list[str]) -> int:
    """Run one command line and return its exit code; every error ends here."""
    try:
        code = _dispatch(arguments)
        sys.stdout.flush()
        return code
    except HlError as error:
        return _fail(error.message, error.hint, error.exit_code)
    except KeyboardInterrupt:
        return _fail("interrupted.", None, EXIT_INTERRUPTED)
    except BrokenPipeError:
        _silence_stdout()
        return EXIT_PIPE
    except Exception as error:
        if isinstance(error, OSError) and error.errno in _surroundings():
            where = f"{error.filename}: " if error.filename else ""
            return _fail(f"{where}{error.strerror}.", None, HlError.exit_code)
        if type(error).__module__.startswith("typer."):
            return _usage(error)
        return _bug(error)


def _dispatch(arguments: list[str]) -> int:
    if arguments in ([], ["--help"], ["-h"]):
        sys.stdout.write(render_help())
        return 0 if arguments else EXIT_USAGE
    if arguments == ["--version"]:
        from hl import __version__

        sys.stdout.write(f"hl {__version__}\n")
        return 0
    import os

    try:
        os.getcwd()  # noqa: PTH109
    except FileNotFoundError:
        raise HlError("the current directory does not exist any more.", hint="cd DIRECTORY") from None
    if "log" in arguments[:4]:
        from hl.commands.quick import run_log

        if (code := run_log(arguments)) is not None:
            return code
    import typer

    command = _build()
    try:
        with command.make_context("hl", arguments) as context:
            command.invoke(context)
    except typer.Exit as stop:
        return stop.exit_code
    except typer.Abort:
        return EXIT_INTERRUPTED
    return 0


def _build() -> Any:
    """The typer group, whose verbs are imported when asked for."""
    import os

    import typer
    from typer.core import TyperGroup
    from typer.main import get_command

    from hl.commands.context import Invocation

    class Verbs(TyperGroup):
        """Looks verbs up by name in `hl.commands`."""

        def list_commands(self, ctx: Any) -> list[str]:
            return list(VERBS)

        def get_command(self, ctx: Any, cmd_name: str) -> Any:
            if cmd_name not in VERBS:
                return None
            from importlib import import_module

            command = get_command(import_module(f"hl.commands.{cmd_name}").app)
            command.name = cmd_name
            return command

        def resolve_command(self, ctx: Any, args: list[str]) -> Any:
            if args and not args[0].startswith("-") and args[0] not in VERBS:
                raise _unknown_verb(args[0])
            return super().resolve_command(ctx, args)

        def format_help(self, ctx: Any, formatter: Any) -> None:
            formatter.write(render_help())

    app = typer.Typer(
        cls=Verbs,
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        invoke_without_command=True,
        context_settings={"help_option_names": ["-h", "--help"]},
    )

    def options(
        context: typer.Context,
        directory: str = typer.Option("", "-C", metavar="DIR"),
        override: list[str] = typer.Option([], "-c", metavar="KEY=VALUE"),  # noqa: B008
        no_pager: bool = typer.Option(False, "--no-pager"),
        version: bool = typer.Option(False, "--version"),
    ) -> None:
        if directory:
            try:
                os.chdir(directory)
            except OSError as error:
                raise HlError(f"-C {directory}: {error.strerror}.") from None
        context.obj = Invocation(overrides=tuple(override), pager=not no_pager)
        if version:
            raise typer.Exit(_dispatch(["--version"]))
        if context.invoked_subcommand is None:
            raise typer.Exit(_dispatch([]))

    app.callback()(options)
    return get_command(app)


def _surroundings() -> set[int]:
    """Errors of the machine rather than ours: no space, no right, too many open files."""
    import errno

    return {
        errno.ENOSPC,
        errno.EDQUOT,
        errno.EROFS,
        errno.EACCES,
        errno.EPERM,
        errno.EMFILE,
        errno.ENFILE,
        errno.EIO,
    }


def _unknown_verb(verb: str) -> HlError:
    import difflib

    from hl.errors import UsageError

    near = difflib.get_close_matches(verb, VERBS, n=1)
    return UsageError(
        f"{verb!r} is not a command" + (f"; did you mean {near[0]!r}?" if near else "."), hint="hl --help"
    )


def _fail(message: str, hint: str | None, code: int) -> int:
    try:
        sys.stdout.flush()
    except OSError:
        _silence_stdout()
    text = f"error: {message}\n" + (f"hint: {hint}\n" if hint else "")
    try:
        sys.stderr.write(text)
        sys.stderr.flush()
    except OSError:
        pass
    return code


def _usage(error: Exception) -> int:
    """A complaint of typer's own parser."""
    context = getattr(error, "ctx", None)
    format_message = getattr(error, "format_message", None)
    message = format_message() if callable(format_message) else str(error)
    path = getattr(context, "command_path", "hl")
    return _fail(str(message), f"{path} --help", getattr(error, "exit_code", EXIT_USAGE))


def _bug(error: Exception) -> int:
    """Save the traceback where the user can find it; the terminal gets the path only."""
    import os
    import time
    import traceback
    from pathlib import Path

    text = "".join(traceback.format_exception(error))
    try:
        from platformdirs import user_state_path

        base = os.environ.get("HL_STATE_DIR")
        directory = (Path(base) if base else user_state_path("hl")) / "crashes"
        directory.mkdir(parents=True, exist_ok=True)
        path = directory / f"{time.strftime('%Y%m%dT%H%M%S')}-{os.getpid()}.txt"
        path.write_text(f"hl {' '.join(sys.argv[1:])}\n\n{text}", encoding="utf-8", errors="backslashreplace")
    except OSError:
        sys.stderr.write(text)
        return _fail(f"this is a bug in hl: {type(error).__name__}; the traceback is above.", None, EXIT_BUG)
    return _fail(
        f"this is a bug in hl: {type(error).__name__}: {str(error)[:200]}",
        f"the traceback is in {path}",
        EXIT_BUG,
    )


def _silence_stdout() -> None:
    """Send what is buffered to nowhere, or the interpreter complains about the closed pipe on its way out."""
    import os
    from contextlib import suppress

    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    main()
