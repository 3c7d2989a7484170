"""BM25 over a corpus of passages: indexed once into the user's cache, memory-mapped, found again by content.

A corpus is a file of JSON lines `{"title": ..., "text": ...}`, perhaps gzipped. Promises: texts stay in the file and
are read one passage at a time; an index is complete or absent, whatever killed its building; one that is damaged is
built again; nothing is unpickled. The search knows no task, and equal queries give equal passages in equal order.
"""

import asyncio
import fcntl
import json
import os
import re
import shutil
import tempfile
import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from hl.errors import HlError, UsageError
from hl.tasks.base import Progress
from hl.tasks.digests import file_digest
from hl.tasks.passages import TEXTS, Stored, read_passages

LAYOUT = "1"
"""Changes whenever what lies in an index's folder, or how texts become words, changes."""
TITLE_WEIGHT = 2
"""How often the words of a title count (ours)."""
QUERY_WORDS = 256
"""Words of a query that are looked up; later ones are left out (ours)."""
META = "hl.json"
SPANS = "spans.npy"

_WORD = re.compile(r"\w\w+|\d")


def words(text: str) -> list[str]:
    """A text as it is indexed and searched: lower case, no single letters, no English stop words."""
    left_out = _stop_words()
    return [word for word in _WORD.findall(text.lower()) if word not in left_out]


@cache
def _stop_words() -> frozenset[str]:
    from bm25s.stopwords import STOPWORDS_EN_PLUS

    return frozenset(STOPWORDS_EN_PLUS)


def index_dir() -> Path:
    """Where indexes are kept: `$HL_CACHE_DIR/indexes`, or the user's cache directory."""
    if override := os.environ.get("HL_CACHE_DIR"):
        return Path(override) / "indexes"
    import platformdirs

    return Path(platformdirs.user_cache_dir("hl")) / "indexes"


def corpus_digest(path: Path) -> str:
    """Hex sha256 of a corpus; it is read for that once, and again where it changed.

    Raises:
        UsageError: It cannot be read.
    """
    return file_digest(path, index_dir().with_name("digests"))


def open_corpus(path: Path, on_progress: Progress | None = None) -> "Corpus":
    """The corpus of a file, indexed if it is not yet.

    Args:
        path: JSON lines, or the same gzipped.
        on_progress: Told how far the building is, in thousandths.

    Raises:
        UsageError: The file cannot be read, or a line of it is no passage.
        HlError: The index cannot be written.
    """
    import bm25s

    digest = corpus_digest(path)
    folder = index_dir() / f"{digest[:32]}-bm25s-{bm25s.__version__}-{LAYOUT}"
    if (found := _load(folder, path, digest)) is not None:
        return found
    try:
        with _lock(folder.parent):
            if (found := _load(folder, path, digest)) is not None:
                return found
            _sweep(folder.parent)
            building = Path(tempfile.mkdtemp(dir=folder.parent, prefix=".building-"))
            try:
                _build(building, path, digest, on_progress)
                if folder.exists():
                    folder.rename(building.with_name(building.name + "-damaged"))
                building.rename(folder)
            finally:
                _sweep(folder.parent)
    except OSError as error:
        raise HlError(
            f"the index of {path} cannot be written to {folder}: {_why(error)}",
            hint="make room there, or name another place: export HL_CACHE_DIR=DIR",
        ) from None
    found = _load(folder, path, digest)
    if found is None:
        raise HlError(f"the index {folder} cannot be read back", hint=f"rm -r {folder}")
    return found


@dataclass(frozen=True, slots=True)
class Corpus:
    """An indexed corpus."""

    digest: str
    """Hex sha256 of the file it was made from."""
    folder: Path
    """The index."""
    passages: int
    """How many there are."""
    _retriever: Any
    _spans: Any
    _texts: Stored

    def find(self, query: str, k: int) -> list[tuple[str, str]]:
        """Title and text of the k best passages, best first; fewer where fewer share a word with the query.

        Raises:
            HlError: The index or the corpus was damaged meanwhile.
        """
        import numpy

        wanted = words(query)[:QUERY_WORDS]
        try:
            tokens = self._retriever.get_tokens_ids(wanted)
            if not tokens or k < 1:
                return []
            scores = self._retriever.get_scores_from_ids(tokens)
            least = numpy.partition(scores, -k)[-k] if k < len(scores) else 0.0
            near = numpy.flatnonzero((scores >= least) & (scores > 0.0))
            # By score, then by place in the file: ties do not depend on how numpy selects.
            best = near[numpy.lexsort((near, -scores[near]))][:k]
            return [self._texts.passage(*map(int, self._spans[i])) for i in best]
        except (IndexError, ValueError, KeyError, TypeError, OSError) as error:
            raise HlError(
                f"the index {self.folder} does not fit its corpus: {_why(error)}",
                hint=f"rm -r {self.folder}",
            ) from None

    async def search(self, query: str, k: int) -> tuple[Sequence[tuple[str, str]], float]:
        """`find` beside the event loop, and the processor seconds it took: waiting for a thread is nobody's time."""
        return await asyncio.to_thread(self._timed, query, k)

    def _timed(self, query: str, k: int) -> tuple[Sequence[tuple[str, str]], float]:
        started = time.thread_time()
        found = self.find(query, k)
        return found, time.thread_time() - started


# --- building ------------------------------------------------------------------------------------------------------


def _build(folder: Path, path: Path, digest: str, on_progress: Progress | None) -> None:
    """Index a file into a folder: words to a file of numbers, then the library's index over that file."""
    import bm25s
    import numpy

    spans, lengths, vocabulary = _tokenise(folder, path, on_progress)
    numbers = folder / "words.bin"
    documents = _Documents(numbers, lengths, on_progress)
    retriever = bm25s.BM25(method="lucene", csc_backend="scipy")
    retriever.scores = retriever.build_index_from_ids(range(len(vocabulary)), documents, show_progress=False)  # pyright: ignore[reportArgumentType]
    retriever.vocab_dict = vocabulary
    retriever.nonoccurrence_array = None
    numbers.unlink()
    retriever.save(folder, show_progress=False)
    numpy.save(folder / SPANS, spans, allow_pickle=False)
    sizes = {p.name: p.stat().st_size for p in sorted(folder.iterdir())}
    for name in sizes:
        _flush(folder / name)
    text = json.dumps({"corpus": digest, "passages": len(lengths), "sizes": sizes})
    (folder / META).write_text(text, encoding="utf-8")
    _flush(folder / META)


def _tokenise(folder: Path, path: Path, on_progress: Progress | None) -> tuple[Any, Any, dict[str, int]]:
    """Write every passage's words as numbers; returns spans, words a passage, and the vocabulary."""
    from array import array

    import numpy

    spans, lengths, vocabulary = array("q"), array("i"), dict[str, int]()
    size = max(1, path.stat().st_size)
    with (folder / "words.bin").open("wb") as out:
        for count, found in enumerate(read_passages(path, folder / TEXTS), start=1):
            tokens = words(found.title) * TITLE_WEIGHT + words(found.text)
            array("i", [vocabulary.setdefault(t, len(vocabulary)) for t in tokens]).tofile(out)
            spans.extend((found.start, found.length))
            lengths.append(len(tokens))
            if on_progress is not None and count % 1000 == 0:
                on_progress(min(250, 250 * found.read // size), 1000)
    if not lengths:
        raise UsageError(f"the corpus {path} has no passages")
    if not vocabulary:
        raise UsageError(f"the corpus {path} has no words to search for")
    return (
        numpy.frombuffer(spans, numpy.int64).reshape(-1, 2),
        numpy.frombuffer(lengths, numpy.int32),
        vocabulary,
    )


class _Documents:
    """The passages as lists of numbers, from a file: what the library's index is built from, in three passes."""

    BLOCK = 8192

    def __init__(self, path: Path, lengths: Any, on_progress: Progress | None) -> None:
        self._path = path
        self._lengths = lengths
        self._on_progress = on_progress
        self._passes = 0

    def __len__(self) -> int:
        return len(self._lengths)

    def __iter__(self) -> Iterator[list[int]]:
        import numpy

        self._passes += 1
        with self._path.open("rb") as file:
            for start in range(0, len(self), self.BLOCK):
                lengths = self._lengths[start : start + self.BLOCK].tolist()
                numbers = numpy.fromfile(file, numpy.int32, sum(lengths)).tolist()
                at = 0
                for length in lengths:
                    yield numbers[at : at + length]
                    at += length
                if self._on_progress is not None:
                    done = min(1000, 250 * self._passes + 250 * start // len(self))
                    self._on_progress(done, 1000)


# --- on disk -------------------------------------------------------------------------------------------------------


def _load(folder: Path, path: Path, digest: str) -> Corpus | None:
    """The index in a folder; None if there is none, or it is not whole."""
    import bm25s
    import numpy

    try:
        meta = json.loads((folder / META).read_text(encoding="utf-8"))
        if meta["corpus"] != digest or any(
            (folder / name).stat().st_size != size for name, size in meta["sizes"].items()
        ):
            return None
        retriever = bm25s.BM25.load(folder, mmap=True, allow_pickle=False, show_progress=False)
        spans = numpy.load(folder / SPANS, mmap_mode="r", allow_pickle=False)
        if retriever.scores["num_docs"] != meta["passages"] or spans.shape != (meta["passages"], 2):
            return None
        unpacked = folder / TEXTS
        texts = Stored(unpacked if unpacked.exists() else path)
        return Corpus(digest, folder, meta["passages"], retriever, spans, texts)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, EOFError):
        return None


@contextmanager
def _lock(folder: Path) -> Generator[None, None, None]:
    """One builder at a time; the lock ends with its process."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _sweep(folder: Path) -> None:
    """Remove what killed builders left. Only under the lock."""
    for left in folder.glob(".building-*"):
        if left.is_dir():
            shutil.rmtree(left, ignore_errors=True)
        else:
            left.unlink(missing_ok=True)  # a file lay where the index belongs


def _flush(path: Path) -> None:
    with path.open("rb") as file:
        os.fsync(file.fileno())


def _why(error: Exception) -> str:
    if isinstance(error, OSError):
        return error.strerror or type(error).__name__
    return str(error) or type(error).__name__
