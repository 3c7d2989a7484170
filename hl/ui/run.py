"""Events of a run -> the progress display. Keeps the counts that a snapshot shows; decides nothing."""

import time
from collections import Counter

from hl.evaluate import Progress
from hl.rounds import Event
from hl.types import Decision, Outcome, Round, Score
from hl.ui.progress import ProgressDisplay, Snapshot
from hl.ui.text import one_line, render_gain, render_score

PHASES = {
    "measure": "parent",
    "propose": "proposing",
    "smoke": "smoke test",
    "score": "scoring",
    "confirm": "confirming",
}


class RunProgress:
    """Feeds a display. Call it with every `Event`; use `attempt` for attempts outside a round.

    Args:
        display: Where to show.
        rounds: Number of the last round planned; 0 outside a chain.
    """

    def __init__(self, display: ProgressDisplay, rounds: int = 0) -> None:
        self._display = display
        self._rounds = rounds
        self._round = 0
        self._outcomes: Counter[str] = Counter()
        self._best: Score | None = None
        self._calls = 0
        self._begin("", 0)

    def _begin(self, phase: str, total: int) -> None:
        self._phase, self._total, self._done = phase, total, 0
        self._started = time.monotonic()
        self._fresh = 0
        self._calls = 0

    def __call__(self, event: Event) -> None:
        """Take one event of a round."""
        if event.kind == "stage":
            if event.stage == "measure":
                self._outcomes.clear()
            self._round = event.round
            self._begin(PHASES.get(event.stage, event.stage), event.total)
        elif event.kind == "attempt" and event.attempt is not None:
            self._count(event.attempt.calls, event.cached)
        elif event.kind == "proposal" and event.proposal is not None:
            self._outcomes[event.proposal.outcome.value] += 1
            self._done += event.proposal.outcome is Outcome.SCORED
        elif event.kind == "round" and event.result is not None:
            self._best = _best(self._best, event.result)
            self._display.tell(render_round(event.result))
        self._show()

    def stage(self, phase: str, total: int) -> None:
        """Attempts outside a round begin."""
        self._round = 0
        self._begin(phase, total)
        self._show()

    def attempt(self, progress: Progress) -> None:
        """One attempt outside a round has ended."""
        self._count(progress.attempt.calls, progress.cached)
        self._show()

    def _count(self, calls: int, cached: bool) -> None:
        self._done += 1
        if not cached:
            self._fresh += 1
            self._calls += calls

    def _show(self) -> None:
        passed = time.monotonic() - self._started
        left = None
        if self._fresh >= 4 and self._total > self._done:
            left = passed / self._fresh * (self._total - self._done)
        self._display.update(
            Snapshot(
                phase=self._phase,
                done=self._done,
                total=self._total,
                round=self._round,
                rounds=self._rounds,
                outcomes=dict(self._outcomes),
                best=self._best,
                calls_per_s=self._calls / passed if passed > 1 and self._calls else 0.0,
                left_s=left,
            )
        )


def _best(best: Score | None, result: Round) -> Score | None:
    scores = [result.scoring.score, *(c.scoring.score for c in result.candidates if c.scoring)]
    if best is not None:
        scores.append(best)
    return max(scores, key=lambda s: s.mean)


def render_round(result: Round) -> str:
    """One line: `round 2: accepted, gain +0.312 ± 0.085 (confirmed); scored 3, not_found 1; "Run the code"`."""
    verdict = result.verdict
    counts = Counter(c.proposal.outcome.value for c in result.candidates)
    outcomes = ", ".join(f"{n} {name}" for name, n in sorted(counts.items()))
    if verdict.confirmed is not None:
        gain = f", gain {render_gain(verdict.confirmed)} (confirmed)"
    elif verdict.selection is not None:
        gain = f", gain {render_gain(verdict.selection)} (selection)"
    else:
        gain = ""
    winner = (
        result.candidates[verdict.winner].proposal.summary if verdict.winner is not None else "no candidate"
    )
    noise = (
        " (within noise)"
        if verdict.decision is Decision.ACCEPTED and verdict.evidence == "within noise"
        else ""
    )
    parent = render_score(result.scoring.score)
    head = f"round {result.number}: {verdict.decision.value}{noise}{gain}"
    return f"{head}; parent {parent}; {outcomes}; {one_line(winner, 70)}"
