"""The protocol of a chain: rounds from the seed on, every candidate and every head measured on the evaluation set."""

from hl.bench.plan import CellPlan, Settings
from hl.bench.rows import HEAD, SEED, Row, sample
from hl.bench.step import evaluate, proposal_rows, row
from hl.bench.watch import Watch
from hl.rounds import ChainState, Rooms, Stops, run_chain
from hl.types import Outcome, Revision
from hl.workspace import Workspace


async def one_chain(
    cell: CellPlan, settings: Settings, workspace: Workspace, rooms: Rooms, watch: Watch
) -> tuple[Row, ...]:
    """Carry out what is left of the chain, and read its rows from the ledger.

    Raises:
        StoppedEarly: A run limit was reached; what was measured is kept.
        EngineError: An engine stays down; likewise.
    """
    ledger = workspace.ledger
    state = ChainState(done=ledger.next_round() - 1)
    await run_chain(workspace.book(), rooms, Stops(settings.rounds), state, on_event=watch.event)
    lineage = ledger.require_lineage()
    records = [ledger.round(lineage, number) for number in range(1, settings.rounds + 1)]
    seed = workspace.read(records[0].parent)
    revisions: list[Revision] = [seed]
    for record in records:
        revisions += [workspace.read(p.commit) for p in record.proposals if p.outcome is Outcome.SCORED]
    found = await evaluate(workspace, rooms, revisions, workspace.sets.evaluation, watch)
    start = found[seed.harness.digest]
    rows = [
        row(
            cell,
            SEED,
            harness=seed.harness.digest,
            commit=seed.commit,
            scoring=sample(records[0].scoring),
            evaluation=sample(start),
        )
    ]
    for number, record in enumerate(records, start=1):
        rows += proposal_rows(cell, number, record.proposals, found)
        taken = record.accepted
        digest = record.parent_harness if taken is None else taken.harness
        rows.append(
            row(
                cell,
                HEAD,
                round=number,
                harness=digest,
                commit=record.parent if taken is None else taken.commit,
                outcome=record.verdict.decision.value,
                scoring=sample(record.scoring if taken is None or taken.scoring is None else taken.scoring),
                evaluation=sample(found[digest]),
            )
        )
    return tuple(rows)
