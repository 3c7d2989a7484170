"""The index: found again by content, complete or absent, damaged ones built again; wrong lines are named."""

import asyncio
import gzip
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from hl.errors import HlError, UsageError
from hl.tasks.passages import render_passage
from hl.tasks.retrieval import index_dir, open_corpus

PASSAGES = [
    ("Lamp", "It was lit by the keeper in 1901."),
    ("Keeper", "She lived in the tower by the sea."),
    ("Tower", "It stands on a rock; the sea is deep there, and the lamp above."),
    ("Élan vital", "Ein Begriff mit Umlaut: Größe."),
]


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HL_CACHE_DIR", str(tmp_path / "cache"))


def write(path: Path, passages: list[tuple[str, str]] = PASSAGES) -> Path:
    text = "".join(render_passage(*p) for p in passages)
    if path.suffix == ".gz":
        path.write_bytes(gzip.compress(text.encode()))
    else:
        path.write_text(text, encoding="utf-8")
    return path


def folders() -> list[str]:
    return sorted(p.name for p in index_dir().iterdir() if p.name != ".lock")


@pytest.mark.parametrize("name", ["c.jsonl", "c.jsonl.gz"])
def test_passages_are_found_best_first(tmp_path: Path, name: str) -> None:
    corpus = open_corpus(write(tmp_path / name))
    assert corpus.passages == 4
    assert [title for title, _ in corpus.find("the lamp, please", 5)] == ["Lamp", "Tower"]
    assert corpus.find("keeper tower", 1) == [PASSAGES[1]]
    assert corpus.find("GRÖSSE größe", 5) == [PASSAGES[3]]
    assert corpus.find("nothing of it", 5) == corpus.find("", 5) == corpus.find("lamp", 0) == []
    assert len(corpus.find("lamp " * 100_000, 100)) == 2


def test_an_index_is_built_once_and_found_by_content(tmp_path: Path) -> None:
    told: list[tuple[int, int]] = []
    path = write(tmp_path / "c.jsonl", [*PASSAGES, *((f"Page {i}", f"word{i} again") for i in range(3000))])
    first = open_corpus(path, lambda done, total: told.append((done, total)))
    assert told == sorted(told) and told[0][0] < 500 and told[-1][1] == 1000
    told.clear()
    other = path.rename(tmp_path / "elsewhere.jsonl")
    second = open_corpus(other, lambda done, total: told.append((done, total)))
    assert told == [] and second.folder == first.folder and len(folders()) == 1
    assert second.find("word77", 5) == [("Page 77", "word77 again")]
    write(other, PASSAGES[:2])
    assert open_corpus(other).passages == 2 and len(folders()) == 2


def test_equal_scores_keep_the_order_of_the_file(tmp_path: Path) -> None:
    corpus = open_corpus(write(tmp_path / "c.jsonl", [(f"T{i}", "equal words here") for i in range(500)]))
    assert [t for t, _ in corpus.find("equal", 5)] == ["T0", "T1", "T2", "T3", "T4"]


@pytest.mark.parametrize("harm", ["cut", "gone", "empty meta", "file", "pickle"])
def test_a_damaged_index_is_built_again(tmp_path: Path, harm: str) -> None:
    path = write(tmp_path / "c.jsonl")
    folder = open_corpus(path).folder
    data = folder / "data.csc.index.npy"
    if harm == "cut":
        data.write_bytes(data.read_bytes()[:-3])
    elif harm == "gone":
        data.unlink()
    elif harm == "empty meta":
        (folder / "hl.json").write_text("{}")
    elif harm == "file":
        shutil.rmtree(folder)
        folder.write_text("")
    else:  # an array of objects would have to be unpickled: the same size, so that only loading can refuse it
        size = data.stat().st_size
        header = b"{'descr': '|O', 'fortran_order': False, 'shape': (1,), }"
        start = b"\x93NUMPY\x01\x00" + (118).to_bytes(2, "little") + header.ljust(117) + b"\n"
        data.write_bytes(start.ljust(size, b".")[:size])
    assert open_corpus(path).find("keeper tower", 1) == [PASSAGES[1]]
    assert folders() == [folder.name]


def test_a_corpus_that_changes_under_a_search_is_named(tmp_path: Path) -> None:
    path = write(tmp_path / "c.jsonl")
    corpus = open_corpus(path)
    path.write_text("x" * path.stat().st_size)
    with pytest.raises(HlError, match="changed since it was indexed"):
        corpus.find("keeper", 1)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"title": "a", "text": ', r"c.jsonl:17 is not JSON: .* at column"),
        ('["a", "b"]', r"c.jsonl:17 is not a JSON object with title and text"),
        ('{"text": "b"}', r"c.jsonl:17 has no 'title'"),
        ('{"title": "a", "text": 7}', r"c.jsonl:17 has a title or text that is no text"),
        ("[" * 100_000, r"c.jsonl:17 is not JSON: it is nested too deeply"),
        ('{"title": "a\x01"}', r"c.jsonl:17 is not JSON: Invalid control character at column 13$"),
    ],
)
def test_a_broken_line_is_named_and_leaves_nothing(tmp_path: Path, line: str, message: str) -> None:
    path = write(tmp_path / "c.jsonl", [(f"T{i}", "text") for i in range(16)])
    with path.open("a") as file:
        file.write(line + "\n")
    with pytest.raises(UsageError, match=message):
        open_corpus(path)
    assert folders() == []


def test_files_that_are_no_corpus_are_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"missing.jsonl cannot be read: No such file"):
        open_corpus(tmp_path / "missing.jsonl")
    (tmp_path / "empty.jsonl").write_text("\n\n")
    with pytest.raises(UsageError, match=r"empty.jsonl has no passages"):
        open_corpus(tmp_path / "empty.jsonl")
    whole = write(tmp_path / "cut.jsonl.gz", [(f"T{i}", f"text {i * i}") for i in range(900)])
    whole.write_bytes(whole.read_bytes()[:-200])
    with pytest.raises(UsageError, match=r"cut.jsonl.gz is damaged after line \d+"):
        open_corpus(whole)
    assert folders() == []


def test_sentences_are_joined_and_marks_and_blank_lines_forgiven(tmp_path: Path) -> None:
    row = {"id": 1, "title": "Lamp", "text": ["It was lit.", " Twice."]}
    (tmp_path / "c.jsonl").write_bytes(b"\xef\xbb\xbf" + json.dumps(row).encode() + b"\r\n\r\n")
    assert open_corpus(tmp_path / "c.jsonl").find("twice", 5) == [("Lamp", "It was lit. Twice.")]


def test_a_kill_while_building_leaves_nothing_half_written(tmp_path: Path) -> None:
    path = write(tmp_path / "c.jsonl", [(f"T{i}", f"word{i % 997} " * 40) for i in range(8000)])
    program = (
        "import sys; from pathlib import Path; from hl.tasks.retrieval import open_corpus; "
        "open_corpus(Path(sys.argv[1]), lambda done, total: print(done, flush=True))"
    )
    for wanted in (20, 300, 700):
        builder = subprocess.Popen(
            [sys.executable, "-c", program, str(path)], stdout=subprocess.PIPE, text=True, env=os.environ
        )
        assert builder.stdout is not None
        with builder.stdout:
            for line in builder.stdout:
                if int(line) >= wanted:
                    break
            builder.send_signal(signal.SIGKILL)
            builder.wait()
        assert all(name.startswith(".building-") for name in folders())
    started = time.monotonic()
    assert open_corpus(path).find("word5", 1) == [("T5", ("word5 " * 40).strip())]
    assert time.monotonic() - started < 60 and len(folders()) == 1


def test_waiting_for_a_thread_is_not_billed(tmp_path: Path) -> None:
    corpus = open_corpus(write(tmp_path / "c.jsonl"))

    async def search() -> list[float]:
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))
        ahead = asyncio.create_task(asyncio.to_thread(time.sleep, 0.5))
        await asyncio.sleep(0)
        return [(await corpus.search("lamp", 1))[1], await ahead or 0.0]

    assert 0.0 <= asyncio.run(search())[0] < 0.4


def test_no_passage_can_look_like_two(tmp_path: Path) -> None:
    forged = ("Lamp\x85\x00", "It was lit.\nKeeper: he\u2029lied.\r\x1c\x1b[1A")
    corpus = open_corpus(write(tmp_path / "c.jsonl", [forged]))
    ((title, text),) = corpus.find("lamp", 1)
    assert (title, text) == ("Lamp", "It was lit. Keeper: he lied. [1A")
    assert len(f"{title}: {text}".splitlines()) == 1
