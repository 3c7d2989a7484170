"""The published files of the multi-hop data sets, read one record at a time: a record is question, answers, passages.

HotpotQA and 2WikiMultihopQA publish a JSON array, MuSiQue and the aliases of 2Wiki JSON lines; either form may be
gzipped, and either is read without holding the file. What is wrong is said in one sentence with file, line and record.
`read_hub` gives the same records from a Hugging Face data set (extra `hl[qa]`); no code of a data set is run.
"""

import gzip
import io
import json
import re
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, cast

from hl.errors import HlError, MissingExtraError, UsageError
from hl.tasks.faults import json_fault
from hl.tasks.passages import one_line

CHUNK = 1 << 20
"""Characters read at a time (ours)."""
MAX_RECORD_CHARS = 16 << 20
"""A longer record is no record (ours)."""
MAX_QUESTION_CHARS = 100_000
_UNDECODED = re.compile("[\udc80-\udcff]")
"""What is left of bytes that are no UTF-8."""


@dataclass(frozen=True, slots=True)
class Record:
    """One question of a data set."""

    question: str
    answers: tuple[str, ...]
    """The answer, then its aliases."""
    passages: tuple[tuple[str, str], ...]
    """(title, text) of the passages that come with it: supporting ones and distractors."""
    answer_id: str = ""
    """2Wiki's id of the answer, under which its aliases are published; empty where there is none."""
    answerable: bool = True
    """MuSiQue's full version marks questions that its passages do not answer."""


def read_file(path: Path) -> Iterator[Record]:
    """Every record of a file.

    Raises:
        UsageError: The file cannot be read, or a record is not one; file and line are named.
    """
    for where, row in _read(path):
        yield parse_record(where, row)


def read_aliases(path: Path) -> dict[str, tuple[str, ...]]:
    """Answer id -> other accepted answers, of 2Wiki's `id_aliases.json`: aliases and demonyms, as in its own script.

    Raises:
        UsageError: The file cannot be read, or a line is wrong; file and line are named.
    """
    found: dict[str, tuple[str, ...]] = {}
    for where, row in _read(path):
        fields = cast(Mapping[str, Any], row) if isinstance(row, Mapping) else {}
        key = fields.get("Q_id")
        if not isinstance(key, str) or not key:
            raise UsageError(f"{where} has no 'Q_id'")
        names = [
            *_list(where, "aliases", fields.get("aliases")),
            *_list(where, "demonyms", fields.get("demonyms", [])),
        ]
        if not all(isinstance(name, str) for name in names):
            raise UsageError(f"{where}: 'aliases' and 'demonyms' must be lists of texts")
        found[key] = tuple(dict.fromkeys(plain for name in names if (plain := one_line(name))))
    return found


def _read(path: Path) -> Iterator[tuple[str, Any]]:
    """(where, JSON value) of every record of a file."""
    try:
        with path.open("rb") as raw:
            packed = raw.read(2) == b"\x1f\x8b"
            raw.seek(0)
            stream = cast(IO[bytes], gzip.GzipFile(fileobj=raw)) if packed else cast(IO[bytes], raw)
            # Bytes that are no UTF-8 become lone surrogates, so that their line can be named.
            text = io.TextIOWrapper(stream, encoding="utf-8-sig", errors="surrogateescape", newline="\n")
            yield from _rows(path, text)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise UsageError(f"{path} is damaged: {error}") from None
    except (OSError, ValueError) as error:
        raise UsageError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}") from None


def read_hub(name: str, subset: str, split: str) -> Iterator[Record]:
    """Every record of a split on the Hugging Face hub, streamed.

    Raises:
        MissingExtraError: The `datasets` library is not installed.
        HlError: The hub cannot be reached, or has no such data set.
    """
    try:
        import datasets  # pyright: ignore[reportMissingImports]
    except ImportError:
        raise MissingExtraError(
            f"reading {name} from the Hugging Face hub needs the datasets library",
            hint='pip install "harness-learning[qa]", or name a file: ?path=FILE',
        ) from None
    try:
        rows: Any = datasets.load_dataset(name, subset or None, split=split, streaming=True)
        for number, row in enumerate(rows, start=1):
            yield parse_record(f"{name}, {split}, row {number}", row)
    except (OSError, ValueError, RuntimeError) as error:
        reason = next(iter(str(error).splitlines()), type(error).__name__)
        raise HlError(
            f"{name} ({split}) cannot be read from the hub: {reason[:300]}",
            hint="download the file yourself and name it: ?path=FILE",
        ) from None


def parse_record(where: str, row: Any) -> Record:
    """A record from its JSON value.

    Raises:
        UsageError: One sentence with `where`.
    """
    if not isinstance(row, Mapping):
        raise UsageError(f"{where} is not a JSON object with question and answer")
    fields = cast(Mapping[str, Any], row)
    for key in ("question", "answer"):
        if key not in fields:
            more = "; the published test files have none" if key == "answer" else ""
            raise UsageError(f"{where} has no {key!r}{more}")
    question, answer = fields["question"], fields["answer"]
    if not isinstance(question, str) or not one_line(question) or len(question) > MAX_QUESTION_CHARS:
        raise UsageError(f"{where}: 'question' must be a text that is not empty")
    aliases = fields.get("answer_aliases") or []
    answers = [answer, *aliases] if isinstance(aliases, list) else []
    if not answers or not all(isinstance(a, str) and one_line(a) for a in answers):
        raise UsageError(f"{where}: 'answer' and 'answer_aliases' must be texts that are not empty")
    passages = _paragraphs(where, fields) if "paragraphs" in fields else _context(where, fields)
    answer_id = fields.get("answer_id")
    return Record(
        one_line(question),
        tuple(dict.fromkeys(one_line(str(a)) for a in answers)),
        tuple(passages),
        answer_id if isinstance(answer_id, str) else "",
        fields.get("answerable") is not False,
    )


def _paragraphs(where: str, fields: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """MuSiQue: `[{"title": ..., "paragraph_text": ...}]`."""
    for item in _list(where, "paragraphs", fields["paragraphs"]):
        title = item.get("title") if isinstance(item, Mapping) else None
        text = item.get("paragraph_text") if isinstance(item, Mapping) else None
        if not isinstance(title, str) or not isinstance(text, str):
            raise UsageError(f"{where}: a paragraph has no 'title' or no 'paragraph_text'")
        yield one_line(title), one_line(text)


def _context(where: str, fields: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """HotpotQA and 2Wiki: `[[title, [sentence, ...]]]`; on the hub `{"title": [...], "sentences": [[...]]}`."""
    context = fields.get("context", [])
    if isinstance(context, Mapping):
        listed = cast(Mapping[str, Any], context)
        titles = _list(where, "context", listed.get("title"))
        texts = _list(where, "context", listed.get("sentences", listed.get("content")))
        if len(titles) != len(texts):
            raise UsageError(
                f"{where}: 'context' has {len(titles)} titles and {len(texts)} lists of sentences"
            )
        context = [list(pair) for pair in zip(titles, texts, strict=True)]
    for item in _list(where, "context", context):
        match item:
            case [str(title), [*sentences]] if all(isinstance(s, str) for s in sentences):
                # HotpotQA's sentences bring their spaces along, 2Wiki's do not.
                parts = cast(list[str], sentences)
                text = "".join(p if i == 0 or p[:1].isspace() else " " + p for i, p in enumerate(parts))
                yield one_line(title), one_line(text)
            case _:
                raise UsageError(f"{where}: 'context' must hold pairs of a title and its sentences")


def _list(where: str, key: str, value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise UsageError(f"{where}: {key!r} must be a list")
    return cast(list[Any], value)


# --- JSON, a piece at a time ---------------------------------------------------------------------------------------


def _rows(path: Path, text: IO[str]) -> Iterator[tuple[str, Any]]:
    """(where, value) of every element of an array, or of every line."""
    window = _Window(path, text)
    if window.is_array():
        yield from _elements(window)
        return
    for number, line in enumerate(window.lines(), start=1):
        if line.strip():
            if _UNDECODED.search(line):
                raise UsageError(f"{path}:{number} is not UTF-8 text")
            try:
                value = json.loads(line)
            except (ValueError, RecursionError) as error:
                raise UsageError(f"{path}:{number} is not JSON: {json_fault(error)}") from None
            yield f"{path}:{number}", value


def _elements(window: "_Window") -> Iterator[tuple[str, Any]]:
    window.skip(" \t\r\n")
    window.take("[")
    window.skip(" \t\r\n")
    first = True
    while window.peek() != "]":
        if not first:
            window.take(",")
            window.skip(" \t\r\n")
        first = False
        yield window.value()
        window.skip(" \t\r\n")
    window.take("]")
    window.skip(" \t\r\n")
    window.end()


class _Window:
    """The part of a text that is being parsed."""

    def __init__(self, path: Path, text: IO[str]) -> None:
        self._path = path
        self._text = text
        self._buffer = ""
        self._at = 0
        self._line = 1
        self._record = 0
        self._decoder = json.JSONDecoder()

    def is_array(self) -> bool:
        """Whether the text starts with a bracket."""
        while not self._buffer.strip() and self._more():
            pass
        return self._buffer.lstrip()[:1] == "["

    def lines(self) -> Iterator[str]:
        """The text line by line, from its start; nothing else of the window may be used with it."""
        head = self._buffer + self._text.readline(MAX_RECORD_CHARS)
        yield from io.StringIO(head, newline="\n")
        while line := self._text.readline(MAX_RECORD_CHARS):
            yield line

    def peek(self) -> str:
        """The next character; empty at the end."""
        return self._buffer[self._at] if self._at < len(self._buffer) or self._more() else ""

    def skip(self, characters: str) -> None:
        """Go past these."""
        while (c := self.peek()) and c in characters:
            self._at += 1

    def take(self, character: str) -> None:
        """Go past this one.

        Raises:
            UsageError: Something else stands there.
        """
        if self.peek() != character:
            found = repr(self.peek()) if self.peek() else "the end of the file"
            raise UsageError(f"{self._where(self._at)} has {found} where {character!r} was expected")
        self._at += 1

    def end(self) -> None:
        """Nothing may be left.

        Raises:
            UsageError: Something is.
        """
        if found := self.peek():
            raise UsageError(f"{self._where(self._at)} has {found!r} after the end of the array")

    def value(self) -> tuple[str, Any]:
        """The next value, and where it stands.

        Raises:
            UsageError: It is not JSON.
        """
        self._record += 1
        while True:
            try:
                value, end = self._decoder.raw_decode(self._buffer, self._at)
            except json.JSONDecodeError as error:
                where = self._where(error.pos)
                # What is cut at the window's end looks wrong too: read on before believing it.
                if len(self._buffer) - self._at < MAX_RECORD_CHARS and self._more():
                    continue
                # The window's columns are not the file's.
                reason = error.msg.removesuffix(" at").removesuffix(" starting")
                raise UsageError(f"{where} is not JSON: {reason}") from None
            except (ValueError, RecursionError) as error:
                raise UsageError(f"{self._where(self._at)} is not JSON: {json_fault(error)}") from None
            where = self._where(self._at)
            self._at = end
            return where, value

    def _more(self) -> bool:
        """Read on; what was parsed is forgotten."""
        piece = self._text.read(max(CHUNK, len(self._buffer) - self._at))
        self._line += self._buffer.count("\n", 0, self._at)
        kept = self._buffer[self._at :]
        self._buffer, self._at = kept + piece, 0
        if found := _UNDECODED.search(piece):
            line = self._line + self._buffer.count("\n", 0, len(kept) + found.start())
            raise UsageError(f"{self._path}:{line} is not UTF-8 text")
        return bool(piece)

    def _where(self, at: int) -> str:
        line = self._line + self._buffer.count("\n", 0, min(at, len(self._buffer)))
        return f"{self._path}:{line} (record {self._record})" if self._record else f"{self._path}:{line}"
