"""The progress of a bench run."""

from typing import Any

from hl.rounds import Event
from hl.types import Outcome, Proposal, Reply
from hl.ui.bench import BenchProgress
from hl.ui.progress import Snapshot


class Seen:
    """A display that keeps what it is shown."""

    def __init__(self) -> None:
        self.shown: list[Snapshot] = []
        self.told: list[str] = []

    def __enter__(self) -> "Seen":
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def update(self, snapshot: Snapshot) -> None:
        self.shown.append(snapshot)

    def tell(self, text: str) -> None:
        self.told.append(text)


def test_a_cell_begins_with_nothing_of_the_one_before() -> None:
    seen = Seen()
    progress = BenchProgress(seen, 0, lambda rows: f"{rows} rows")
    progress.cell("gcd-1", 1, 2)
    progress.event(Event("stage", 1, "smoke", total=1))
    progress.event(
        Event("proposal", 1, "smoke", proposal=Proposal(0, "catalog 1", Reply("x"), Outcome.SCORED))
    )
    progress.stage("evaluation", 3)
    assert seen.shown[-1].phase == "[1/2] gcd-1: evaluation" and seen.shown[-1].outcomes == {"scored": 1}
    rows: Any = 9
    progress.finished(rows)
    assert seen.told[0].startswith("[1/2] gcd-1: 9 rows; about")
    progress.cell("lcm-1", 2, 2)
    progress.stage("seed", 3)
    assert seen.shown[-1].phase == "[2/2] lcm-1: seed" and seen.shown[-1].outcomes == {}
