"""A bench run on the terminal: which cell of how many, what goes on in it, and a line for each that is done."""

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from hl.evaluate import Progress
from hl.rounds import Event
from hl.ui.progress import ProgressDisplay, Snapshot
from hl.ui.run import RunProgress
from hl.ui.text import render_seconds


class _Inner:
    """The display as `RunProgress` sees it: every phase gets the cell's name in front, and no round is told."""

    def __init__(self, display: ProgressDisplay) -> None:
        self._display = display
        self.where = ""

    def __enter__(self) -> "_Inner":
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def update(self, snapshot: Snapshot) -> None:
        """Show it, with the cell in front."""
        at = f"round {snapshot.round}/{snapshot.rounds} " if snapshot.round and snapshot.rounds else ""
        phase = f"{self.where}{at}{snapshot.phase}"
        self._display.update(replace(snapshot, phase=phase, round=0, rounds=0))

    def tell(self, text: str) -> None:
        """A round's result; the cell's own line says enough."""


class BenchProgress:
    """Feeds a display.

    Args:
        display: Where to show.
        rounds: Of a chain; 0 for single steps.
        render: A finished cell's rows -> what it came to, on one line.
    """

    def __init__(self, display: ProgressDisplay, rounds: int, render: Callable[[Any], str]) -> None:
        self._render = render
        self._display = display
        self._inner = _Inner(display)
        self._rounds = rounds
        self._run = RunProgress(self._inner, rounds)
        self._started = time.monotonic()
        self._name, self._number, self._total, self._first = "", 0, 0, 0

    def questions(self, task: str, done: int, total: int) -> None:
        """So many of a task's questions are made."""
        self._display.update(Snapshot(phase=f"questions of {task}", done=done, total=total))

    def index(self, task: str, done: int, total: int) -> None:
        """The index of a task's corpus is built: how far, in thousandths."""
        self._display.update(Snapshot(phase=f"index of {task}", done=done, total=total))

    def cell(self, name: str, number: int, total: int) -> None:
        """A cell begins."""
        self._name, self._number, self._total = name, number, total
        self._first = self._first or number
        self._inner.where = f"[{number}/{total}] {name}: "
        self._run = RunProgress(self._inner, self._rounds)  # the best of another cell says nothing here

    def event(self, event: Event) -> None:
        """Something happened in a round."""
        self._run(event)

    def stage(self, what: str, total: int) -> None:
        """So many attempts outside a round begin."""
        self._run.stage(what, total)

    def attempt(self, progress: Progress) -> None:
        """One of them ended."""
        self._run.attempt(progress)

    def finished(self, rows: Any) -> None:
        """A cell is done: what it came to, and how long the rest will take if it goes on like this."""
        passed = time.monotonic() - self._started
        left = passed / (self._number - self._first + 1) * (self._total - self._number)
        tail = f"; about {render_seconds(left)} left" if self._number < self._total else ""
        self._display.tell(f"[{self._number}/{self._total}] {self._name}: {self._render(rows)}{tail}")
