"""Hostile harnesses, one a test, in each tier: they fail as data and reach nothing."""

import json
import os
from pathlib import Path

import pytest

from hl.sandbox.host import Limits
from hl.types import Status
from tests.sandbox.kit import Box

CALL = """
import ctypes, os, resource, socket, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
def call(*numbers):
    result = libc.syscall(*(ctypes.c_long(n) if isinstance(n, int) else n for n in numbers))
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result
"""

# name: (body of solve; it raises where it is stopped), does it work without a sandbox (None: not tried there)
REACHES: dict[str, tuple[str, bool | None]] = {
    "read_a_system_file": ("open('/etc/passwd').read()", True),
    "read_the_secret": ("open(question).read()", True),
    "read_through_a_symlink": ("os.symlink(question, '/tmp/hl-attack-name'); open('/tmp/hl-attack-name').read()", None),
    "list_a_directory": ("os.listdir(os.path.dirname(question))", True),
    "list_root": ("os.listdir('/home')", True),
    "read_own_environment": ("open('/proc/self/environ').read()", True),
    "read_parent_memory_map": ("open(f'/proc/{os.getppid()}/maps').read()", True),
    "look_for_processes": ("[p for p in os.listdir('/proc') if p.isdigit()][0]", True),
    "import_hl": ("import hl.types", None),
    "import_reasoning_gym": ("import reasoning_gym", None),
    "write_a_file": ("open('/tmp/hl-attack', 'w').write('x')", None),
    "append_to_the_secret": ("open(question, 'a').write('x')", True),
    "truncate_the_secret": ("os.truncate(question, 0)", None),
    "write_to_the_standard_library": ("open(os.__file__, 'r+')", None),
    "make_a_directory": ("os.mkdir('/tmp/hl-attack-dir')", None),
    "make_a_symlink": ("os.symlink('/etc', '/tmp/hl-attack-link')", None),
    "make_a_hard_link": ("os.link(question, question + '.2')", None),
    "make_a_fifo": ("os.mkfifo('/tmp/hl-attack-fifo')", None),
    "remove_the_secret": ("os.unlink(question)", None),
    "rename_the_secret": ("os.rename(question, question + '.2')", None),
    "chmod_the_secret": ("os.chmod(question, 0o777)", True),
    "touch_the_secret": ("os.utime(question)", True),
    "label_the_secret": ("os.setxattr(question, 'user.hl', b'x')", None),
    "lock_the_interpreter": ("import fcntl; fcntl.flock(open(os.__file__), fcntl.LOCK_EX | fcntl.LOCK_NB)", True),
    "change_directory": ("os.chdir('/')", True),
    "shared_memory": ("from multiprocessing.shared_memory import SharedMemory; SharedMemory('hl', True, 8)", None),
    "system_v_shared_memory": ("call(29, 0, 4096, 0o1000 | 0o600)", None),
    "memory_file": ("os.memfd_create('x')", True),
    "tcp_socket": ("socket.socket(socket.AF_INET)", True),
    "udp_socket": ("socket.socket(socket.AF_INET, socket.SOCK_DGRAM)", True),
    "unix_socket": ("socket.socket(socket.AF_UNIX)", True),
    "netlink_socket": ("socket.socket(socket.AF_NETLINK, socket.SOCK_RAW)", True),
    "datagram_pair": ("socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)", True),
    "send_to_an_address": ("socket.socketpair()[0].sendto(b'x', '/run/hl.sock')", None),
    "pass_descriptors": ("a, b = socket.socketpair(); socket.send_fds(a, [b'x'], [b.fileno()])", True),
    "resolve_a_name": ("socket.getaddrinfo('localhost', 80)[0]", None),
    "fork": ("os.fork() or os._exit(0)", True),
    "vfork": ("call(58) or os._exit(0)", None),
    "clone_a_process": ("call(56, 17, 0, 0, 0, 0) or os._exit(0)", True),
    "clone3": ("call(435, bytes(88), 88)", None),
    "spawn_a_program": ("os.posix_spawn('/bin/true', ['true'], {})", True),
    "run_a_shell": ("import subprocess; subprocess.run('true', shell=True, check=True)", True),
    "become_a_program": ("os.execv('/bin/true', ['true'])", None),
    "signal_the_parent": ("os.kill(os.getppid(), 0)", True),
    "kill_everybody": ("os.kill(-1, 9)", None),
    "signal_through_a_thread_call": ("call(234, os.getppid(), os.getppid(), 0)", True),
    "open_a_process_handle": ("os.pidfd_open(os.getppid())", True),
    "trace_the_zygote": ("call(101, 0x4206, os.getppid(), 0, 0)", True),
    "read_the_zygotes_memory": ("b = ctypes.create_string_buffer(8); call(310, os.getppid(), b, 0, b, 0, 0)", None),
    "change_the_parents_limits": ("resource.prlimit(os.getppid(), resource.RLIMIT_NOFILE)", True),
    "raise_own_limits": ("resource.setrlimit(resource.RLIMIT_FSIZE, (1, 1))", None),
    "raise_own_priority": ("os.nice(-5)", None),
    "make_a_user_namespace": ("call(272, 0x10000000)", None),
    "enter_a_namespace": ("call(308, 0, 0)", None),
    "mount": ("call(165, b'none', b'/', b'tmpfs', 0, 0)", None),
    "chroot": ("os.chroot('/')", None),
    "load_kernel_programs": ("call(321, 0, bytes(128), 128)", None),
    "kernel_keys": ("call(250, 0, -3, 1)", True),
    "io_uring": ("call(425, 1, ctypes.create_string_buffer(120))", None),
    "userfaultfd": ("call(323, 1)", None),
    "performance_counters": ("call(298, bytes(128), 0, -1, -1, 0)", None),
    "watch_files": ("call(253)", True),
    "unlock_by_prctl": ("call(157, 4, 1, 0, 0, 0)", True),
    "outlive_the_parent": ("call(157, 1, 0, 0, 0, 0)", True),
    "writable_code": ("import mmap; mmap.mmap(-1, 4096, prot=7)", True),
    "anonymous_code": ("import mmap; mmap.mmap(-1, 4096, prot=5)", True),
    "memory_made_executable": ("import mmap; m = mmap.mmap(-1, 4096); "
                               "call(10, ctypes.addressof(ctypes.c_char.from_buffer(m)), 4096, 5)", True),
    "open_for_writing_by_openat2": ("call(437, -100, b'/dev/null', struct.pack('QQQ', 2, 0, 0), 24)", True),
}  # fmt: skip


def _harness(body: str) -> str:
    return f"{CALL}\ndef solve(model, question):\n    {body}\n    return 'through'\n"


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    """A file that holds what must not be reached, as open as files get."""
    path = tmp_path / "gold.jsonl"
    path.write_text("the gold answer")
    os.chmod(path, 0o666)  # noqa: PTH101
    return path


@pytest.mark.parametrize("name", REACHES)
def test_reaches_nothing(box: Box, secret: Path, name: str) -> None:
    result = box.solve(_harness(REACHES[name][0]), str(secret))
    assert result.status is Status.CRASH, result
    assert result.value == ""
    assert "gold answer" not in result.error
    assert secret.read_text() == "the gold answer"
    assert list(Path("/tmp").glob("hl-attack*")) == []
    assert list(secret.parent.iterdir()) == [secret]
    assert box.solve("def solve(model, question): return 'fine'").value == "fine"  # the zygote is well


@pytest.mark.parametrize("name", [name for name, (_, works) in REACHES.items() if works])
def test_would_reach_it_without_a_sandbox(unsafe: Box, secret: Path, name: str) -> None:
    assert unsafe.solve(_harness(REACHES[name][0]), str(secret)).value == "through"


def test_no_descriptor_but_its_channel(box: Box) -> None:
    source = """
import os
def solve(model, question):
    found = []
    for fd in range(64):
        try:
            os.fstat(fd)
            found.append(fd)
        except OSError:
            pass
    return str(found)
"""
    assert box.solve(source).value == "[0, 1, 2, 3]"


def test_foreign_system_call_numbers_kill(box: Box) -> None:
    result = box.solve(_harness("call(0x40000000 + 39)"))  # getpid by its x32 number
    assert (result.status, result.value) == (Status.CRASH, "")
    assert "signal 31" in result.error


def test_environment_holds_nothing_of_the_host(box: Box) -> None:
    os.environ["HL_TEST_TOKEN"] = "sesame"
    try:
        result = box.solve("import os\ndef solve(model, question): return repr(dict(os.environ))")
    finally:
        del os.environ["HL_TEST_TOKEN"]
    assert result.status is Status.OK
    assert "sesame" not in result.value
    assert os.environ["PATH"] not in result.value


# --- resources -------------------------------------------------------------------------------------------------

SHORT = Limits(wall_s=0.7, cpu_s=5)
BURN = Limits(wall_s=20.0, cpu_s=1)

ENDLESS = {
    "loop": "while True: pass",
    "loop_that_catches_everything": """
    while True:
        try:
            while True: pass
        except BaseException: pass""",
    "deaf_to_signals": """
    import signal
    for s in set(signal.Signals) - {signal.SIGKILL, signal.SIGSTOP}:
        try: signal.signal(s, signal.SIG_IGN)
        except (OSError, ValueError): pass
    signal.pthread_sigmask(signal.SIG_BLOCK, set(signal.Signals))
    while True: pass""",
    "uninterruptible": "return str(9 ** 9 ** 8 ** 3)[:9]",
    "regular_expression": "import re; return str(re.match(r'(a+)+$', 'a' * 60 + 'b'))",
    "sleep": "import time; time.sleep(1000)",
    "wait_for_nobody": "import threading; threading.Event().wait()",
    "threads": """
    import threading
    def burn():
        while True: pass
    for _ in range(4): threading.Thread(target=burn).start()
    burn()""",
    "at_import": None,
    "with_a_finally": """
    try:
        while True: pass
    finally:
        while True: pass""",
}


@pytest.mark.parametrize("name", ENDLESS)
def test_wall_limit(best: Box, name: str) -> None:
    body = ENDLESS[name]
    source = "while True: pass" if body is None else f"def solve(model, question):\n    {body}\n"
    result = best.solve(source, limits=SHORT)
    assert result.status is Status.TIMEOUT, result
    assert result.value == ""
    assert result.seconds >= 0.7


@pytest.mark.parametrize("name", ["loop_that_catches_everything", "deaf_to_signals"])
def test_processor_limit(best: Box, name: str) -> None:
    result = best.solve(f"def solve(model, question):\n    {ENDLESS[name]}\n", limits=BURN)
    assert result.status is Status.TIMEOUT, result
    assert "processor" in result.error


BOMBS = {
    "one_list": "x = [0] * 10 ** 10",
    "growing_list": "x = []\n    while True: x.append(bytes(10 ** 6))",
    "growing_string": "x = 'x'\n    while True: x += x",
    "deaf_growth": """
    x = []
    while True:
        try: x.append(bytearray(10 ** 6))
        except MemoryError:
            raise""",
    "threads": """
    import threading
    stop = threading.Event()
    threads = []
    while True:
        t = threading.Thread(target=stop.wait, daemon=True)
        t.start()
        threads.append(t)""",
    "mappings": "import mmap\n    x = []\n    while True: x.append(mmap.mmap(-1, 1 << 20))",
    "descriptors": "import os\n    while True: os.pipe()",
    "big_number": "return str(1 << 10 ** 12)",
}


@pytest.mark.parametrize("name", BOMBS)
def test_memory_limit(box: Box, name: str) -> None:
    limits = Limits(wall_s=20.0, cpu_s=10, memory_mb=64)
    result = box.solve(
        f"def solve(model, question):\n    {BOMBS[name]}\n    return 'survived'\n", limits=limits
    )
    assert result.status is Status.CRASH, result
    assert box.solve("def solve(model, question): return 'fine'").value == "fine"


def test_memory_limit_is_what_stops_it(best: Box) -> None:
    source = "def solve(model, question): return str(len(bytearray(100 << 20)))"
    assert best.solve(source, limits=Limits(memory_mb=256)).value == str(100 << 20)
    small = best.solve(source, limits=Limits(memory_mb=64))
    assert small.status is Status.CRASH
    assert small.error.endswith("MemoryError")


DEATHS = {
    "exit": ("import sys; sys.exit('bye')", "SystemExit: bye"),
    "exit_quietly": ("import sys; sys.exit(0)", "SystemExit: 0"),
    "interrupt": ("raise KeyboardInterrupt", "KeyboardInterrupt"),
    "hard_exit": ("import os; os._exit(0)", "exited with code 0"),
    "hard_exit_as_the_sandbox_would": ("import os; os._exit(70)", "exited with code 70"),
    "abort": ("import os; os.abort()", "died of signal"),
    "bad_pointer": ("import ctypes; ctypes.string_at(8)", "died of signal 11"),
    "recursion": ("f = lambda: f()\n    f()", "RecursionError"),
    "deep_source": ("eval('(' * 10 ** 6)", ""),
    "closed_channel": ("import os; os.close(3); return 'x'", "before it answered"),
    "closed_channel_and_on": ("import os; os.close(3)\n    while True: pass", "before it answered"),
    "unprintable_error": (
        "class E(Exception):\n        def __str__(self): raise E\n    raise E",
        "E",
    ),
}


@pytest.mark.parametrize("name", DEATHS)
def test_dies_as_data(box: Box, name: str) -> None:
    body, error = DEATHS[name]
    result = box.solve(f"def solve(model, question):\n    {body}\n")
    assert result.status is Status.CRASH, result
    assert error in result.error
    assert len(result.error) <= 4096


def test_unlimited_recursion(best: Box) -> None:
    """Ends by whichever limit it meets first."""
    body = "import sys; sys.setrecursionlimit(1 << 30)\n    f = lambda: [f()]\n    f()"
    result = best.solve(f"def solve(model, question):\n    {body}\n", limits=BURN)
    assert result.status in (Status.CRASH, Status.TIMEOUT)


# --- output ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [65537, 200_000, 50_000_000])
def test_answer_too_long(best: Box, size: int) -> None:
    result = best.solve(f"def solve(model, question): return 'x' * {size}")
    assert (result.status, result.value) == (Status.CONTRACT, "")
    assert "65536" in result.error


def test_answer_limit_counts_bytes(best: Box) -> None:
    source = "def solve(model, question): return '€' * 30000"
    assert best.solve(source).status is Status.CONTRACT
    assert best.solve(source, limits=Limits(answer_bytes=90000)).status is Status.OK


def test_longest_answer_arrives_whole(best: Box) -> None:
    assert best.solve("def solve(model, question): return 'x' * 65536").value == "x" * 65536


def test_error_too_long(best: Box) -> None:
    result = best.solve("def solve(model, question): raise ValueError('x' * 10 ** 7)")
    assert result.status is Status.CRASH
    assert len(result.error) <= 4096


def test_printing_floods_nobody(best: Box) -> None:
    source = (
        "import sys\ndef solve(model, question):\n    print('x' * 10 ** 7); sys.stderr.write('y' * 10 ** 7)\n"
    )
    assert best.solve(source + "    return 'done'").value == "done"


# --- the next question -----------------------------------------------------------------------------------------


def test_nothing_is_left_for_the_next_question(box: Box) -> None:
    source = """
import builtins, json, math, os, random, sys, threading
def solve(model, question):
    seen = [hasattr(m, "left") for m in (builtins, json, math, os, random, sys, threading)]
    seen.append(math.pi < 3)
    seen.append("LEFT" in os.environ)
    seen.append("left" in sys.modules)
    for m in (builtins, json, math, os, random, sys, threading):
        m.left = question
    math.pi = 0
    os.environ["LEFT"] = "x"
    sys.modules["left"] = sys
    sys.path.append("left")
    return str(any(seen))
"""
    assert [box.solve(source, q).value for q in ("one", "two", "three")] == ["False"] * 3


TAMPERING = {
    "json": "import json; json.dumps = json.JSONEncoder.encode = lambda *a, **k: '{}'",
    "struct": "import struct; struct.pack = None",
    "os": "import os; os.write = os.read = os._exit = None",
    "builtins": "import builtins; builtins.isinstance = builtins.len = lambda *a: True",
    "traceback": "import traceback, linecache; traceback.TracebackException = linecache.getline = None",
    "threading": "import threading; threading.Lock = threading.Condition = None",
    "frames": """
    import sys
    frame = sys._getframe()
    while frame:
        for name, value in list(frame.f_globals.items()) + list(frame.f_locals.items()):
            if isinstance(value, dict) and "question" in value:
                value["status"] = "ok"
        frame = frame.f_back""",
    "collector": """
    import gc
    for o in gc.get_objects():
        if type(o).__name__ == "Model": o.__dict__.clear()""",
    "limits": "import sys; sys.setrecursionlimit(60)",
    "trace_function": "import sys; sys.settrace(lambda *a: 1 / 0)",
}


@pytest.mark.parametrize("name", TAMPERING)
def test_tampering_hurts_itself_at_most(box: Box, name: str) -> None:
    result = box.solve(f"def solve(model, question):\n    {TAMPERING[name]}\n    return 'answer'\n")
    assert result.status in (Status.OK, Status.CRASH)
    assert result.value in ("answer", "")
    assert box.solve("def solve(model, question): return model(question)").value == "echo q"


def test_frames_hold_nothing_of_the_host(box: Box, secret: Path) -> None:
    source = """
import json, sys
def solve(model, question):
    texts = []
    frame = sys._getframe()
    while frame:
        texts += [repr(v)[:2000] for v in [*frame.f_locals.values(), *frame.f_globals.values()]]
        frame = frame.f_back
    text = "".join(texts)
    return str([needle[::-1] in text for needle in json.loads(question)])
"""
    needles = [str(Path.cwd()), str(secret), os.environ["PATH"], "def solve"]
    question = json.dumps([needle[::-1] for needle in needles])  # reversed: the question is in the frames too
    assert box.solve(source, question).value == "[False, False, False, True]"
