"""Probes: code that tries to get out of the sandbox, run in a real child at every start.

Each probe succeeds where it reaches what it tries for; the sandbox refuses to start if one does. They show that the
layers are in force on this machine; they are not a proof that nothing else gets through.
"""

import json
import os
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, cast

from hl.errors import SandboxError
from hl.sandbox.bwrap import ENVIRONMENT


@dataclass(frozen=True, slots=True)
class Probe:
    """One attempt to get out."""

    name: str
    """Short name, such as `read a file`."""
    tried: str
    """What exactly was tried."""
    blocked: bool
    """Whether it failed, as it should."""
    detail: str
    """How it failed, or what it reached."""


class Ran(Protocol):
    """What running code gives."""

    @property
    def stdout(self) -> str:
        """What it printed."""
        ...

    @property
    def error(self) -> str:
        """Traceback, or empty."""
        ...


_WRITE = """
open("/tmp/hl-probe", "w").close()
try:
    os.remove("/tmp/hl-probe")
except OSError:
    pass
"""
# (name, what was tried, statements that raise OSError or assert where the sandbox holds)
_PROBES = (
    ("read a file", "open /etc/passwd", "open('/etc/passwd').read(1)"),
    ("read hl's own files", "open a file of the installed package", "open(OWN_FILE).read(1)"),
    ("list a directory", "list the working directory of hl", "os.listdir(CWD)"),
    ("write a file", "create a file in /tmp", _WRITE),
    ("see another process", "read /proc/1/status", "open('/proc/1/status').read(1)"),
    ("signal another process", "kill(getppid(), 0)", "os.kill(os.getppid(), 0)"),
    ("fork", "fork a process", "os.fork() or os._exit(0)"),
    ("start a program", "run /bin/true", "__import__('subprocess').run(['/bin/true'], check=True)"),
    (
        "open a TCP socket",
        "socket(AF_INET, SOCK_STREAM)",
        "socket.socket(socket.AF_INET, socket.SOCK_STREAM)",
    ),
    ("open a UDP socket", "socket(AF_INET, SOCK_DGRAM)", "socket.socket(socket.AF_INET, socket.SOCK_DGRAM)"),
    (
        "open a Unix socket",
        "socket(AF_UNIX, SOCK_STREAM)",
        "socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)",
    ),
    ("trace another process", "ptrace(PTRACE_SEIZE, getppid())", "call(101, 0x4206, os.getppid(), 0, 0)"),
    ("make a namespace", "unshare(CLONE_NEWUSER)", "call(272, 0x10000000)"),
    ("make anonymous files", "memfd_create", "call(319, b'x', 0)"),
    ("load kernel programs", "bpf(BPF_PROG_LOAD)", "call(321, 5, b'x' * 128, 128)"),
    ("use io_uring", "io_uring_setup", "call(425, 1, bytes(120))"),
    ("raise a limit", "setrlimit(RLIMIT_NOFILE)", "resource.setrlimit(resource.RLIMIT_NOFILE, (4096, 4096))"),
    (
        "see the environment",
        "a variable of hl's environment",
        "next(name for name in VARIABLES if name in os.environ)",
    ),
)

_PROGRAM = """
import ctypes, json, os, resource, socket
libc = ctypes.CDLL(None, use_errno=True)
def call(*numbers):
    if libc.syscall(*(ctypes.c_long(n) if isinstance(n, int) else n for n in numbers)) < 0:
        code = ctypes.get_errno()
        if code == 22:
            return  # it looked at the arguments: the call itself is open
        raise OSError(code, os.strerror(code))
found = []
for source in PROBES:
    try:
        exec(source)
    except BaseException as error:
        found.append([True, f"{type(error).__name__}: {error}"[:200]])
    else:
        found.append([False, "it worked"])
print(json.dumps(found))
"""


async def run_probes(python: Callable[..., Awaitable[Ran]]) -> tuple[Probe, ...]:
    """Run all probes in one child.

    Args:
        python: `Sandbox.python`.

    Raises:
        SandboxError: The child did not report: the sandbox does not even run honest code.
    """
    # Names that the sandbox sets for itself prove nothing: bwrap sets PWD, and libc's locale LC_CTYPE.
    own = {*ENVIRONMENT, "PWD", "LC_CTYPE"}
    constants = {
        "PROBES": [source for _, _, source in _PROBES],
        "OWN_FILE": str(Path(__file__).resolve()),
        "CWD": str(Path.cwd()),
        "VARIABLES": sorted(name for name in os.environ if name not in own),
    }
    program = "".join(f"{name} = {value!r}\n" for name, value in constants.items()) + _PROGRAM
    result = await python(program, timeout_s=20)
    try:
        found = cast("list[list[object]]", json.loads(result.stdout))
    except ValueError:
        reason = (result.error or "it printed nothing").splitlines()[-1]
        raise SandboxError(f"the sandbox does not run a plain program: {reason}", hint="hl doctor") from None
    return tuple(
        Probe(name, tried, bool(blocked), str(detail))
        for (name, tried, _), (blocked, detail) in zip(_PROBES, found, strict=True)
    )
