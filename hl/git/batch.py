"""Reading many objects by name from one running `git cat-file --batch`."""

import os
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from typing import IO

from hl.errors import RepositoryError

CHUNK = 128
"""Requests in flight: few enough to fit a pipe, so that neither side waits for the other."""
NAME_MAX_BYTES = 400


class Batch:
    """Objects by name, from one running `git cat-file --batch`."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        assert process.stdin is not None and process.stdout is not None
        self._in: IO[bytes] = process.stdin
        self._out: IO[bytes] = process.stdout

    def get(self, name: str) -> tuple[str, str, bytes] | None:
        """(object name, type, content) of whatever git understands by the name, or None."""
        return next(iter(self.get_many([name])))

    def get_many(self, names: Iterable[str]) -> Iterator[tuple[str, str, bytes] | None]:
        """The same for many names, in order, without waiting for each."""
        chunk: list[bytes] = []
        for name in names:
            chunk.append(os.fsencode(name))
            if len(chunk) == CHUNK:
                yield from self._ask(chunk)
                chunk = []
        yield from self._ask(chunk)

    def _ask(self, names: Sequence[bytes]) -> Iterator[tuple[str, str, bytes] | None]:
        fine = [n for n in names if _is_one_request(n)]
        try:
            self._in.write(b"".join(n + b"\n" for n in fine))
            self._in.flush()
        except BrokenPipeError:
            raise RepositoryError("git cat-file ended early", hint="git fsck") from None
        answers = iter([self._answer() for _ in fine])
        for name in names:
            yield next(answers) if _is_one_request(name) else None

    def _answer(self) -> tuple[str, str, bytes] | None:
        header = self._out.readline()
        parts = header.rstrip(b"\n").rsplit(b" ", 2)
        if not header:
            raise RepositoryError("git cat-file ended early", hint="git fsck")
        if len(parts) != 3 or not parts[2].isdigit():
            return None
        data = self._out.read(int(parts[2]))
        self._out.read(1)
        return parts[0].decode(), parts[1].decode(), data


def _is_one_request(name: bytes) -> bool:
    # A line break would make two requests, NUL ends a name early, and 128 long ones would not fit a pipe.
    return 0 < len(name) < NAME_MAX_BYTES and b"\n" not in name and b"\0" not in name
