"""File locks that the kernel frees when their holder dies: no stale lock, whatever killed it."""

import errno
import fcntl
import os
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from hl.errors import LockedError, RepositoryError

LOOK_S = 0.1
"""How long a lock may seem held because somebody looks at it (ours)."""


@contextmanager
def hold(path: Path, *, wait_s: float = 0.0) -> Generator[None]:
    """Hold a lock file.

    Args:
        path: Made if missing, never removed.
        wait_s: How long to wait for another holder.

    Raises:
        LockedError: Another process holds it.
        RepositoryError: The file cannot be made.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    except OSError as error:
        raise RepositoryError(f"{path} cannot be opened: {error.strerror}") from None
    try:
        deadline = time.monotonic() + wait_s
        while True:
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except OSError as error:
                if error.errno not in (errno.EAGAIN, errno.EACCES):
                    raise
                if time.monotonic() >= deadline:
                    holder = os.pread(fd, 64, 0).split(b"\n")[0].decode("ascii", "replace") or "unknown"
                    raise LockedError(
                        f"another hl works on this repository (process {holder})",
                        hint=f"wait for it, or look at it with: ps -p {holder}",
                    ) from None
            time.sleep(0.01)
        os.ftruncate(fd, 0)
        os.pwrite(fd, f"{os.getpid()}\n".encode(), 0)
        yield
    finally:
        os.close(fd)


def is_held(path: Path) -> bool:
    """Whether a process holds a lock file now; changes nothing."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        # Shared, and gone at once: whoever asks for the lock in this instant waits a moment (see `LOOK_S`).
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(fd)
    return False
