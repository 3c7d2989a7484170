"""Sandboxes shared by the tests of this folder: one of each tier, on one event loop."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from hl.errors import SandboxError
from hl.sandbox.host import Sandbox
from tests.sandbox.kit import Box


def _box(runner: asyncio.Runner, **options: Any) -> Iterator[Box]:
    sandbox = Sandbox(zygotes=1, **options)
    try:
        runner.run(sandbox.start())
    except SandboxError as error:
        pytest.skip(f"no such tier here: {error.message}")
    yield Box(runner, sandbox)
    runner.run(sandbox.aclose())


@pytest.fixture(scope="session")
def runner() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as runner:
        yield runner


@pytest.fixture(scope="session", params=["bwrap+landlock+seccomp", "landlock+seccomp"])
def box(request: pytest.FixtureRequest, runner: asyncio.Runner) -> Iterator[Box]:
    """Each tier that confines."""
    yield from _box(runner, tiers=(request.param,))


@pytest.fixture(scope="session")
def best(runner: asyncio.Runner) -> Iterator[Box]:
    """The tier that this machine would use."""
    yield from _box(runner)


@pytest.fixture(scope="session")
def unsafe(runner: asyncio.Runner) -> Iterator[Box]:
    """No confinement: shows that an attack would work."""
    yield from _box(runner, unsafe=True)
