"""The real program in real repositories: `hl(...)` runs it, `git(...)` looks at what it left."""

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest


@dataclass(frozen=True, slots=True)
class Result:
    """What one call of the program left."""

    code: int
    out: str
    err: str


Run = Callable[..., Result]


@pytest.fixture
def hl(tmp_path: Path) -> Run:
    """Run `hl ARGUMENTS` in `cwd` (default: tmp_path), with more environment if given."""

    def run(*arguments: str, cwd: Path | None = None, env: dict[str, str] | None = None) -> Result:
        done = subprocess.run(
            [sys.executable, "-m", "hl.cli", *arguments],
            cwd=cwd or tmp_path,
            env=os.environ | (env or {}),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=120,
        )
        return Result(done.returncode, done.stdout.decode(), done.stderr.decode())

    return run


@pytest.fixture
def git() -> Callable[..., str]:
    """Run git and return its stdout."""

    def run(*arguments: str, cwd: Path) -> str:
        done = subprocess.run(["git", *arguments], cwd=cwd, check=True, capture_output=True, timeout=60)
        return done.stdout.decode()

    return run
