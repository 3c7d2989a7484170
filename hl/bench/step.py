"""The protocol of one step: K proposals on the seed, all measured on the evaluation set, and the A/A control."""

from collections.abc import Sequence

from hl.bench.cell import again, carry_out, row
from hl.bench.plan import CellPlan, Settings
from hl.bench.rows import BASELINE, SINGLE, Row, sample
from hl.bench.watch import Watch
from hl.evaluate import Work
from hl.new import load_seed
from hl.rounds import Rooms
from hl.workspace import Workspace


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
    named = [
        ("seed", done.seed),
        *([("winner", workspace.read(winner.commit))] if winner is not None else []),
    ]
    return (*done.rows, *await again(cell, named, workspace, rooms, watch))


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
