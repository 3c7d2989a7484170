"""The sha256 of large files, remembered while a file stays as it is: hashing a corpus takes longer than opening it.

A file is the same while device, inode, size, and the times of its last change of content and of state are: the kernel
sets the last one, so that no copy or tool can leave it as it was. What is remembered lies in a folder of the user's,
which may be lost: then files are hashed again.
"""

import contextlib
import hashlib
import json
import os
import time
from pathlib import Path

from hl.config.trust import write_file
from hl.errors import HlError, UsageError

SETTLED_NS = 2_000_000_000
"""A file that changed so short a time ago may change again within one tick of its clock: not remembered (ours)."""


def file_digest(path: Path, known: Path) -> str:
    """Hex sha256 of a file, from memory where the file has not changed since.

    Args:
        path: The file.
        known: Folder of what is remembered, one small file each.

    Raises:
        UsageError: It cannot be read.
    """
    note = known / f"{hashlib.sha256(os.fsencode(path.resolve())).hexdigest()[:32]}.json"
    try:
        with path.open("rb") as file:
            state = _state(os.fstat(file.fileno()))
            if (digest := _remembered(note, state)) is not None:
                return digest
            started = time.time_ns()
            digest = hashlib.file_digest(file, "sha256").hexdigest()
            settled = state == _state(os.fstat(file.fileno())) and max(state[3:]) < started - SETTLED_NS
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise UsageError(f"the corpus {path} cannot be read: {reason or type(error).__name__}") from None
    if settled:
        with contextlib.suppress(
            HlError, OSError
        ):  # a full disk or a folder of another's costs time, nothing else
            write_file(note, json.dumps({"state": state, "sha256": digest}) + "\n")
    return digest


def _state(found: os.stat_result) -> list[int]:
    return [found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns]


def _remembered(note: Path, state: list[int]) -> str | None:
    try:
        kept = json.loads(note.read_bytes())
        return str(kept["sha256"]) if kept["state"] == state else None
    except (OSError, ValueError, KeyError, TypeError):
        return None
