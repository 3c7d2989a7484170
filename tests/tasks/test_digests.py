"""A file is hashed once, and again whenever it may have changed."""

import hashlib
import os
import time
from pathlib import Path

import pytest

from hl.errors import UsageError
from hl.tasks import digests
from hl.tasks.digests import file_digest


class Counted:
    """Counts how often a file is really read."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.times = 0
        inner = hashlib.file_digest

        def count(file: object, name: str) -> object:
            self.times += 1
            return inner(file, name)  # pyright: ignore[reportArgumentType]

        monkeypatch.setattr(hashlib, "file_digest", count)


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> Counted:
    return Counted(monkeypatch)


def settle(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if some time had passed since the files changed."""
    monkeypatch.setattr(digests, "SETTLED_NS", -(10**12))


def sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def test_an_unchanged_file_is_read_once(
    tmp_path: Path, read: Counted, monkeypatch: pytest.MonkeyPatch
) -> None:
    settle(monkeypatch)
    path, known = tmp_path / "wiki.jsonl", tmp_path / "known"
    path.write_bytes(b"one")
    assert {file_digest(path, known) for _ in range(3)} == {sha(b"one")} and read.times == 1
    other = tmp_path / "other.jsonl"
    other.write_bytes(b"one")
    assert file_digest(other, known) == sha(b"one") and read.times == 2


def test_a_change_is_noticed_though_size_and_time_are_put_back(
    tmp_path: Path, read: Counted, monkeypatch: pytest.MonkeyPatch
) -> None:
    settle(monkeypatch)
    path, known = tmp_path / "wiki.jsonl", tmp_path / "known"
    path.write_bytes(b"one")
    assert file_digest(path, known) == sha(b"one")
    before = path.stat()
    time.sleep(0.02)  # a tick of the file system's clock
    path.write_bytes(b"two")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert file_digest(path, known) == sha(b"two")
    replacement = tmp_path / "new"
    replacement.write_bytes(b"six")
    replacement.replace(path)
    assert file_digest(path, known) == sha(b"six") and read.times == 3


def test_a_file_that_has_just_changed_is_not_remembered(tmp_path: Path, read: Counted) -> None:
    path = tmp_path / "wiki.jsonl"
    path.write_bytes(b"one")
    assert file_digest(path, tmp_path / "known") == file_digest(path, tmp_path / "known") == sha(b"one")
    assert read.times == 2 and not (tmp_path / "known").exists()


@pytest.mark.parametrize("note", [b"", b"[]", b"{}", b'{"state": [1], "sha256": "x"}', b"\xff"])
def test_a_damaged_memory_is_not_believed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, note: bytes
) -> None:
    settle(monkeypatch)
    path, known = tmp_path / "wiki.jsonl", tmp_path / "known"
    path.write_bytes(b"one")
    file_digest(path, known)
    (kept,) = known.iterdir()
    kept.write_bytes(note)
    assert file_digest(path, known) == sha(b"one")


def test_a_memory_that_cannot_be_kept_costs_only_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settle(monkeypatch)
    (tmp_path / "known").write_text("a file")
    (tmp_path / "wiki.jsonl").write_bytes(b"one")
    assert file_digest(tmp_path / "wiki.jsonl", tmp_path / "known") == sha(b"one")
    with pytest.raises(UsageError, match=r"missing.jsonl cannot be read: No such file"):
        file_digest(tmp_path / "missing.jsonl", tmp_path / "known")
