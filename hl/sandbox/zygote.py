"""The zygote: imports the interpreter's modules once, then forks one locked child per request.

Runs inside the sandbox's namespaces, where nothing of ours can be imported: shipped as text together with `lockdown`
and `child`. It never runs untrusted code, never reads what a child writes, and has one thread, so that forking is safe.

Protocol on its control socket (SOCK_SEQPACKET, JSON), host to zygote: `{"fork": n, "done": [pid, ...]}` asks for n
children and names killed ones to bury; `{"reap": pid}` asks how a child ended. Zygote to host: `{"ready": ...}` once;
`{"child": pid}` with two descriptors, the host's end of the child's socket and a pidfd; `{"exit": pid, ...}`.
"""

import array
import contextlib
import fcntl
import gc
import importlib
import importlib.abc
import importlib.machinery
import json
import mmap
import os
import resource
import signal
import socket
import sys
import threading
import time
import warnings
from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Any

from hl.sandbox import child, lockdown

# fmt: off
PRELOAD = (
    "abc", "array", "ast", "asyncio", "base64", "bisect", "builtins", "calendar", "cmath",
    "codecs", "collections", "collections.abc", "concurrent.futures", "concurrent.futures.thread",
    "contextlib", "contextvars", "copy", "ctypes", "dataclasses", "datetime", "decimal",
    "difflib", "enum", "fractions", "functools", "gc", "hashlib", "heapq", "importlib",
    "importlib.util", "inspect", "io", "itertools", "json", "keyword", "linecache", "locale", "logging",
    "math", "numbers", "operator", "os", "pprint", "queue", "random", "re", "reprlib", "secrets",
    "shlex", "signal", "statistics", "string", "struct", "sys", "tempfile", "textwrap", "threading",
    "time", "token", "tokenize", "traceback", "types", "typing", "unicodedata", "unittest",
    "uuid", "warnings", "weakref", "zlib", "encodings.idna", "encodings.latin_1", "encodings.ascii",
    "encodings.utf_8",
)
# fmt: on
"""Library modules that a child finds already imported; the others are read from disk, which costs it milliseconds."""

_WITHOUT = ("_ssl", "_hashlib")
"""Left out while preloading: OpenSSL is of no use without a network, and makes every fork dearer."""
_SPARE = 5
"""A descriptor number above those a child keeps: its channel (3) and the ruleset (4)."""


def _address_space() -> int:
    """Bytes of address space of a fresh child, found by bisection in one: there is no /proc to ask."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            hard = resource.getrlimit(resource.RLIMIT_AS)[1]
            low, high = 0, 1 << 20  # units of 64 KiB
            while high - low > 1:
                middle = (low + high) // 2
                resource.setrlimit(resource.RLIMIT_AS, (middle << 16, hard))
                try:
                    mmap.mmap(-1, 1 << 16).close()
                    high = middle
                except (OSError, MemoryError):
                    low = middle
            resource.setrlimit(resource.RLIMIT_AS, (hard, hard))
            os.write(writer, high.to_bytes(8, "big"))
        finally:
            os._exit(0)
    os.close(writer)
    units = int.from_bytes(os.read(reader, 8), "big")
    os.close(reader)
    os.waitpid(pid, 0)
    if not units:
        raise OSError("cannot measure the address space of a child")
    return units << 16


class Zygote:
    """The loop that serves the host."""

    def __init__(self, control: socket.socket, lock: lockdown.Lock, base_bytes: int) -> None:
        self._control = control
        self._lock = lock
        self._base = base_bytes
        self._pid = os.getpid()
        self._dead: set[int] = set()

    def serve(self) -> None:
        """Answer requests until the host closes the socket."""
        while True:
            data = self._control.recv(1 << 16)
            if not data:
                return
            request: Mapping[str, Any] = json.loads(data)
            if "reap" in request:
                self._report(request["reap"])
                continue
            for _ in range(request["fork"]):
                self._fork()
            self._dead.update(request["done"])
            self._bury()

    def _fork(self) -> None:
        ours, theirs = socket.socketpair()
        pid = self._patiently_fork()
        if pid == 0:
            self._become_child(theirs.fileno())
        theirs.close()
        pidfd = os.pidfd_open(pid)
        fds = array.array("i", [ours.fileno(), pidfd])
        message = json.dumps({"child": pid}).encode()
        self._control.sendmsg([message], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, fds)])
        ours.close()
        os.close(pidfd)

    def _patiently_fork(self) -> int:
        for _ in range(200):
            try:
                return lockdown.fork()
            except OSError:
                self._bury()  # out of processes or memory: others will end
                time.sleep(0.05)
        raise OSError("cannot fork")

    def _become_child(self, channel: int) -> None:
        try:
            os.dup2(channel, 3)
            os.closerange(_SPARE, 1 << 20)
            lockdown.die_with_parent()
            if os.getppid() != self._pid:
                os._exit(0)
            self._lock.apply()
            child.work(self._base)
        finally:
            os._exit(70)

    def _report(self, pid: int) -> None:
        _, status, usage = os.wait4(pid, 0)
        code = os.waitstatus_to_exitcode(status)
        cpu = usage.ru_utime + usage.ru_stime
        self._control.send(json.dumps({"exit": pid, "code": code, "cpu_s": cpu}).encode())

    def _bury(self) -> None:
        for pid in tuple(self._dead):
            if os.waitpid(pid, os.WNOHANG)[0]:
                self._dead.discard(pid)


class _Stub(ModuleType):
    """A module in which every name is an empty class."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (), {})


class _Stubs(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Imports stubs for some packages and everything below them."""

    def __init__(self, packages: Sequence[str]) -> None:
        self._packages = packages

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname.partition(".")[0] in self._packages:
            return importlib.machinery.ModuleSpec(fullname, self, is_package=True)
        return None

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        return _Stub(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        pass


def _import_all(preload: Sequence[str], stubs: Sequence[str]) -> None:
    """Import what children should find imported.

    Args:
        preload: Beyond the standard library's.
        stubs: Packages that `preload` imports and never uses, and that cost seconds: left out.
    """
    for name in _WITHOUT:
        sys.modules[name] = None  # pyright: ignore[reportArgumentType]
    for name in PRELOAD:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    for name in _WITHOUT:
        del sys.modules[name]
    finder = _Stubs(stubs)
    sys.meta_path.insert(0, finder)
    for name in preload:
        importlib.import_module(name)
    sys.meta_path.remove(finder)
    for name in [name for name in sys.modules if name.partition(".")[0] in stubs]:
        del sys.modules[name]
    for (
        path
    ) in sys.path:  # lazy imports look names up in these listings, which Landlock would not let a child read
        listing = sys.path_importer_cache.get(path)
        if listing is not None and hasattr(listing, "find_spec"):
            listing.find_spec("_hl_no_such_module")
    for name in [name for name in sys.modules if name.partition(".")[0] == "hl"]:
        del sys.modules[name]  # the names belong to harnesses now


def main(settings: Mapping[str, Any]) -> None:
    """Load everything, build the lock, give up privileges, report ready, and serve until the host hangs up."""
    control = socket.socket(fileno=fcntl.fcntl(settings["control"], fcntl.F_DUPFD_CLOEXEC, 10))
    os.close(settings["control"])
    if settings["die_with_parent"]:
        lockdown.die_with_parent()
    kept = [path for path in sys.path if path and not path.endswith("-packages")]
    sys.path[:] = kept + settings["sys_path"]
    warnings.simplefilter("ignore")
    _import_all(settings["preload"], settings["stubs"])
    threading.stack_size(1 << 20)
    warnings.resetwarnings()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C in a terminal is the host's to handle
    lock = lockdown.Lock(settings["read"], confine=settings["confine"])
    if lock.ruleset >= 0 and lock.ruleset != 4:
        os.dup2(lock.ruleset, 4, inheritable=False)
        os.close(lock.ruleset)
        lock.ruleset = 4
    null = os.open("/dev/null", os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(null, standard)
    if null > 2:
        os.close(null)
    if settings["confine"]:
        lockdown.drop_privileges()
    gc.collect()
    gc.freeze()
    gc.disable()
    base = _address_space()
    ready = {
        "ready": {
            "python": sys.version.split()[0],
            "base_mb": base >> 20,
            "threads": threading.active_count(),
        }
    }
    control.send(json.dumps(ready).encode())
    Zygote(control, lock, base).serve()
