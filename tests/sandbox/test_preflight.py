"""The probes: they see through a sandbox that is none, and a sandbox they see through does not start."""

import asyncio
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
