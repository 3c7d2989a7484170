"""Where text goes: data to stdout or a pager, messages to stderr; colour only where someone can see it."""

import json
import os
import subprocess
import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import IO, Any

SCHEMA = 1
"""Version of the JSON lines: grows when a field changes its meaning or goes away, not when one is added."""

CODES: Mapping[str, str] = {
    "bold": "1",
    "dim": "2",
    "red": "31",
    "green": "32",
    "yellow": "33",
    "blue": "34",
    "cyan": "36",
}


@dataclass(frozen=True, slots=True)
class Output:
    """A place for data: stdout, or a pager's input."""

    stream: IO[str]
    colour: bool
    """Whether ANSI colours are written."""

    def line(self, text: str = "") -> None:
        """Write one line."""
        self.stream.write(text + "\n")

    def paint(self, text: str, *styles: str) -> str:
        """The text in colour, or as it is where there is none."""
        if not self.colour or not styles:
            return text
        return f"\x1b[{';'.join(CODES[s] for s in styles)}m{text}\x1b[0m"

    def diff(self, text: str) -> None:
        """Write a unified diff, coloured by its first characters."""
        for line in text.splitlines():
            if line.startswith(("+++", "---", "diff ", "index ")):
                self.line(self.paint(line, "bold"))
            elif line.startswith("@@"):
                self.line(self.paint(line, "cyan"))
            elif line.startswith("+"):
                self.line(self.paint(line, "green"))
            elif line.startswith("-"):
                self.line(self.paint(line, "red"))
            else:
                self.line(line)


def wants_colour(stream: IO[str]) -> bool:
    """Whether a stream gets colours: a terminal without NO_COLOR or TERM=dumb; FORCE_COLOR overrules."""
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return stream.isatty() and os.environ.get("TERM", "") != "dumb"


@contextmanager
def open_output(pager: str | None = None) -> Generator[Output]:
    """Where a read command writes.

    Args:
        pager: A shell command, as git's own configuration words it; used only if stdout is a terminal. None,
            the empty text and `cat` mean no pager.
    """
    colour = wants_colour(sys.stdout)
    if pager in (None, "", "cat") or not sys.stdout.isatty():
        yield Output(sys.stdout, colour)
        return
    environment = {"LESS": "FRX", "LV": "-c", **os.environ}
    try:
        # The command comes from the user's own environment or git configuration; git too gives it to a shell.
        process = subprocess.Popen(
            pager,
            shell=True,
            stdin=subprocess.PIPE,
            env=environment,
            encoding="utf-8",
            errors="backslashreplace",
        )
    except OSError:
        yield Output(sys.stdout, colour)
        return
    assert process.stdin is not None
    try:
        yield Output(process.stdin, colour)
        process.stdin.flush()
    except BrokenPipeError:
        pass  # the reader has seen enough
    finally:
        with suppress(BrokenPipeError):
            process.stdin.close()
        _wait(process)


def _wait(process: "subprocess.Popen[str]") -> None:
    """Ctrl-C belongs to the pager while it runs."""
    while True:
        try:
            process.wait()
            return
        except KeyboardInterrupt:
            continue


def write_json(kind: str, record: Mapping[str, Any], stream: IO[str] | None = None) -> None:
    """Write one JSON line on stdout: `{"schema": 1, "kind": KIND, ...}`."""
    line = json.dumps({"schema": SCHEMA, "kind": kind, **record}, ensure_ascii=True, allow_nan=False)
    (stream or sys.stdout).write(line + "\n")


def say(text: str) -> None:
    """A message for the user, on stderr."""
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


def warn(text: str) -> None:
    """A warning, on stderr."""
    word = "\x1b[33mwarning:\x1b[0m" if wants_colour(sys.stderr) else "warning:"
    say(f"{word} {text}")
