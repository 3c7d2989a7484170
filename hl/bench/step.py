"""The protocol of one step: K proposals on the seed, all measured on the evaluation set, and the A/A control."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from hl.bench.cell import carry_out, row
from hl.bench.plan import CellPlan, Settings
from hl.bench.rows import AGAIN, BASELINE, SINGLE, Row, sample
from hl.bench.watch import Watch
from hl.evaluate import Work
from hl.new import load_seed
from hl.rounds import Rooms
from hl.types import Revision
from hl.workspace import Workspace

if TYPE_CHECKING:
    from hl.ledger.rounds import ProposalRecord


async def one_step(
    cell: CellPlan, settings: Settings, workspace: Workspace, rooms: Rooms, watch: Watch
) -> tuple[Row, ...]:
    """Carry out what is left of the step, and read its rows from the ledger.

    Raises:
        StoppedEarly: A run limit was reached; what was measured is kept.
        EngineError: An engine stays down; likewise.
    """
    done = await carry_out(cell, 1, workspace, rooms, watch)
    if not settings.again or cell.protocol != SINGLE:
        return done.rows
    winner = done.records[0].winner
    return (*done.rows, *await _again(cell, workspace, rooms, done.seed, winner, watch))


async def _again(
    cell: CellPlan,
    workspace: Workspace,
    rooms: Rooms,
    seed: Revision,
    winner: "ProposalRecord | None",
    watch: Watch,
) -> list[Row]:
    """Seed and winner under new trial seeds: other cache entries, so that every call is made once more."""
    block, trials = workspace.sets.evaluation, workspace.config.solver.trials
    named = [("seed", seed)] + ([("winner", workspace.read(winner.commit))] if winner is not None else [])
    # Contexts share the run's cache, and must not share the control's trials.
    works = [Work(r.harness, block, trials=trials, first_trial=trials * cell.block) for _, r in named]
    watch.stage("A/A control", len(works) * len(block.questions) * trials)
    # Not in the ledger, where a score does not say which trials it averages.
    scored = await rooms.evaluator.score(works, watch.attempt)
    return [
        row(cell, AGAIN, name=name, harness=r.harness.digest, commit=r.commit, evaluation=sample(measurement))
        for (name, r), (measurement, _) in zip(named, scored, strict=True)
    ]


async def baselines(
    cell: CellPlan, names: Sequence[str], workspace: Workspace, rooms: Rooms, watch: Watch
) -> tuple[Row, ...]:
    """The hand-made harnesses on the evaluation set; they are no revisions of the seed, so the ledger has none."""
    if not names:
        return ()
    block, trials = workspace.sets.evaluation, workspace.config.solver.trials
    works = [Work(load_seed(name), block, trials=trials) for name in names]
    watch.stage("baselines", len(works) * len(block.questions) * trials)
    scored = await rooms.evaluator.score(works, watch.attempt)
    return tuple(
        row(cell, BASELINE, name=name, harness=work.harness.digest, evaluation=sample(measurement))
        for name, work, (measurement, _) in zip(names, works, scored, strict=True)
    )
