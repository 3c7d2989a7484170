"""Blobs, trees and commits, built in memory and stored together as one pack."""

import hashlib
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from hl.git.batch import Batch


@dataclass(frozen=True, slots=True)
class Identity:
    """Who commits."""

    author: str
    """`Name <mail>`."""
    committer: str
    seconds: int
    """Unix time of the commit: SOURCE_DATE_EPOCH if set."""
    zone: str
    """Such as `+0000`."""
    fallback: bool
    """Whether git knows no user here and `hl <hl@localhost>` stands in."""


@dataclass(frozen=True, slots=True)
class TreeEntry:
    """One line of a tree object."""

    mode: str
    """`100644`, `100755`, `120000`, `40000` or `160000`."""
    name: bytes
    oid: str

    @property
    def is_tree(self) -> bool:
        """Whether it is a directory."""
        return self.mode == "40000"


def parse_tree(data: bytes, oid_bytes: int) -> dict[bytes, TreeEntry]:
    """The entries of a tree object, by name."""
    entries: dict[bytes, TreeEntry] = {}
    at = 0
    while at < len(data):
        space = data.index(b" ", at)
        end = data.index(b"\0", space)
        name = data[space + 1 : end]
        entries[name] = TreeEntry(data[at:space].decode(), name, data[end + 1 : end + 1 + oid_bytes].hex())
        at = end + 1 + oid_bytes
    return entries


class Objects:
    """Objects to be stored together. Their names are known as soon as they are added.

    Args:
        algorithm: The repository's object format, `sha1` or `sha256`.
    """

    def __init__(self, algorithm: str) -> None:
        self._algorithm = algorithm
        self._objects: dict[str, tuple[int, bytes]] = {}

    @property
    def count(self) -> int:
        """How many objects there are."""
        return len(self._objects)

    def blob(self, data: bytes) -> str:
        """Add file content."""
        return self._add(3, b"blob", data)

    def tree(self, entries: Iterable[TreeEntry]) -> str:
        """Add a directory."""
        ordered = sorted(entries, key=lambda e: e.name + b"/" if e.is_tree else e.name)
        data = b"".join(e.mode.encode() + b" " + e.name + b"\0" + bytes.fromhex(e.oid) for e in ordered)
        return self._add(2, b"tree", data)

    def commit(self, tree: str, parents: Sequence[str], who: Identity, message: str) -> str:
        """Add a commit. NUL and lone surrogates, which git cannot store, become `?`."""
        stamp = f"{who.seconds} {who.zone}"
        head = [f"tree {tree}", *(f"parent {p}" for p in parents)]
        head += [f"author {who.author} {stamp}", f"committer {who.committer} {stamp}"]
        text = "\n".join(head) + "\n\n" + message.replace("\0", "?").rstrip("\n") + "\n"
        return self._add(1, b"commit", text.encode("utf-8", "replace"))

    def graft(self, batch: Batch, tree: str | None, changes: Mapping[bytes, str]) -> str:
        """Add the tree that differs from `tree` by the blobs at some paths; files keep their modes."""
        found = batch.get(tree) if tree else None
        size = hashlib.new(self._algorithm).digest_size
        entries = parse_tree(found[2], size) if found else {}
        below: dict[bytes, dict[bytes, str]] = {}
        for path, oid in changes.items():
            name, slash, rest = path.partition(b"/")
            if slash:
                below.setdefault(name, {})[rest] = oid
                continue
            old = entries.get(name)
            mode = old.mode if old and old.mode in ("100644", "100755") else "100644"
            entries[name] = TreeEntry(mode, name, oid)
        for name, inner in below.items():
            old = entries.get(name)
            oid = self.graft(batch, old.oid if old and old.is_tree else None, inner)
            entries[name] = TreeEntry("40000", name, oid)
        return self.tree(entries.values())

    def pack(self) -> bytes:
        """All objects as one git pack (version 2, no deltas)."""
        parts = [b"PACK", (2).to_bytes(4, "big"), len(self._objects).to_bytes(4, "big")]
        for kind, data in self._objects.values():
            size = len(data)
            byte, size = (kind << 4) | (size & 15), size >> 4
            while size:
                parts.append(bytes([byte | 0x80]))
                byte, size = size & 0x7F, size >> 7
            parts += [bytes([byte]), zlib.compress(data)]
        body = b"".join(parts)
        return body + hashlib.new(self._algorithm, body).digest()

    def _add(self, kind: int, name: bytes, data: bytes) -> str:
        oid = hashlib.new(self._algorithm, name + b" " + str(len(data)).encode() + b"\0" + data).hexdigest()
        self._objects[oid] = (kind, data)
        return oid
