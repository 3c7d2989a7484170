"""The probes: they see through a sandbox that is none, and a sandbox they see through does not start."""

import asyncio
import os
import subprocess
import sys
from dataclasses import dataclass

import pytest

from hl.errors import SandboxError
from hl.sandbox.host import preflight
from hl.sandbox.preflight import run_probes
from tests.sandbox.kit import Box


def test_nothing_gets_through(box: Box) -> None:
    assert len(box.sandbox.probes) >= 15
    assert [probe.name for probe in box.sandbox.probes if not probe.blocked] == []


def test_probes_notice_a_missing_sandbox(runner: asyncio.Runner) -> None:
    through = {probe.name for probe in runner.run(preflight(unsafe=True)) if not probe.blocked}
    assert {
        "read a file",
        "fork",
        "open a TCP socket",
        "see another process",
        "signal another process",
    } <= through


@pytest.mark.parametrize("names", [("OMP_NUM_THREADS", "PWD"), ("HOME", "PATH"), ("HL_SECRET",), ()])
def test_the_sandbox_s_own_variables_are_no_leak(
    runner: asyncio.Runner, best: Box, monkeypatch: pytest.MonkeyPatch, names: tuple[str, ...]
) -> None:
    """A bare environment, as a service manager or `env -i` gives it, whose names the sandbox may use itself."""
    for name in list(os.environ):
        monkeypatch.delenv(name)
    for name in names:
        monkeypatch.setenv(name, "1")
    (probe,) = (p for p in runner.run(run_probes(best.sandbox.python)) if p.name == "see the environment")
    assert probe.blocked, probe.detail


def test_a_variable_that_is_seen_is_noticed(runner: asyncio.Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HL_SECRET", "1")

    @dataclass
    class Ran:
        stdout: str
        error: str = ""

    async def python(code: str, *, timeout_s: float) -> Ran:
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
        return Ran(done.stdout, done.stderr)

    (probe,) = (p for p in runner.run(run_probes(python)) if p.name == "see the environment")
    assert not probe.blocked


def test_preflight_for_the_doctor(runner: asyncio.Runner, best: Box) -> None:
    probes = runner.run(preflight())
    assert {probe.blocked for probe in probes} == {True}
    assert all(probe.tried and probe.detail for probe in probes)


def test_a_sandbox_that_runs_nothing_is_no_sandbox(runner: asyncio.Runner) -> None:
    @dataclass
    class Ran:
        stdout: str = ""
        error: str = "Traceback\nImportError: no json"

    async def python(code: str, *, timeout_s: float) -> Ran:
        return Ran()

    with pytest.raises(SandboxError, match="ImportError: no json"):
        runner.run(run_probes(python))
