"""What every protocol does in its cell: rounds from the seed on, and everything they scored on the evaluation set."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hl.bench.plan import CellPlan
from hl.bench.rows import AGAIN, PROPOSAL, ROUND, SEED, Row, Took, sample
from hl.bench.watch import Watch
from hl.evaluate import Work
from hl.measure import measure_each
from hl.rounds import ChainState, Rooms, Stops, run_chain
from hl.types import Measurement, Outcome, Revision
from hl.workspace import Workspace

if TYPE_CHECKING:
    from hl.ledger.rounds import RoundRecord


@dataclass(frozen=True, slots=True)
class Done:
    """A cell whose rounds are over."""

    seed: Revision
    records: "tuple[RoundRecord, ...]"
    """Round by round."""
    found: Mapping[str, Measurement]
    """Harness digest -> its measurement on the evaluation set: the seed and every candidate that was scored."""
    rows: tuple[Row, ...]
    """The seed's, and each round's with its proposals."""


async def carry_out(cell: CellPlan, rounds: int, workspace: Workspace, rooms: Rooms, watch: Watch) -> Done:
    """Carry out what is left of the rounds and of their evaluation, and read the rows from the ledger.

    Raises:
        StoppedEarly: A run limit was reached; what was measured is kept.
        EngineError: An engine stays down; likewise.
    """
    ledger = workspace.ledger
    state = ChainState(done=ledger.next_round() - 1)
    await run_chain(workspace.book(), rooms, Stops(rounds), state, on_event=watch.event)
    lineage = ledger.require_lineage()
    records = tuple(ledger.round(lineage, number) for number in range(1, rounds + 1))
    seed = workspace.read(records[0].parent)
    scored = [p for record in records for p in record.proposals if p.outcome is Outcome.SCORED]
    revisions = [seed, *(workspace.read(p.commit) for p in scored)]
    block, trials = workspace.sets.evaluation, workspace.config.solver.trials
    distinct = len({r.harness.digest for r in revisions})
    watch.stage("evaluation", distinct * len(block.questions) * trials)
    measured = await measure_each(workspace, rooms.evaluator, revisions, block, trials, watch.attempt)
    found = {m.harness: m for m in measured}
    start = row(
        cell,
        SEED,
        harness=seed.harness.digest,
        commit=seed.commit,
        scoring=sample(records[0].scoring),
        evaluation=sample(found[seed.harness.digest]),
    )
    of_rounds = [r for n, record in enumerate(records, start=1) for r in _round_rows(cell, n, record, found)]
    return Done(seed, records, found, (start, *of_rounds))


async def again(
    cell: CellPlan, named: Sequence[tuple[str, Revision]], workspace: Workspace, rooms: Rooms, watch: Watch
) -> list[Row]:
    """A/A: each harness once more under new trial seeds: other cache entries, so that every call is made once more.

    Args:
        cell: Proposers share its trials, other contexts and chains do not, though all share the run's cache.
        named: Name of the row, harness.
        workspace: The cell's.
        rooms: The cell's.
        watch: Told of progress.
    """
    block, trials = workspace.sets.evaluation, workspace.config.solver.trials
    works = [Work(r.harness, block, trials=trials, first_trial=trials * cell.block) for _, r in named]
    watch.stage("A/A control", len(works) * len(block.questions) * trials)
    # Not in the ledger, where a score does not say which trials it averages.
    scored = await rooms.evaluator.score(works, watch.attempt)
    return [
        row(cell, AGAIN, name=name, harness=r.harness.digest, commit=r.commit, evaluation=sample(measurement))
        for (name, r), (measurement, _) in zip(named, scored, strict=True)
    ]


def row(cell: CellPlan, kind: str, **values: object) -> Row:
    """A row of a cell."""
    return Row(
        cell=cell.name,
        protocol=cell.protocol,
        kind=kind,
        task=cell.task.name,
        family=cell.task.family,
        cluster=cell.task.cluster,
        role=cell.task.role,
        solver=cell.solver.label,
        proposer=cell.proposer.label,
        block=cell.block,
        **values,  # pyright: ignore[reportArgumentType]
    )


def _round_rows(
    cell: CellPlan, number: int, record: "RoundRecord", found: Mapping[str, Measurement]
) -> list[Row]:
    """What the round revised, and one row a proposal."""
    revised = row(
        cell,
        ROUND,
        round=number,
        outcome=record.verdict.decision.value,
        harness=record.parent_harness,
        commit=record.parent,
        scoring=sample(record.scoring),
        took=_took(record),
    )
    proposals = [
        row(
            cell,
            PROPOSAL,
            round=number,
            index=p.index,
            outcome=p.outcome.value,
            summary=p.summary,
            harness=p.harness,
            duplicate_of=p.duplicate_of,
            behavioural_noop=p.behavioural_noop,
            commit=p.commit,
            scoring=sample(p.scoring) if p.scoring is not None else None,
            evaluation=sample(found[p.harness]) if p.scoring is not None else None,
            proposer_tokens=p.prompt_tokens + p.completion_tokens,
        )
        for p in record.proposals
    ]
    return [revised, *proposals]


def _took(record: "RoundRecord") -> Took:
    candidates = [p.scoring for p in record.proposals if p.scoring is not None]
    measured: Sequence[Measurement] = (record.feedback, record.scoring, *candidates, *record.confirmation)
    return Took(
        sum(m.calls for m in measured),
        sum(m.tokens for m in measured),
        record.cost.calls,
        record.cost.prompt_tokens + record.cost.completion_tokens,
    )
