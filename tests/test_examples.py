"""Every example runs, from nothing, and ends as its text says."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
EXAMPLES = sorted((ROOT / "examples").glob("[0-9]*.py"))

ENDS = {
    "01_own_harness.py": ("accepted", "Ask politely", "not_found", "\n42\n"),
    "02_from_python.py": ("What is the capital of France? Paris\n",),
    "03_bench_run.py": (
        "Paired comparison of proposers",
        "ideas - catalog",
        "0.623 ± 0.059",
        "bars-unseen-families.svg",
    ),
    "04_own_grader.py": ("python:grader.py", "evaluation score: 0.500"),
}
"""What the output of each must hold."""


def test_every_example_has_its_end() -> None:
    assert [path.name for path in EXAMPLES] == sorted(ENDS)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda p: p.name)
def test_example_runs(path: Path, tmp_path: Path) -> None:
    command = [sys.executable, str(path), str(tmp_path / "example")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    for text in ENDS[path.name]:
        assert text in done.stdout
