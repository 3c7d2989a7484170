"""The cache keeps replies over a kill, and treats what it cannot read as a miss."""

import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from hl.cache import Cache, cache_key
from hl.errors import RepositoryError
from hl.types import ChatReply

REPLY = ChatReply("hello", "stop", 3, 2, 0.5)


def test_a_reply_is_there_again_in_another_process(tmp_path: Path) -> None:
    Cache(tmp_path / "c.sqlite").put_reply("k", REPLY)
    assert Cache(tmp_path / "c.sqlite").reply("k") == REPLY
    assert Cache(tmp_path / "c.sqlite").reply("other") is None


def test_a_reply_survives_kill_9_right_after_put(tmp_path: Path) -> None:
    program = (
        "import os, signal, sys; from pathlib import Path; from hl.cache import Cache; from hl.types import ChatReply\n"
        "Cache(Path(sys.argv[1])).put_reply('k', ChatReply('hello', 'stop', 3, 2, 0.5))\n"
        "os.kill(os.getpid(), signal.SIGKILL)"
    )
    done = subprocess.run([sys.executable, "-c", program, str(tmp_path / "c.sqlite")], check=False)
    assert done.returncode == -signal.SIGKILL
    assert Cache(tmp_path / "c.sqlite").reply("k") == REPLY


def test_a_value_of_another_version_is_a_miss(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "c.sqlite")
    cache.put_reply("k", REPLY)
    with sqlite3.connect(tmp_path / "c.sqlite") as db:
        db.execute("UPDATE replies SET value = ?", (b"garbage",))
    db.close()
    assert cache.reply("k") is None


def test_a_foreign_file_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "c.sqlite").write_text("not a database, but long enough to be read as one" * 30)
    with pytest.raises(RepositoryError, match=r"c\.sqlite"):
        Cache(tmp_path / "c.sqlite")


def test_keys_do_not_depend_on_the_order_of_parts() -> None:
    assert cache_key({"a": 1, "b": [1, 2]}) == cache_key({"b": [1, 2], "a": 1})
    assert cache_key({"a": 1}) != cache_key({"a": 2})
