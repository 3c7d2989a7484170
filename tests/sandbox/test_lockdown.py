"""The seccomp program, run in a small BPF machine, and the Landlock paths."""

import os
import struct

import pytest

from hl.sandbox.lockdown import ALLOWED, filter_program

ARCH = 0xC000003E
ALLOW, EPERM, EINVAL, ENOSYS, KILL = "allow", "errno 1", "errno 22", "errno 38", "kill"


def decide(number: int, *args: int, arch: int = ARCH) -> str:
    """What the kernel would do with a system call."""
    data = struct.pack(
        "=iIQ6Q", struct.unpack("i", struct.pack("I", number))[0], arch, 0, *(args + (0,) * 6)[:6]
    )
    program = list(struct.iter_unpack("=HBBI", filter_program()))
    at = accumulator = 0
    for _ in range(len(program)):
        code, true, false, k = program[at]
        at += 1
        if code == 0x20:
            (accumulator,) = struct.unpack_from("=I", data, k)
        elif code == 0x54:
            accumulator &= k
        elif code == 0x05:
            at += k
        elif code == 0x06:
            if k == 0x7FFF0000:
                return ALLOW
            return KILL if k == 0x80000000 else f"errno {k & 0xFFFF}" if k >> 16 == 5 else f"? {k:x}"
        else:
            taken = {0x15: accumulator == k, 0x25: accumulator > k, 0x35: accumulator >= k}[code]
            at += true if taken else false
    raise AssertionError("the program has no end")


CONDITIONAL = (2, 9, 10, 16, 44, 53, 56, 72, 89, 157, 257, 267, 302, 435, 437)


def test_every_number_is_allowed_refused_or_conditional() -> None:
    for number in range(600):
        if number in CONDITIONAL:
            continue
        expected = ALLOW if number in ALLOWED else EPERM if number < 512 else ENOSYS
        assert decide(number, 2**64 - 1, 2**64 - 1) == expected, number


def test_the_dangerous_ones_are_not_on_the_list() -> None:
    names = {
        "connect": 42, "socket": 41, "sendmsg": 46, "recvmsg": 47, "bind": 49, "listen": 50, "fork": 57, "vfork": 58,
        "execve": 59, "execveat": 322, "kill": 62, "tkill": 200, "tgkill": 234, "ptrace": 101, "pidfd_open": 434,
        "pidfd_send_signal": 424, "pidfd_getfd": 438, "process_vm_readv": 310, "process_vm_writev": 311,
        "unshare": 272, "setns": 308, "mount": 165, "bpf": 321, "keyctl": 250, "io_uring_setup": 425,
        "userfaultfd": 323, "perf_event_open": 298, "memfd_create": 319, "chmod": 90, "rename": 82, "unlink": 87,
        "mkdir": 83, "setxattr": 188, "truncate": 76, "ftruncate": 77, "shmget": 29, "seccomp": 317, "setuid": 105,
        "capset": 126, "landlock_create_ruleset": 444, "pkey_mprotect": 329, "name_to_handle_at": 303, "flock": 73,
        "open_by_handle_at": 304, "setpgid": 109, "setsid": 112, "sched_setaffinity": 203, "fsopen": 430,
    }  # fmt: skip
    assert {name for name, number in names.items() if decide(number) != EPERM} == set()


@pytest.mark.parametrize(
    ("number", "args", "expected"),
    [
        (257, (0, 0, os.O_RDONLY | os.O_CLOEXEC | os.O_DIRECTORY), ALLOW),
        *[(257, (0, 0, f), EPERM) for f in (os.O_WRONLY, os.O_RDWR, os.O_CREAT, os.O_TRUNC, os.O_TMPFILE, os.O_APPEND)],
        (2, (0, os.O_RDONLY), ALLOW),
        (2, (0, os.O_WRONLY), EPERM),
        (56, (0x3D0F00,), ALLOW),  # what pthread_create asks for
        (56, (17,), EPERM),  # fork
        (56, (0x3D0F00 | 0x10000000,), EPERM),  # a thread in a new user namespace
        (435, (), ENOSYS),
        (437, (), ENOSYS),
        (9, (0, 0, 3, 0x22), ALLOW),
        (9, (0, 0, 5, 0x02), ALLOW),  # an extension module
        (9, (0, 0, 5, 0x22), EPERM),
        (9, (0, 0, 7, 0x02), EPERM),
        (10, (0, 0, 3), ALLOW),
        (10, (0, 0, 5), EPERM),
        (16, (1, 0x5401), ALLOW),
        (16, (1, 0x5412), EPERM),  # TIOCSTI
        (44, (3, 0, 1, 0, 0, 0), ALLOW),
        (44, (3, 0, 1, 0, 1, 16), EPERM),
        (44, (3, 0, 1, 0, 1 << 40, 16), EPERM),
        (53, (1, 1 | 0o2000000), ALLOW),
        (53, (1, 2), EPERM),
        (53, (2, 1), EPERM),
        (72, (3, 4), ALLOW),
        (72, (3, 6), EPERM),  # F_SETLK
        (89, (), EINVAL),
        (157, (15,), ALLOW),
        (157, (4,), EPERM),
        (302, (0, 7), ALLOW),
        (302, (1, 7), EPERM),
        (302, (1 << 32, 7), EPERM),
    ],
)  # fmt: skip
def test_conditions(number: int, args: tuple[int, ...], expected: str) -> None:
    assert decide(number, *args) == expected


def test_foreign_calls_kill() -> None:
    assert decide(0, arch=0x40000003) == KILL  # 32-bit
    assert decide(0x40000000 | 59) == KILL  # x32
    assert decide(0xFFFFFFFF) == KILL


def test_the_program_is_short_on_every_path() -> None:
    assert len(filter_program()) // 8 < 400
