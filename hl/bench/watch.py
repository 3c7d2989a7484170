"""What a bench run tells of its progress, by callback."""

from typing import Protocol

from hl.bench.rows import Row
from hl.evaluate import Progress
from hl.rounds import Event


class Watch(Protocol):
    """Told of progress."""

    def questions(self, task: str, done: int, total: int) -> None:
        """So many of a task's questions are made."""
        ...

    def index(self, task: str, done: int, total: int) -> None:
        """The index of a task's corpus is built: how far, in thousandths."""
        ...

    def cell(self, name: str, number: int, total: int) -> None:
        """A cell begins."""
        ...

    def event(self, event: Event) -> None:
        """Something happened in a round."""
        ...

    def stage(self, what: str, total: int) -> None:
        """So many attempts outside a round begin."""
        ...

    def attempt(self, progress: Progress) -> None:
        """One of them ended."""
        ...

    def finished(self, rows: tuple[Row, ...]) -> None:
        """A cell is done; these are its rows."""
        ...
