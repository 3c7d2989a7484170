"""The protocol of one step: K proposals on the seed, all measured on the evaluation set, and the A/A control."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from hl.bench.plan import CellPlan, Settings
from hl.bench.rows import AGAIN, BASELINE, PROPOSAL, SEED, Row, sample
from hl.bench.watch import Watch
from hl.evaluate import Work
from hl.measure import measure_each
from hl.new import load_seed
from hl.rounds import ChainState, Rooms, Stops, run_chain
from hl.types import Measurement, Outcome, QuestionSet, Revision
from hl.workspace import Workspace

if TYPE_CHECKING:
    from hl.ledger.rounds import ProposalRecord


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


async def one_step(
    cell: CellPlan, settings: Settings, workspace: Workspace, rooms: Rooms, watch: Watch
) -> tuple[Row, ...]:
    """Carry out what is left of the step, and read its rows from the ledger.

    Raises:
        StoppedEarly: A run limit was reached; what was measured is kept.
        EngineError: An engine stays down; likewise.
    """
    ledger = workspace.ledger
    state = ChainState(done=ledger.next_round() - 1)
    await run_chain(workspace.book(), rooms, Stops(1), state, on_event=watch.event)
    record = ledger.round(ledger.require_lineage(), 1)
    seed = workspace.read(record.parent)
    scored = [p for p in record.proposals if p.outcome is Outcome.SCORED]
    revisions = [seed, *(workspace.read(p.commit) for p in scored)]
    block = workspace.sets.evaluation
    found = await evaluate(workspace, rooms, revisions, block, watch)
    rows = [
        row(
            cell,
            SEED,
            harness=seed.harness.digest,
            commit=seed.commit,
            scoring=sample(record.scoring),
            evaluation=sample(found[seed.harness.digest]),
        )
    ]
    rows += proposal_rows(cell, 1, record.proposals, found)
    if settings.again and cell.protocol == "single":
        rows += await _again(cell, workspace, rooms, seed, record.winner, block, watch)
    return tuple(rows)


async def evaluate(
    workspace: Workspace, rooms: Rooms, revisions: Sequence[Revision], block: QuestionSet, watch: Watch
) -> dict[str, Measurement]:
    """Harness digest -> its measurement on the block."""
    trials = workspace.config.solver.trials
    distinct = len({r.harness.digest for r in revisions})
    watch.stage("evaluation", distinct * len(block.questions) * trials)
    measured = await measure_each(workspace, rooms.evaluator, revisions, block, trials, watch.attempt)
    return {m.harness: m for m in measured}


def proposal_rows(
    cell: CellPlan, number: int, proposals: "Sequence[ProposalRecord]", found: dict[str, Measurement]
) -> list[Row]:
    """One row a proposal of a round."""
    return [
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
        for p in proposals
    ]


async def _again(
    cell: CellPlan,
    workspace: Workspace,
    rooms: Rooms,
    seed: Revision,
    winner: "ProposalRecord | None",
    block: QuestionSet,
    watch: Watch,
) -> list[Row]:
    """Seed and winner under new trial seeds: other cache entries, so that every call is made once more."""
    trials = workspace.config.solver.trials
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
