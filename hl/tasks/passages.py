"""Passages in a file: read one after another to be indexed, and one at a time to be shown. Nothing else is kept.

A line is `{"title": ..., "text": ...}`; `text` may also be a list of sentences, as HotpotQA's abstracts have it; other
fields are ignored. Whoever wrote it, a title and a text are shown on one line each: no passage can look like two. A
gzipped file is unpacked beside its index, since its lines cannot be found again otherwise.
"""

import gzip
import json
import os
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, cast

from hl.errors import UsageError
from hl.tasks.faults import json_fault

TEXTS = "passages.jsonl"
"""Name of an unpacked corpus in its index's folder."""
MAX_LINE_BYTES = 4 * 1024 * 1024
MAX_FILE_BYTES = 256 * 1024**3
"""Of an unpacked corpus: a bomb ends here."""
MAX_TITLE_CHARS = 1000


@dataclass(frozen=True, slots=True)
class Found:
    """One passage and where it stands."""

    title: str
    text: str
    start: int
    """Byte at which its line starts, in the unpacked file."""
    length: int
    """Bytes of its line."""
    read: int
    """Bytes of the file as it is on disk that were read so far."""


@dataclass(slots=True)
class Stored:
    """A file of passages that are read by place."""

    path: Path
    _handle: int = field(init=False)

    def __post_init__(self) -> None:
        self._handle = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)

    def __del__(self) -> None:
        if hasattr(self, "_handle"):
            os.close(self._handle)

    def passage(self, start: int, length: int) -> tuple[str, str]:
        """Title and text of the line there.

        Raises:
            ValueError: The file changed since it was indexed.
        """
        line = os.pread(self._handle, length, start)
        passage = parse_passage(line)
        if isinstance(passage, str):
            raise ValueError(f"{self.path} changed since it was indexed")
        return passage


_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]+")


def one_line(text: str) -> str:
    """The text on one line that every encoder accepts: white space and control characters as single spaces, no ends."""
    plain = " ".join(_CONTROL.sub(" ", text).split())
    return plain.encode("utf-8", "replace").decode("utf-8")


def render_passage(title: str, text: str) -> str:
    """One line of a corpus."""
    return json.dumps({"title": title, "text": text}, ensure_ascii=False, separators=(",", ":")) + "\n"


def parse_passage(line: bytes) -> tuple[str, str] | str:
    """Title and text of a line, or what is wrong with it."""
    try:
        row: Any = json.loads(line.decode())
    except UnicodeDecodeError:
        return "is not UTF-8 text"
    except (ValueError, RecursionError) as error:
        return f"is not JSON: {json_fault(error)}"
    if not isinstance(row, dict):
        return "is not a JSON object with title and text"
    fields = cast(dict[str, Any], row)
    for key in ("title", "text"):
        if key not in fields:
            return f"has no {key!r}"
    title, text = fields["title"], fields["text"]
    if isinstance(text, list):
        text = (
            "".join(cast(list[str], text)) if all(isinstance(s, str) for s in cast(list[Any], text)) else None
        )
    if not isinstance(title, str) or not isinstance(text, str):
        return "has a title or text that is no text"
    if len(title) > MAX_TITLE_CHARS:
        return f"has a title of more than {MAX_TITLE_CHARS:,} characters"
    return one_line(title), one_line(text)


def read_passages(path: Path, unpacked: Path) -> Iterator[Found]:
    """Every passage of a file, in order; blank lines are left out.

    Args:
        path: JSON lines, or the same gzipped (by its first bytes).
        unpacked: Where to write the unpacked lines of a gzipped file.

    Raises:
        UsageError: The file cannot be read, or a line is no passage; file and line are named.
    """
    number = start = 0
    try:
        with path.open("rb") as raw:
            packed = raw.read(2) == b"\x1f\x8b"
            raw.seek(0)
            stream = cast(IO[bytes], gzip.GzipFile(fileobj=raw)) if packed else cast(IO[bytes], raw)
            copy = unpacked.open("wb") if packed else None
            try:
                while line := stream.readline(MAX_LINE_BYTES):
                    number += 1
                    where = f"{path}:{number}"
                    if len(line) == MAX_LINE_BYTES:
                        raise UsageError(f"{where} is longer than {MAX_LINE_BYTES // 2**20} MiB")
                    if start > MAX_FILE_BYTES:
                        raise UsageError(f"{path} holds more than {MAX_FILE_BYTES // 2**30} GiB")
                    if copy is not None:
                        copy.write(line)
                    body = line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line
                    if body.strip():
                        passage = parse_passage(body)
                        if isinstance(passage, str):
                            raise UsageError(f"{where} {passage}")
                        begin = start + len(line) - len(body)
                        yield Found(*passage, begin, len(body), raw.tell())
                    start += len(line)
            finally:
                if copy is not None:
                    copy.close()
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise UsageError(f"{path} is damaged after line {number}: {error}") from None
    except OSError as error:
        raise UsageError(f"the corpus {path} cannot be read: {error.strerror or error}") from None
