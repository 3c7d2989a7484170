"""Server processes: started, waited for until they answer, started again when they end, and stopped together.

Promises that no process outlives `stop`, that a port in use is refused before anything starts (else the health check
would ask somebody else's server), and that a server which ends again and again is given up with its last words.
"""

import contextlib
import json
import os
import signal
import socket
import subprocess
import time
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from urllib.parse import urlsplit

from hl.errors import EngineError, UsageError

_POLL_S = 0.5
_ASK_S = 5.0
_STOP_S = 30.0
MAX_RESTARTS = 3
"""Of one program within `RESTART_S`."""
RESTART_S = 600.0


@dataclass(frozen=True, slots=True)
class Program:
    """One server process."""

    command: tuple[str, ...]
    environment: Mapping[str, str]
    """Beside ours."""
    url: str
    """Scheme, host and port; `/health` and `/v1/models` lie below."""
    models: tuple[str, ...]
    """Names that it must list before it counts as ready."""


@dataclass(slots=True)
class _Running:
    program: Program
    log: Path
    process: "subprocess.Popen[bytes] | None" = None
    restarts: list[float] = field(default_factory=list[float])


class Servers:
    """A group of server processes; a context manager that stops them on the way out.

    Args:
        programs: What to run.
        logs: A folder for what they print, one file each.
        tell: Told one line about what happens.
    """

    def __init__(self, programs: tuple[Program, ...], logs: Path, tell: Callable[[str], None]) -> None:
        self._running = [_Running(p, logs / f"server-{i}.log") for i, p in enumerate(programs)]
        self._logs = logs
        self._tell = tell

    def __enter__(self) -> "Servers":
        """Start all.

        Raises:
            UsageError: A port is in use.
            EngineError: A program cannot be started.
        """
        for one in self._running:
            _refuse_used_port(one.program.url)
        self._logs.mkdir(parents=True, exist_ok=True)
        try:
            for one in self._running:
                one.log.write_bytes(b"")
                self._start(one)
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop all."""
        self.stop()

    def wait_ready(self, timeout_s: float) -> None:
        """Wait until each answers and lists its models.

        Raises:
            EngineError: One ended, or did not get ready in time.
        """
        deadline = time.monotonic() + timeout_s
        for one in self._running:
            while not _is_ready(one.program):
                self._refuse_ended(one)
                if time.monotonic() > deadline:
                    raise EngineError(
                        f"the server at {one.program.url} was not ready within {timeout_s:g} s",
                        hint=f"{one.log}",
                    )
                time.sleep(_POLL_S)

    def watch(self) -> None:
        """Start again what ends; returns never.

        Raises:
            EngineError: One ended too often.
        """
        while True:
            for one in self._running:
                if one.process is not None and one.process.poll() is not None:
                    self._again(one)
            time.sleep(_POLL_S)

    def stop(self) -> None:
        """End all, gently first; idempotent."""
        alive = [one.process for one in self._running if one.process is not None]
        for process in alive:
            _signal(process, signal.SIGTERM)
        deadline = time.monotonic() + _STOP_S
        for process in alive:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(max(0.0, deadline - time.monotonic()))
            _signal(process, signal.SIGKILL)  # what is left of its group too
            process.wait()
        for one in self._running:
            one.process = None

    def _start(self, one: _Running) -> None:
        try:
            with one.log.open("ab") as log:
                # A session of its own: Ctrl-C reaches us alone, and we end the group.
                one.process = subprocess.Popen(
                    one.program.command,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    env={**os.environ, **one.program.environment},
                    start_new_session=True,
                )
        except OSError as error:
            raise EngineError(f"{one.program.command[0]} cannot be started: {error.strerror}") from None

    def _refuse_ended(self, one: _Running) -> None:
        code = one.process.poll() if one.process is not None else None
        if code is not None:
            raise EngineError(
                f"the server for {one.program.url} ended with {code}: {_last_words(one.log)}",
                hint=f"{one.log}",
            )

    def _again(self, one: _Running) -> None:
        now = time.monotonic()
        one.restarts = [at for at in one.restarts if now - at < RESTART_S]
        if len(one.restarts) >= MAX_RESTARTS:
            self._refuse_ended(one)
        one.restarts.append(now)
        assert one.process is not None
        self._tell(f"the server for {one.program.url} ended with {one.process.returncode}; started again")
        _signal(one.process, signal.SIGKILL)
        self._start(one)


def _signal(process: "subprocess.Popen[bytes]", number: int) -> None:
    """To the whole group; a group that is gone is fine."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)


def _is_ready(program: Program) -> bool:
    try:
        with urllib.request.urlopen(program.url + "/health", timeout=_ASK_S) as answer:
            if answer.status != 200:
                return False
        with urllib.request.urlopen(program.url + "/v1/models", timeout=_ASK_S) as answer:
            listed = {entry["id"] for entry in json.load(answer)["data"]}
    except (OSError, ValueError, KeyError, TypeError):
        return False
    return set(program.models) <= listed


def _refuse_used_port(url: str) -> None:
    parts = urlsplit(url)
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((parts.hostname or "", parts.port or 0))
        except OSError as error:
            raise UsageError(
                f"port {parts.port} cannot be used: {error.strerror}.",
                hint="hl model serve MODEL --port 8100",
            ) from None


def _last_words(log: Path) -> str:
    lines = [line.strip() for line in log.read_text("utf-8", "replace").splitlines() if line.strip()]
    errors = [line for line in lines if "rror" in line]
    return (errors or lines or ["no output"])[-1][-300:]
