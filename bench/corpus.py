"""What a large corpus costs: generated passages, indexed and searched in a process of its own, to see its peak.

Passages are drawn from a vocabulary with Zipf's frequencies, as long as Wikipedia's abstracts; queries are a few words
of a passage each, and a query counts as answered when that passage comes back.
"""

import json
import os
import random
import resource
import sys
import time
from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path

from bench.lines import Line

QUERIES = 500
WORDS, LENGTH = 200_000, 70
"""Vocabulary, and words a passage on average."""


def write_corpus(path: Path, passages: int, seed: int = 0) -> None:
    """A corpus with so many passages."""
    rng = random.Random(seed)
    vocabulary = [_word(rng) for _ in range(WORDS)]
    weights = list(accumulate(1 / (rank + 3) for rank in range(WORDS)))
    with path.open("w", encoding="utf-8") as file:
        for number in range(passages):
            text = " ".join(
                rng.choices(vocabulary, cum_weights=weights, k=rng.randrange(LENGTH // 2, LENGTH * 3 // 2))
            )
            file.write(json.dumps({"title": f"{rng.choice(vocabulary)} {number}", "text": text}) + "\n")


def _word(rng: random.Random) -> str:
    return "".join(rng.choice("bdfgklmnprstvz") + rng.choice("aeiou") for _ in range(rng.randrange(2, 5)))


def measure(path: Path) -> dict[str, float]:
    """Index a corpus (in `$HL_CACHE_DIR`), open it again and search it: seconds, bytes and queries a second."""
    from hl.tasks.retrieval import open_corpus, words

    before = _peak_mb()
    started, cpu = time.perf_counter(), time.process_time()
    corpus = open_corpus(path)
    indexed_cpu_s = time.process_time() - cpu
    indexed_s = time.perf_counter() - started
    built = _peak_mb()
    started = time.perf_counter()
    corpus = open_corpus(path)
    opened_s = time.perf_counter() - started
    size = sum(p.stat().st_size for p in corpus.folder.iterdir())
    rng = random.Random(1)
    lines = path.read_text(encoding="utf-8").splitlines()
    asked = [json.loads(lines[rng.randrange(len(lines))]) for _ in range(QUERIES)]
    queries = [(row["title"], " ".join(rng.sample(words(row["text"]), 6))) for row in asked]
    started = time.perf_counter()
    hits = sum(any(title == found for found, _ in corpus.find(query, 5)) for title, query in queries)
    took = time.perf_counter() - started
    return {
        "passages": corpus.passages,
        "corpus_mb": path.stat().st_size / 2**20,
        "indexed_s": indexed_s,
        "indexed_cpu_s": indexed_cpu_s,
        "opened_s": opened_s,
        "disk_mb": size / 2**20,
        "peak_mb": built - before,
        "queries": QUERIES / took,
        "hits": hits / QUERIES,
    }


def lines(found: dict[str, float]) -> Iterator[Line]:
    """The measurement as printed."""
    count = f"{int(found['passages']):,} passages"
    yield Line(f"index {count}", found["indexed_s"], f"{found['indexed_s']:.1f} s")
    yield Line(f"index {count}, processor time", found["indexed_cpu_s"], f"{found['indexed_cpu_s']:.1f} s")
    yield Line(f"open the index of {count}", found["opened_s"], f"{found['opened_s']:.2f} s")
    yield Line(
        f"index on disk ({found['corpus_mb']:.0f} MiB of text)",
        found["disk_mb"],
        f"{found['disk_mb']:.0f} MiB",
    )
    yield Line("peak memory of indexing, above the start", found["peak_mb"], f"{found['peak_mb']:.0f} MiB")
    yield Line("queries a second, one thread, 5 passages", found["queries"], f"{found['queries']:.0f}/s")
    yield Line("passages found again by six of their words", found["hits"], f"{100 * found['hits']:.0f} %")


def _peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    os.environ["HL_CACHE_DIR"] = str(folder)
    sys.stdout.write(json.dumps(measure(folder / "corpus.jsonl")) + "\n")
