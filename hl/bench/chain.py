"""The protocol of a chain: rounds from the seed on, every candidate on the evaluation set, and the A/A control."""

from hl.bench.cell import again, carry_out, row
from hl.bench.plan import CellPlan, Settings
from hl.bench.rows import HEAD, Row, sample
from hl.bench.watch import Watch
from hl.rounds import Rooms
from hl.workspace import Workspace


async def one_chain(
    cell: CellPlan, settings: Settings, workspace: Workspace, rooms: Rooms, watch: Watch
) -> tuple[Row, ...]:
    """Carry out what is left of the chain, and read its rows from the ledger.

    Raises:
        StoppedEarly: A run limit was reached; what was measured is kept.
        EngineError: An engine stays down; likewise.
    """
    done = await carry_out(cell, settings.rounds, workspace, rooms, watch)
    heads: list[Row] = []
    for number, record in enumerate(done.records, start=1):
        taken = record.accepted
        digest = record.parent_harness if taken is None else taken.harness
        heads.append(
            row(
                cell,
                HEAD,
                round=number,
                harness=digest,
                commit=record.parent if taken is None else taken.commit,
                evaluation=sample(done.found[digest]),
            )
        )
    named = [("seed", done.seed)]
    if heads[-1].harness != done.seed.harness.digest:
        named.append(("head", workspace.read(heads[-1].commit)))
    repeats = await again(cell, named, workspace, rooms, watch) if settings.again else []
    return (*done.rows, *heads, *repeats)
