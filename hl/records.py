"""Bulk records: JSON values on disk under the address of their content.

Promises: the same value always has the same address; a record is written whole or not at all, survives power loss
once `put` returned, and is checked against its address when read. Losing the folder loses detail (transcripts,
replies, reports), never scores or history. Does not say what a record means.
"""

import hashlib
import json
import os
import re
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

from hl.errors import RepositoryError

SCHEMA = 1
MAX_BYTES = 1 << 30
"""Largest record that is unpacked, so that a hostile file cannot fill the memory."""
_ADDRESS = re.compile(r"[0-9a-f]{64}")
_SUFFIX = ".json.z"


class Records:
    """A record store.

    Args:
        directory: Where it lives; made at the first `put`.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def put(self, value: Any) -> str:
        """Store a JSON value and return its address, 64 hex digits.

        Raises:
            ValueError: The value is not JSON (NaN is not).
        """
        text = json.dumps(
            {"schema": SCHEMA, "value": value}, sort_keys=True, separators=(",", ":"), allow_nan=False
        )
        data = text.encode("ascii")
        address = hashlib.sha256(data).hexdigest()
        path = self.path(address)
        if not path.exists():
            _write(path, zlib.compress(data))
        return address

    def get(self, address: str) -> Any:
        """The value at an address.

        Raises:
            RepositoryError: It is missing here, or damaged.
        """
        data = self._read(address)
        if data is None:
            raise RepositoryError(f"record {address[:16]} is not in this clone", hint="hl fetch --records")
        return cast("dict[str, Any]", json.loads(data)).get("value")

    def find(self, address: str) -> Any:
        """The value at an address, or None if it is missing here.

        Raises:
            RepositoryError: It is damaged.
        """
        data = self._read(address)
        return None if data is None else cast("dict[str, Any]", json.loads(data)).get("value")

    def holds(self, address: str) -> bool:
        """Whether a record is here and whole.

        Raises:
            RepositoryError: It is damaged.
        """
        return self._read(address) is not None

    def _read(self, address: str) -> bytes | None:
        if not _ADDRESS.fullmatch(address):
            return None
        try:
            packed = self.path(address).read_bytes()
        except FileNotFoundError:
            return None
        data = unpack(packed, address)
        if data is None:
            raise RepositoryError(f"record {address[:16]} is damaged", hint="hl fsck")
        return data

    def addresses(self) -> Iterator[str]:
        """All addresses, sorted."""
        for folder in sorted(self.directory.glob("[0-9a-f][0-9a-f]")):
            for file in sorted(folder.glob(f"*{_SUFFIX}")):
                address = file.name.removesuffix(_SUFFIX)
                if _ADDRESS.fullmatch(address):
                    yield address

    def packed(self, address: str) -> bytes:
        """The stored bytes, to be carried elsewhere.

        Raises:
            FileNotFoundError: It is missing here.
        """
        return self.path(address).read_bytes()

    def adopt(self, address: str, packed: bytes) -> bool:
        """Store bytes that came from elsewhere, if they are what the address says; whether they were."""
        if not _ADDRESS.fullmatch(address) or unpack(packed, address) is None:
            return False
        path = self.path(address)
        if not path.exists():
            _write(path, packed)
        return True

    def path(self, address: str) -> Path:
        """The file of an address.

        Raises:
            ValueError: It is not an address.
        """
        if not _ADDRESS.fullmatch(address):
            raise ValueError(f"not a record address: {address[:80]!r}")
        return self.directory / address[:2] / f"{address}{_SUFFIX}"


def unpack(packed: bytes, address: str) -> bytes | None:
    """The content of stored bytes, or None if they are not what the address says."""
    inflater = zlib.decompressobj()
    try:
        data = inflater.decompress(packed, MAX_BYTES)
    except zlib.error:
        return None
    if not inflater.eof or hashlib.sha256(data).hexdigest() != address:
        return None
    return data


def _write(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    with draft.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)
