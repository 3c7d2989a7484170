"""The host's side of the zygotes: start one, keep a few locked children ready, hand them out, bury them.

Promises that a child is used for one job, that its end of the channel and its pidfd are closed, and that the death of a
zygote reaches everybody who waits on it. It does not know what a job is. Everything happens in one event loop.
"""

import asyncio
import collections
import contextlib
import importlib.resources
import json
import os
import signal
import socket
import subprocess
import tempfile
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import IO, Any

from hl.errors import SandboxError
from hl.sandbox.bwrap import (
    ENVIRONMENT,
    Interpreter,
    bwrap_command,
    package_dirs,
    python_command,
    readable_paths,
)

READY_TARGET = 6
"""Locked children kept waiting: more would be memory for nothing."""
_START_TIMEOUT_S = 60.0
_HANG_S = 30.0
_LAST_BREATH_S = 0.05

_SHIPPED = ("lockdown", "model", "child", "zygote")
"""Modules that run inside, in the order of their imports."""
_BOOT = """
import json, sys, types
parts = json.loads(sys.stdin.buffer.read())
for name in ("hl", "hl.sandbox"):
    sys.modules[name] = package = types.ModuleType(name)
    package.__path__ = []
for name, text in parts["modules"]:
    module = types.ModuleType("hl.sandbox." + name)
    sys.modules[module.__name__] = module
    setattr(package, name, module)
    exec(compile(text, "<hl sandbox>", "exec"), module.__dict__)
settings = parts["settings"]
del parts, name, text
module.main(settings)
"""
_UNUSED = ("matplotlib", "mpl_toolkits")
"""cellpylib imports these for plots nobody draws: half of the grader's start, and they want to write files."""
_SHELL = 'echo 500 2>/dev/null >/proc/self/oom_score_adj; exec "$@"'
"""When memory runs out, the kernel should pick a child, not the host."""


class ZygoteDied(Exception):
    """The zygote ended; internal to the sandbox, which starts another."""


@dataclass(frozen=True, slots=True)
class Exit:
    """How a child ended."""

    code: int
    """Exit code, or minus the signal."""
    cpu_s: float
    """Processor time it used."""


@dataclass(frozen=True, slots=True)
class Plan:
    """How to start a zygote."""

    tier: str
    python: Interpreter
    bwrap: str | None
    """Path of bubblewrap, None to start unwrapped."""
    confine: bool
    """False only for `--unsafe-no-sandbox`."""
    grader: bool
    """Make this environment's packages readable and import reasoning_gym."""


@dataclass(slots=True)
class Child:
    """A locked process that waits for its one job."""

    pid: int
    """As the zygote sees it, which may be in another pid namespace."""
    channel: socket.socket
    pidfd: int
    zygote: "Zygote"

    def kill(self) -> None:
        """SIGKILL, whatever the process caught or blocked."""
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self.pidfd, signal.SIGKILL)

    def discard(self) -> None:
        """Kill it, close what we hold of it, let the zygote bury it."""
        self.kill()
        self._close()
        self.zygote.bury(self.pid)

    async def autopsy(self) -> Exit:
        """As `discard`, and tell how it ended: how it was ending already, if it was.

        Raises:
            ZygoteDied: Nobody is left to tell.
        """
        self.kill()
        self._close()
        return await self.zygote.reap(self.pid)

    def _close(self) -> None:
        self.channel.close()
        os.close(self.pidfd)


class Zygote:
    """One zygote process, started."""

    def __init__(self, process: subprocess.Popen[bytes], control: socket.socket) -> None:
        self._process = process
        self._control = control
        self._loop = asyncio.get_running_loop()
        self._ready: collections.deque[Child] = collections.deque()
        self._waiters: collections.deque[asyncio.Future[Child]] = collections.deque()
        self._exits: dict[int, asyncio.Future[Exit]] = {}
        self._requested = 0
        self._done: list[int] = []
        self._greeting: asyncio.Future[dict[str, Any]] = self._loop.create_future()
        self._heard = self._loop.time()
        self.alive = True
        """False once the process is gone or unusable."""
        self.busy = 0
        """Children handed out and not yet buried."""
        self._loop.add_reader(control.fileno(), self._on_readable)

    # --- use ---

    async def greeting(self) -> dict[str, Any]:
        """What the zygote says once it is ready.

        Raises:
            ZygoteDied: It never was.
        """
        async with asyncio.timeout(_START_TIMEOUT_S):
            return await self._greeting

    async def acquire(self) -> Child:
        """A locked child, made now or earlier.

        Raises:
            ZygoteDied: The process is gone.
        """
        if not self.alive:
            raise ZygoteDied
        self.busy += 1
        try:
            if self._ready:
                return self._ready.popleft()
            waiter: asyncio.Future[Child] = self._loop.create_future()
            self._waiters.append(waiter)
            self._top_up()
            try:
                return await waiter
            except asyncio.CancelledError:
                if waiter.done() and not waiter.cancelled() and waiter.exception() is None:
                    self._ready.append(waiter.result())
                raise
        except BaseException:
            self.busy -= 1
            raise
        finally:
            self._top_up()

    def bury(self, pid: int) -> None:
        """Note that a killed child can be reaped; told to the zygote with the next request."""
        self.busy -= 1
        self._done.append(pid)
        self._top_up()

    async def reap(self, pid: int) -> Exit:
        """Wait for a dying child and say how it ended."""
        self.busy -= 1
        if not self.alive:
            raise ZygoteDied
        waiter: asyncio.Future[Exit] = self._loop.create_future()
        self._exits[pid] = waiter
        self._tell({"reap": pid})
        return await waiter

    async def survived(self) -> None:
        """Ask after a child was killed: whether that was its own affair, or all of us are dying.

        Raises:
            ZygoteDied: It was not the child's fault.
        """
        await asyncio.sleep(_LAST_BREATH_S)
        if not self.alive:
            raise ZygoteDied

    async def aclose(self) -> None:
        """End the process and all its children; idempotent."""
        self._die()
        try:
            async with asyncio.timeout(10):
                while self._process.poll() is None:
                    await asyncio.sleep(0.005)
        except TimeoutError:
            self._process.kill()
            self._process.wait()

    def hung(self) -> bool:
        """Whether requests have gone unanswered for too long."""
        waiting = self._requested or self._exits
        return bool(waiting) and self._loop.time() - self._heard > _HANG_S

    def destroy(self) -> None:
        """Kill a process that does not answer."""
        self._process.kill()
        self._process.wait()
        self._die()

    # --- talk ---

    def _top_up(self) -> None:
        if not self.alive:
            return
        missing = len(self._waiters) + READY_TARGET - len(self._ready) - self._requested
        hungry = missing > 0 and self._requested < len(self._waiters)
        if hungry or missing >= READY_TARGET // 2 or len(self._done) > 16:
            done, self._done = self._done, []
            self._requested += max(missing, 0)
            self._tell({"fork": max(missing, 0), "done": done})

    def _tell(self, request: dict[str, Any]) -> None:
        if not (self._requested or len(self._exits) > 1):
            self._heard = self._loop.time()
        try:
            self._control.send(json.dumps(request).encode())
        except OSError:
            self._die()

    def _on_readable(self) -> None:
        while self.alive:
            try:
                data, fds, _, _ = socket.recv_fds(self._control, 4096, 2, socket.MSG_CMSG_CLOEXEC)
            except BlockingIOError:
                return
            except OSError:
                data, fds = b"", []
            if not data:
                self._die()
                return
            self._heard = self._loop.time()
            message: dict[str, Any] = json.loads(data)
            if "child" in message:
                channel = socket.socket(fileno=fds[0])
                channel.setblocking(False)
                self._requested -= 1
                self._offer(Child(message["child"], channel, fds[1], self))
            elif "exit" in message:
                waiter = self._exits.pop(message["exit"])
                if not waiter.done():
                    waiter.set_result(Exit(message["code"], message["cpu_s"]))
            elif not self._greeting.done():
                self._greeting.set_result(message["ready"])

    def _offer(self, child: Child) -> None:
        while self._waiters:
            waiter = self._waiters.popleft()
            if not waiter.done():
                waiter.set_result(child)
                return
        self._ready.append(child)

    def _die(self) -> None:
        if not self.alive:
            return
        self.alive = False
        self._loop.remove_reader(self._control.fileno())  # before closing: the number may be reused at once
        self._control.close()
        for waiter in (self._greeting, *self._waiters, *self._exits.values()):
            if not waiter.done():
                waiter.set_exception(ZygoteDied())
                waiter.exception()  # nobody may be waiting any more
        self._waiters.clear()
        self._exits.clear()
        for child in self._ready:
            child.kill()
            child.channel.close()
            os.close(child.pidfd)
        self._ready.clear()


async def start_zygote(plan: Plan) -> Zygote:
    """Start a zygote and wait until it is ready.

    Raises:
        SandboxError: It did not start; the message has its last words.
    """
    host, inside = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    host.setblocking(False)
    main_thread = (
        threading.current_thread() is threading.main_thread()
    )  # PDEATHSIG fires when a *thread* ends
    extra = package_dirs() if plan.grader else ()
    with inside, tempfile.TemporaryFile() as stdin, tempfile.TemporaryFile() as stderr:
        stdin.write(_boot_text(plan, inside.fileno(), extra, main_thread))
        stdin.seek(0)
        command = python_command(plan.python, _BOOT)
        if plan.bwrap:
            command = bwrap_command(plan.bwrap, plan.python, command, extra, die_with_parent=main_thread)
        process = subprocess.Popen(
            ["/bin/sh", "-c", _SHELL, "sh", *command],
            stdin=stdin,
            stdout=subprocess.DEVNULL,
            stderr=stderr,
            pass_fds=(inside.fileno(),),
            cwd="/",
            env=ENVIRONMENT,
            start_new_session=True,
        )
        inside.close()
        zygote = Zygote(process, host)
        try:
            greeting = await zygote.greeting()
        except (ZygoteDied, TimeoutError):
            zygote.destroy()
            await zygote.aclose()
            raise SandboxError(f"the sandbox tier {plan.tier} did not start: {_last_words(stderr)}") from None
        except BaseException:
            zygote.destroy()
            raise
    if greeting["threads"] != 1:
        await zygote.aclose()
        raise SandboxError(f"the sandbox tier {plan.tier} started with {greeting['threads']} threads, not 1")
    return zygote


def _boot_text(plan: Plan, control: int, extra: Sequence[str], main_thread: bool) -> bytes:
    sources = importlib.resources.files("hl.sandbox")
    parts: dict[str, Any] = {
        "modules": [(name, sources.joinpath(f"{name}.py").read_text("utf-8")) for name in _SHIPPED]
    }
    parts["settings"] = {
        "control": control,
        "die_with_parent": main_thread and plan.bwrap is None,
        "confine": plan.confine,
        "read": readable_paths(plan.python, extra),
        "sys_path": extra,
        "preload": ["reasoning_gym"] if plan.grader else [],
        "stubs": _UNUSED if plan.grader else [],
    }
    return json.dumps(parts).encode()


def _last_words(stderr: IO[bytes]) -> str:
    stderr.seek(0)
    lines = stderr.read().decode("utf-8", "replace").strip().splitlines()
    return lines[-1][:300] if lines else "it said nothing"
