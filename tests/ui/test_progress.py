"""Progress on a terminal and off it."""

import io
import os
import pty
import subprocess
import sys

from hl.types import Score
from hl.ui.progress import PlainProgress, Snapshot, open_progress, render_snapshot


def test_a_snapshot_as_one_line() -> None:
    snapshot = Snapshot(
        "scoring", 45, 128, "", 2, 10, {"scored": 3, "not_found": 1}, Score(0.8125, 0.0487, 64), 12.34, 84.0
    )
    expected = "round 2/10 scoring 45/128 | 3 scored, 1 not_found | best 0.812 ± 0.049 (n=64)"
    expected += " | 12.3 calls/s | 84 s left"
    assert render_snapshot(snapshot) == expected
    assert render_snapshot(Snapshot("evaluation", 3)) == "evaluation"
    assert render_snapshot(Snapshot("smollm2", 1_000_000, 98_400_000, "bytes")) == "smollm2 1.0 MB/98.4 MB"


def test_plain_progress_tells_each_phase_once_and_every_told_line() -> None:
    stream = io.StringIO()
    with open_progress(stream=stream) as display:
        assert isinstance(display, PlainProgress)
        for done in range(100):
            display.update(Snapshot("scoring", done, 100, round=1))
        display.tell("round 1: accepted")
        display.update(Snapshot("confirming", 0, 8, round=1))
    assert stream.getvalue() == "round 1 scoring 0/100\nround 1: accepted\nround 1 confirming 0/8\n"


def test_quiet_progress_only_tells() -> None:
    stream = io.StringIO()
    with open_progress(quiet=True, stream=stream) as display:
        display.update(Snapshot("scoring", 1, 2))
        display.tell("done")
    assert stream.getvalue() == "done\n"


LIVE = """
from hl.types import Score
from hl.ui.progress import LiveProgress, Snapshot, open_progress
with open_progress() as display:
    assert isinstance(display, LiveProgress)
    display.update(Snapshot("scoring [bold]", 45, 128, round=2, rounds=10, best=Score(0.5, 0.1, 8)))
    display.tell("round 1: [red]accepted[/red]")
"""


def test_live_progress_draws_on_a_terminal_and_leaves_told_lines() -> None:
    leader, follower = pty.openpty()
    env = os.environ | {"TERM": "xterm", "COLUMNS": "120"}
    subprocess.run([sys.executable, "-c", LIVE], stderr=follower, env=env, check=True, timeout=60)
    os.close(follower)
    text = b""
    try:
        while chunk := os.read(leader, 65536):
            text += chunk
    except OSError:
        pass  # the other end is closed: all is read
    os.close(leader)
    shown = text.decode()
    assert "round 2/10 scoring [bold] 45/128" in shown and "best 0.500 ± 0.100 (n=8)" in shown
    assert "round 1: [red]accepted[/red]" in shown  # words of a model are not markup
