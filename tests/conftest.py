"""What every test runs under: a fixed git identity and date, and no way into the user's own settings.

Set once, before any test module is imported, in the process's environment, so that child processes (git, hl,
the sandbox) see the same. `HL_CACHE_DIR` is left alone: it holds the pulled model, which tests read and never
change; a test that pulls sets its own.
"""

import os
import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import settings

# No deadline: the machine is busy when it likes. In CI the same examples every time: a red run must be ours.
settings.register_profile("hl", deadline=None, derandomize=bool(os.environ.get("CI")))
settings.load_profile("hl")

FIXED = {
    # One thread each: numpy's and OpenBLAS's pools would fight over two cores.
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "LC_ALL": "C.UTF-8",
    "TZ": "UTC",
    "TERM": "dumb",
    "GIT_AUTHOR_NAME": "Ada Tester",
    "GIT_AUTHOR_EMAIL": "ada@example.org",
    "GIT_AUTHOR_DATE": "2026-01-02T03:04:05+00:00",
    "GIT_COMMITTER_NAME": "Ada Tester",
    "GIT_COMMITTER_EMAIL": "ada@example.org",
    "GIT_COMMITTER_DATE": "2026-01-02T03:04:05+00:00",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_TERMINAL_PROMPT": "0",
}
"""Set for every test."""

REMOVED = (
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_PAGER",
    "PAGER",
    "NO_COLOR",
    "FORCE_COLOR",
    "CLICOLOR_FORCE",
    "PY_COLORS",
    "COLUMNS",
    "GITHUB_ACTIONS",
    "SOURCE_DATE_EPOCH",
    "OPENAI_API_KEY",
    "OPENAI_BASE_URL",
)
"""Unset for every test: each would change what hl prints, reads or writes."""

_config: Path | None = None


def pytest_configure(config: pytest.Config) -> None:
    """Isolate the process before anything of hl is imported."""
    global _config
    os.environ.update(FIXED)
    for name in REMOVED:
        os.environ.pop(name, None)
    for name in [n for n in os.environ if n.startswith("HL_") and n != "HL_CACHE_DIR"]:
        del os.environ[name]
    _config = Path(tempfile.mkdtemp(prefix="hl-tests-config-"))
    os.environ["HL_CONFIG_DIR"] = str(_config)
    os.environ["HL_STATE_DIR"] = str(_config / "state")


def pytest_unconfigure(config: pytest.Config) -> None:
    """Remove the run's own configuration directory."""
    if _config is not None:
        shutil.rmtree(_config, ignore_errors=True)


@pytest.fixture(autouse=True)
def own_config_dir(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user configuration directory per test: what one test trusts, no other does."""
    directory = tmp_path_factory.mktemp("config")
    monkeypatch.setenv("HL_CONFIG_DIR", str(directory))
    return directory
