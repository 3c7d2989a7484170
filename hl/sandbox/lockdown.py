"""Lock a process down with nothing but ctypes: Landlock, seccomp, rlimits, capabilities, prctl.

Runs inside the zygote and its children, where nothing of ours can be imported: this file is shipped there as text.
It promises that after `Lock.apply` the calling process can read the paths it was given and nothing else, can open no
socket, start no process, signal nobody and write no file; all of it is inherited by its threads and cannot be undone.
It does not create namespaces (bubblewrap does) and it does not limit CPU time or memory (`child` does, per job).

Linux on x86-64 only: system call numbers are this architecture's.
"""

import ctypes
import os
import resource
import stat
import struct
from collections.abc import Sequence

# --- kernel calls ----------------------------------------------------------------------------------------------

_libc = ctypes.CDLL(None, use_errno=True)
_libc.syscall.restype = ctypes.c_long
_fork = ctypes.PyDLL(None, use_errno=True).fork  # PyDLL: the interpreter's lock stays held, in both processes
_prctl = _libc.prctl
_prctl.argtypes = [ctypes.c_int, ctypes.c_ulong, ctypes.c_ulong, ctypes.c_ulong, ctypes.c_ulong]

_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_CAPBSET_DROP, _PR_SET_NO_NEW_PRIVS = 1, 4, 24, 38
_SYS_CAPSET, _SYS_SECCOMP = 126, 317
_SYS_LANDLOCK_CREATE, _SYS_LANDLOCK_ADD, _SYS_LANDLOCK_RESTRICT = 444, 445, 446


def _syscall(number: int, *arguments: int | bytes | None) -> int:
    """Integers as longs: as C ints their upper halves would be whatever was in the register."""
    return _libc.syscall(
        ctypes.c_long(number), *(ctypes.c_long(a) if isinstance(a, int) else a for a in arguments)
    )


def _checked(result: int, what: str) -> int:
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{what}: {os.strerror(code)}")
    return result


def fork() -> int:
    """The C library's fork without the interpreter's: 0 in the child, its pid in the parent.

    `os.fork` runs hooks in the child that make locks anew and reseed `random`: half a millisecond of page faults. With
    a single thread, which the caller must guarantee, no lock is held; the child seeds `random` itself.

    Raises:
        OSError: No process or memory to be had.
    """
    return _checked(_fork(), "fork")


def prctl(option: int, value: int) -> None:
    """One prctl with a single argument.

    Raises:
        OSError: The kernel refused.
    """
    _checked(_prctl(option, value, 0, 0, 0), f"prctl {option}")


def die_with_parent() -> None:
    """Ask for SIGKILL when the parent thread ends. Not inherited over fork."""
    prctl(_PR_SET_PDEATHSIG, 9)


def drop_privileges() -> None:
    """Empty every capability set, forbid gaining privileges by exec, and forbid ptrace and /proc access by our uid."""
    for capability in range(64):
        _prctl(
            _PR_CAPBSET_DROP, capability, 0, 0, 0
        )  # fails where we have no right to drop: then there is none to lose
    header = struct.pack("=Ii", 0x20080522, 0)
    _checked(_syscall(_SYS_CAPSET, header, bytes(24)), "capset")
    prctl(_PR_SET_NO_NEW_PRIVS, 1)
    prctl(_PR_SET_DUMPABLE, 0)


# --- Landlock: which paths -------------------------------------------------------------------------------------

_READ_FILE, _READ_DIR, _WRITE_FILE = 1 << 2, 1 << 3, 1 << 1


def landlock_abi() -> int:
    """Version of the kernel's Landlock; 0 where there is none."""
    return max(0, _syscall(_SYS_LANDLOCK_CREATE, None, 0, 1))


def _ruleset(read: Sequence[str]) -> int:
    """A Landlock ruleset that lets through reading below `read` and nothing else; returns its descriptor."""
    abi = landlock_abi()
    if abi < 1:
        raise OSError(38, "this kernel has no Landlock")
    fs = (1 << 13) - 1  # execute, write, read, read_dir, remove x2, make x7
    for version, bit in ((2, 13), (3, 14), (5, 15)):  # refer, truncate, ioctl_dev
        if abi >= version:
            fs |= 1 << bit
    network = 3 if abi >= 4 else 0  # bind and connect TCP
    scoped = 3 if abi >= 6 else 0  # abstract unix sockets, signals
    size = 8 if abi < 4 else 16 if abi < 6 else 24
    attr = struct.pack("=QQQ", fs, network, scoped)
    fd = _checked(_syscall(_SYS_LANDLOCK_CREATE, attr, size, 0), "landlock_create_ruleset")
    rules = [(path, _READ_FILE | _READ_DIR) for path in read]
    rules += [("/dev/urandom", _READ_FILE), ("/dev/null", _READ_FILE | _WRITE_FILE)]
    for path, access in rules:
        try:
            parent = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except OSError:
            continue  # a path that is not here needs no permission
        if not stat.S_ISDIR(os.fstat(parent).st_mode):
            access &= ~_READ_DIR
        rule = struct.pack("=Qi", access, parent)
        try:
            _checked(_syscall(_SYS_LANDLOCK_ADD, fd, 1, rule, 0), f"landlock_add_rule {path}")
        finally:
            os.close(parent)
    return fd


# --- seccomp: which system calls -------------------------------------------------------------------------------

_ALLOW, _KILL, _ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
_EPERM, _EINVAL, _ENOSYS = 1, 22, 38
_LOAD, _AND, _RET, _JA = 0x20, 0x54, 0x06, 0x05
_JEQ, _JGE, _JGT = 0x15, 0x35, 0x25

ALLOWED = (
    # files and descriptors: openat is conditional, Landlock decides on paths
    *(
        0,
        1,
        3,
        4,
        5,
        6,
        7,
        8,
        17,
        18,
        19,
        20,
        21,
        22,
        23,
        32,
        33,
        79,
        217,
        221,
        262,
        269,
        270,
        271,
        292,
        293,
        332,
    ),
    *(436, 439),
    # epoll and eventfd, for asyncio
    *(213, 232, 233, 281, 284, 290, 291, 441),
    # memory: mmap and mprotect are conditional
    *(11, 12, 25, 28),
    # signals of our own: handlers, masks, timers
    *(13, 14, 15, 34, 36, 37, 38, 131, 219),
    # the socket pair that asyncio wakes itself with: recvfrom, shutdown, getsockname, getpeername, getsockopt
    *(45, 48, 51, 52, 55),
    # threads and time
    *(24, 35, 39, 60, 96, 186, 201, 202, 204, 228, 229, 230, 231, 273, 309, 318, 334),
    # who and where am I: uname, getrlimit, getrusage, sysinfo, times, get*id
    *(63, 97, 98, 99, 100, 102, 104, 107, 108, 110),
)
"""Numbers of the system calls that are let through whatever their arguments."""

_Instruction = tuple[int, int, int, int]


def _errno(code: int) -> list[_Instruction]:
    return [(_RET, 0, 0, _ERRNO | code)]


def _word(argument: int, high: bool = False) -> _Instruction:
    return (_LOAD, 0, 0, 16 + 8 * argument + (4 if high else 0))


def _if_masked(argument: int, mask: int, value: int) -> list[_Instruction]:
    """Allow if (argument & mask) == value, looking at the low 32 bits."""
    return [
        _word(argument),
        (_AND, 0, 0, mask),
        (_JEQ, 0, 1, value),
        (_RET, 0, 0, _ALLOW),
        (_RET, 0, 0, _ERRNO | _EPERM),
    ]


def _if_among(argument: int, values: Sequence[int]) -> list[_Instruction]:
    """Allow if the argument's low 32 bits are one of `values`."""
    code = [_word(argument)]
    for value in values:
        code += [(_JEQ, 0, 1, value), (_RET, 0, 0, _ALLOW)]
    return code + _errno(_EPERM)


def _if_zero(argument: int) -> list[_Instruction]:
    """Allow if all 64 bits of the argument are zero."""
    return [
        _word(argument),
        (_JEQ, 0, 3, 0),
        _word(argument, high=True),
        (_JEQ, 0, 1, 0),
        (_RET, 0, 0, _ALLOW),
        (_RET, 0, 0, _ERRNO | _EPERM),
    ]


_OPEN_WRITES = 3 | 0o100 | 0o1000 | 0o2000 | 0o20000000  # access mode, CREAT, TRUNC, APPEND, TMPFILE
_CLONE_THREAD, _CLONE_NEW = 0x10000, 0x7E020000
_EXEC, _WRITE, _ANONYMOUS = 4, 2, 0x20


def _mmap() -> list[_Instruction]:
    """Executable memory only from files (extension modules), never writable or anonymous."""
    return [
        _word(2),
        (_AND, 0, 0, _EXEC | _WRITE),
        (_JEQ, 5, 0, _EXEC | _WRITE),
        (_JEQ, 0, 3, _EXEC),
        _word(3),
        (_AND, 0, 0, _ANONYMOUS),
        (_JEQ, 1, 0, _ANONYMOUS),
        (_RET, 0, 0, _ALLOW),
        (_RET, 0, 0, _ERRNO | _EPERM),
    ]


def _socketpair() -> list[_Instruction]:
    """Unix stream pairs only: a datagram one could be pointed at somebody else's socket."""
    return [_word(0), (_JEQ, 1, 0, 1), (_RET, 0, 0, _ERRNO | _EPERM), *_if_masked(1, 0xF, 1)]


def _conditions() -> dict[int, list[_Instruction]]:
    return {
        2: _if_masked(1, _OPEN_WRITES, 0),  # open
        257: _if_masked(2, _OPEN_WRITES, 0),  # openat
        437: _errno(_ENOSYS),  # openat2: its flags are in memory, where a filter cannot look
        56: _if_masked(0, _CLONE_THREAD | _CLONE_NEW, _CLONE_THREAD),  # clone
        435: _errno(_ENOSYS),  # clone3: as openat2; libc falls back to clone
        9: _mmap(),
        10: _if_masked(2, _EXEC, 0),  # mprotect
        16: _if_among(
            1, (0x5401, 0x5413, 0x541B, 0x5421, 0x5450, 0x5451)
        ),  # ioctl TCGETS WINSZ NREAD NBIO (N)CLEX
        72: _if_among(1, (0, 1, 2, 3, 4, 1030)),  # fcntl: duplicate, flags
        44: _if_zero(4),  # sendto without an address
        53: _socketpair(),
        157: _if_among(0, (15,)),  # prctl: thread names
        302: _if_zero(0),  # prlimit64 of oneself: hard limits can only go down
        89: _errno(_EINVAL),  # readlink: "not a symbolic link", so that os.path.realpath works
        267: _errno(_EINVAL),  # readlinkat
    }


def _search(segments: Sequence[tuple[int, list[_Instruction]]]) -> list[_Instruction]:
    """Binary search over (first number, code) segments: about nine comparisons instead of a hundred."""
    if len(segments) == 1:
        return segments[0][1]
    middle = len(segments) // 2
    left, right = _search(segments[:middle]), _search(segments[middle:])
    return [(_JGE, 0, 1, segments[middle][0]), (_JA, 0, 0, len(left)), *left, *right]


def filter_program() -> bytes:
    """The BPF program: default EPERM; a foreign architecture or an x32 number kills the process."""
    special = _conditions()
    segments: list[tuple[int, list[_Instruction]]] = []
    previous = ""
    for number in range(512):
        code = special.get(number)
        kind = f"special {number}" if code else "allow" if number in ALLOWED else "deny"
        if kind != previous:
            segments.append((number, code or ([(_RET, 0, 0, _ALLOW)] if kind == "allow" else _errno(_EPERM))))
            previous = kind
    program: list[_Instruction] = [
        (_LOAD, 0, 0, 4),
        (_JEQ, 1, 0, 0xC000003E),  # AUDIT_ARCH_X86_64
        (_RET, 0, 0, _KILL),
        (_LOAD, 0, 0, 0),
        (_JGE, 0, 1, 0x40000000),
        (_RET, 0, 0, _KILL),
        (_JGT, 0, 1, 511),
        (_RET, 0, 0, _ERRNO | _ENOSYS),
        *_search(segments),
    ]
    return b"".join(struct.pack("=HBBI", *instruction) for instruction in program)


# --- all of it -------------------------------------------------------------------------------------------------

_LIMITS = (
    (resource.RLIMIT_CORE, 0),
    (resource.RLIMIT_FSIZE, 0),
    (resource.RLIMIT_NOFILE, 64),
    (resource.RLIMIT_MEMLOCK, 0),
    (resource.RLIMIT_MSGQUEUE, 0),
)


class Lock:
    """Everything built once in the zygote, so that locking a child is three kernel calls.

    Args:
        read: Paths that may be read, with all below them.
        confine: False builds a lock that only sets limits (`--unsafe-no-sandbox`).
    """

    def __init__(self, read: Sequence[str], *, confine: bool) -> None:
        self._confine = confine
        self.ruleset = -1
        """Descriptor of the Landlock ruleset, -1 when there is none; a child keeps it until `apply`."""
        if confine:
            self.ruleset = _ruleset(read)
            code = filter_program()
            self._code = ctypes.create_string_buffer(code, len(code))
            self._program = struct.pack("=HxxxxxxQ", len(code) // 8, ctypes.addressof(self._code))

    def apply(self) -> None:
        """Lock the calling process; closes the ruleset.

        Raises:
            OSError: The kernel refused: the caller must exit.
        """
        for which, limit in _LIMITS:
            hard = resource.getrlimit(which)[1]
            value = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
            resource.setrlimit(which, (value, value))
        if not self._confine:
            return
        _checked(_syscall(_SYS_LANDLOCK_RESTRICT, self.ruleset, 0), "landlock_restrict_self")
        os.close(self.ruleset)
        _checked(_syscall(_SYS_SECCOMP, 1, 0, self._program), "seccomp")
