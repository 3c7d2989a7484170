"""Work that takes long, on stderr: a live display on a terminal, an occasional line elsewhere. Rich only
when live.
"""

import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import IO, TYPE_CHECKING, Protocol

from hl.types import Score
from hl.ui.output import wants_colour
from hl.ui.text import one_line, render_bytes, render_counts, render_score, render_seconds

if TYPE_CHECKING:
    from rich.progress import TaskID

PLAIN_INTERVAL_S = 10.0
"""Least time between two lines where there is no terminal; a new phase is always told."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """How far `hl revise` or `hl eval` is."""

    phase: str
    """What is going on: `parent`, `proposing`, `scoring`, `confirming`, `evaluation`."""
    done: int = 0
    """Attempts, or proposals, finished in this phase."""
    total: int = 0
    """Of how many; 0 while unknown."""
    unit: str = ""
    """`bytes` for a download; empty for things that are counted."""
    round: int = 0
    """The round's number; 0 outside a round."""
    rounds: int = 0
    """The last round's number; 0 while unknown."""
    outcomes: Mapping[str, int] = field(default_factory=dict[str, int])
    """Proposals of this round by outcome."""
    best: Score | None = None
    """Best score seen in this run."""
    calls_per_s: float = 0.0
    """Model calls a second, lately."""
    left_s: float | None = None
    """Estimate of the seconds left; None while unknown."""


class ProgressDisplay(Protocol):
    """Shows snapshots; a context manager."""

    def __enter__(self) -> "ProgressDisplay": ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...
    def update(self, snapshot: Snapshot) -> None:
        """Show the latest state."""
        ...

    def tell(self, text: str) -> None:
        """Print a line that stays: a round's result."""
        ...


def open_progress(*, quiet: bool = False, stream: IO[str] | None = None) -> ProgressDisplay:
    """A display for stderr: live on a terminal, lines elsewhere, nothing but told lines if quiet."""
    target: IO[str] = sys.stderr if stream is None else stream
    if not quiet and target.isatty() and wants_colour(target):
        return LiveProgress(target)
    return PlainProgress(target, quiet=quiet)


def index_progress(display: ProgressDisplay) -> Callable[[int, int], None]:
    """Tells a display how far the index of a corpus is; called with thousandths."""
    return lambda done, total: display.update(Snapshot(phase="index", done=done, total=total))


def render_snapshot(snapshot: Snapshot) -> str:
    """One line: `round 2/10 scoring 45/128 | 3 scored, 1 noop | best 0.812 ± 0.049 (n=64) | 84 s left`."""
    head = snapshot.phase
    if snapshot.round:
        head = f"round {snapshot.round}" + (f"/{snapshot.rounds} " if snapshot.rounds else " ") + head
    if snapshot.unit == "bytes":
        head += f" {render_bytes(snapshot.done)}" + (
            f"/{render_bytes(snapshot.total)}" if snapshot.total else ""
        )
    elif snapshot.total:
        head += f" {snapshot.done}/{snapshot.total}"
    parts = [head]
    if snapshot.outcomes:
        parts.append(render_counts(snapshot.outcomes))
    if snapshot.best is not None:
        parts.append(f"best {render_score(snapshot.best)}")
    if snapshot.calls_per_s:
        parts.append(f"{snapshot.calls_per_s:.3g} calls/s")
    if snapshot.left_s is not None:
        parts.append(f"{render_seconds(snapshot.left_s)} left")
    return one_line(" | ".join(parts))


class PlainProgress:
    """Lines for a log file: one per phase at once, then one every ten seconds at most."""

    def __init__(self, stream: IO[str], *, quiet: bool = False) -> None:
        self._stream = stream
        self._quiet = quiet
        self._phase: tuple[int, str] | None = None
        self._last = 0.0

    def __enter__(self) -> "PlainProgress":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None

    def update(self, snapshot: Snapshot) -> None:
        """Print a line if the phase is new or the last line is old."""
        now = time.monotonic()
        phase = (snapshot.round, snapshot.phase)
        if self._quiet or (phase == self._phase and now - self._last < PLAIN_INTERVAL_S):
            return
        self._phase, self._last = phase, now
        self.tell(render_snapshot(snapshot))

    def tell(self, text: str) -> None:
        """Print a line."""
        self._stream.write(text + "\n")
        self._stream.flush()


class LiveProgress:
    """A bar that is drawn over itself, and told lines above it."""

    def __init__(self, stream: IO[str]) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

        self._progress: Progress = Progress(
            TextColumn("{task.fields[head]}", markup=False),
            BarColumn(bar_width=24),
            TextColumn("{task.fields[tail]}", markup=False),
            TimeElapsedColumn(),
            console=Console(file=stream, highlight=False, soft_wrap=True),
            transient=True,
            refresh_per_second=8,
        )
        self._task: TaskID | None = None

    def __enter__(self) -> "LiveProgress":
        self._progress.start()
        self._task = self._progress.add_task("", total=None, head="", tail="")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()

    def update(self, snapshot: Snapshot) -> None:
        """Redraw with the latest state."""
        if self._task is None:
            return
        head, _, tail = render_snapshot(snapshot).partition(" | ")
        self._progress.update(
            self._task, completed=snapshot.done, total=snapshot.total or None, head=head, tail=tail
        )

    def tell(self, text: str) -> None:
        """Print a line above the bar."""
        self._progress.console.print(text, markup=False, highlight=False)
