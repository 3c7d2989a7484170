"""Rows again: every reply is applied once more, and its candidate scored once more on the questions it was scored on.

Promises: nothing is taken from a cache, so that a row that comes to what it claims does so by running; a row whose
questions are not at hand, or that was measured under another solver, is said to be unchecked, never passed.
"""

from collections.abc import Callable, Iterable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass

from hl.cache import Cache
from hl.edits import EditError, apply_edits, parse_reply
from hl.errors import HlError
from hl.evaluate import Evaluator, Progress, Work
from hl.selection import pair
from hl.solver import Meter, RunLimits
from hl.types import Gain, Harness, QuestionSet
from hl.workspace import Switches, Workspace
from training.data import Row

SAME, WITHIN_NOISE, DIFFERS, DOES_NOT_APPLY, UNCHECKED = STATES = (
    "same",
    "within noise",
    "differs",
    "does not apply",
    "not scored here",
)
NOISE = 3.0
"""Standard errors of both gains together that a repetition may differ by (ours): models in batches are not exact."""


@dataclass(frozen=True, slots=True)
class Check:
    """What came of one row."""

    row: Row
    state: str
    """One of `STATES`."""
    again: Gain | None = None
    """The gain as it came out now."""
    detail: str = ""


def reapply(row: Row) -> Harness | None:
    """The candidate that a row's reply makes, if it is the one that the row claims."""
    try:
        candidate = apply_edits(row.context.harness, parse_reply(row.reply))
    except EditError:
        return None
    return candidate if candidate.digest == row.candidate else None


async def verify(
    rows: Sequence[Row],
    workspaces: Iterable[Workspace],
    limits: RunLimits,
    switches: Switches,
    on_attempt: Callable[[Progress], None] = lambda _: None,
) -> tuple[Check, ...]:
    """Check every row that has a reply.

    Args:
        rows: To check.
        workspaces: Repositories that hold their questions; the first one's solver scores.
        limits: Of this check.
        switches: What only the command line may say.
        on_attempt: Told after each attempt.

    Raises:
        StoppedEarly: A limit was reached; nothing of a check is kept.
        EngineError: The solver stays down.
    """
    written = [row for row in rows if row.reply]
    made = {row.id: reapply(row) for row in written}
    wanted = {row.context.scoring for row in written if row.gain is not None}
    cache = Cache(None)
    checks: dict[str, Check] = {}
    try:
        async with AsyncExitStack() as stack:
            machines = None
            for workspace in workspaces:
                block = _block(workspace, wanted)
                if block is None:
                    continue
                if machines is None:
                    machines = await stack.enter_async_context(
                        workspace.machines(cache, Meter(limits), switches)
                    )
                evaluator = workspace.evaluator_on(machines, switches)
                for digest, questions in block.items():
                    here = [r for r in written if r.context.scoring == digest and r.id not in checks]
                    for check in await _score(here, made, questions, evaluator, workspace, on_attempt):
                        checks[check.row.id] = check
    finally:
        cache.close()
    return tuple(checks.get(row.id) or _unscored(row, made[row.id]) for row in written)


def _block(workspace: Workspace, wanted: set[str]) -> dict[str, QuestionSet] | None:
    """Digest -> the scoring blocks of a repository that rows ask for."""
    pool, size = workspace.sets.scoring, workspace.config.round.scoring
    found: dict[str, QuestionSet] = {}
    for index in range(max(1, -(-len(pool.questions) // size))):
        block = pool.block(index, size)
        if block.digest in wanted:
            found[block.digest] = block
    return found or None


async def _score(
    rows: Sequence[Row],
    made: dict[str, Harness | None],
    block: QuestionSet,
    evaluator: Evaluator,
    workspace: Workspace,
    on_attempt: Callable[[Progress], None],
) -> list[Check]:
    """The rows of one block, all in one queue."""
    ready: list[tuple[Row, Harness]] = []
    checks: list[Check] = []
    for row in rows:
        candidate = made[row.id]
        if candidate is None or row.gain is None:
            continue
        if (row.solver, row.grade) != (evaluator.identity, evaluator.mode):
            checks.append(
                Check(row, UNCHECKED, detail=f"it was measured under {row.solver_name}, set otherwise")
            )
            continue
        ready.append((row, candidate))
    trials = workspace.config.solver.trials
    works: dict[str, Work] = {}
    for row, candidate in ready:
        for harness in (row.context.harness, candidate):
            works.setdefault(harness.digest, Work(harness, block, trials=trials))
    scored = await evaluator.score(list(works.values()), on_attempt)
    found = {digest: measurement for digest, (measurement, _) in zip(works, scored, strict=True)}
    for row, candidate in ready:
        try:
            again = pair(found[row.context.harness.digest], found[candidate.digest])
        except HlError as error:
            checks.append(Check(row, UNCHECKED, detail=error.message))
            continue
        checks.append(Check(row, _compare(row.gain, again), again))
    return checks


def _compare(claimed: Gain | None, again: Gain) -> str:
    if claimed is None:
        return UNCHECKED
    apart = abs(claimed.mean - again.mean)
    if apart < 1e-9:
        return SAME
    return WITHIN_NOISE if apart <= NOISE * (claimed.se**2 + again.se**2) ** 0.5 else DIFFERS


def _unscored(row: Row, candidate: Harness | None) -> Check:
    if candidate is None:
        return Check(row, DOES_NOT_APPLY, detail="its reply does not make the candidate that it names")
    why = "it was never scored" if row.gain is None else "its questions are not here (--from-history REPO)"
    return Check(row, UNCHECKED, detail=why)
