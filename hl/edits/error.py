"""The edit room's one exception. It never leaves the room: `propose_from_reply` turns it into an outcome."""

from hl.types import Outcome


class EditError(Exception):
    """An edit that cannot become a candidate.

    Args:
        outcome: What the proposal is recorded as.
        detail: The hint for a repair turn: short, concrete, with line numbers.
    """

    def __init__(self, outcome: Outcome, detail: str) -> None:
        super().__init__(f"{outcome}: {detail}")
        self.outcome = outcome
        self.detail = detail
