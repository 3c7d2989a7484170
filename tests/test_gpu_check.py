"""`make gpu-check` where there is no GPU: it says so, and that is no failure. Its steps run on the CPU too."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

ROOT = Path(__file__).resolve().parent.parent


def check(*arguments):
    command = [sys.executable, "scripts/gpu_check.py", *arguments]
    environment = os.environ | {"CUDA_VISIBLE_DEVICES": ""}
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=240)


def test_without_a_gpu_it_skips_itself():
    done = check()
    assert (done.returncode, done.stdout) == (0, "gpu-check: skipped, there is no GPU here\n")


@pytest.mark.slow
def test_its_engine_steps_hold_on_a_cpu():
    lines = [line.split(maxsplit=1) for line in check("--cpu").stdout.splitlines()[1:]]
    assert [state for state, _ in lines[:2]] == ["ok", "ok"], lines
