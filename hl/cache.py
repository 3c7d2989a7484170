"""The attempt cache: replies and attempts that need not be paid for twice. SQLite (WAL) under the git common directory.

It promises that a reply is on disk before anyone acts on it, so that after a `kill -9` no recorded call is made again.
It is a cache: deleting the file costs calls, never scores or history. It does not decide what may be reused; the keys
that callers build do.
"""

import hashlib
import json
import sqlite3
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hl.codec import decode, encode
from hl.errors import RepositoryError
from hl.types import Attempt, ChatReply, Cost

SCHEMA = 1


def cache_key(parts: Mapping[str, Any]) -> str:
    """Hex sha256 of the parts as canonical JSON."""
    text = json.dumps(parts, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()


class Cache:
    """Content-keyed store of chat replies and attempts.

    Args:
        path: The database file, or None for one in memory.

    Raises:
        RepositoryError: The file is not a database of ours.
    """

    def __init__(self, path: Path | None) -> None:
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
        try:
            self._db = sqlite3.connect(str(path) if path else ":memory:", isolation_level=None, timeout=30)
            self._db.execute("PRAGMA journal_mode=WAL")
            # NORMAL survives the death of the process, which is what resuming needs; only a power cut can lose replies.
            self._db.execute("PRAGMA synchronous=NORMAL")
            self._db.execute(
                "CREATE TABLE IF NOT EXISTS replies (key TEXT PRIMARY KEY, value BLOB) WITHOUT ROWID"
            )
            self._db.execute(
                "CREATE TABLE IF NOT EXISTS attempts (key TEXT PRIMARY KEY, value BLOB) WITHOUT ROWID"
            )
            self._db.execute(f"PRAGMA user_version={SCHEMA}")
        except sqlite3.DatabaseError as error:
            raise RepositoryError(
                f"The attempt cache {path} cannot be used: {error}.", hint=f"rm {path}"
            ) from error

    def reply(self, key: str) -> ChatReply | None:
        """The stored reply, or None."""
        return _load(ChatReply, self._get("replies", key))

    def put_reply(self, key: str, reply: ChatReply) -> None:
        """Store a reply; on disk when this returns."""
        self._put("replies", key, _dump(reply))

    def paid(self) -> Cost:
        """What the replies in here have cost, each counted once; seconds are not known."""
        total = Cost()
        for (blob,) in self._db.execute("SELECT value FROM replies"):
            reply: ChatReply | None = _load(ChatReply, blob)
            if reply is not None:
                total = total + Cost(1, reply.prompt_tokens, reply.completion_tokens, reply.cost)
        return total

    def attempt(self, key: str) -> Attempt | None:
        """The stored attempt, or None."""
        return _load(Attempt, self._get("attempts", key))

    def put_attempt(self, key: str, attempt: Attempt) -> None:
        """Store an attempt; on disk when this returns."""
        self._put("attempts", key, _dump(attempt))

    def close(self) -> None:
        """Close the database; idempotent."""
        self._db.close()

    def _get(self, table: str, key: str) -> bytes | None:
        row = self._db.execute(f"SELECT value FROM {table} WHERE key = ?", (key,)).fetchone()
        return row[0] if row else None

    def _put(self, table: str, key: str, value: bytes) -> None:
        self._db.execute(f"INSERT OR REPLACE INTO {table} VALUES (?, ?)", (key, value))


def _dump(value: Any) -> bytes:
    return zlib.compress(json.dumps(encode(value), separators=(",", ":")).encode(), 1)


def _load(kind: Any, blob: bytes | None) -> Any:
    if blob is None:
        return None
    try:
        return decode(kind, json.loads(zlib.decompress(blob)))
    except (ValueError, zlib.error):
        return None  # written by another version: a miss, not an error
