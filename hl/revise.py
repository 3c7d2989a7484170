"""A whole `hl revise`: budgets, journal, the evaluation before and after, and the chain of rounds between.

Promises: at any instant the run can be killed and continued, and no call whose reply was recorded is made again; what a
stopped run has measured is recorded. It prints nothing: progress goes to callbacks, the result is a `Summary`.
"""

import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from hl.errors import RepositoryError
from hl.evaluate import Progress
from hl.journal import Journal, Options, Run
from hl.measure import choose_work, measure_once
from hl.rounds import ChainState, Event, Stops, head_mean, planned_attempts, run_chain
from hl.selection import pair
from hl.solver import Meter, RunLimits
from hl.types import HAND_OVER, Cost, Decision, Gain, Measurement, Revision, Role, Round
from hl.workspace import Switches, Workspace

SAVE_INTERVAL_S = 2.0
"""How often the journal takes down what was spent (ours)."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What `--dry-run` prints. Upper bounds: duplicates, failed edits and stored attempts cost nothing."""

    attempts: int
    calls: int
    tokens: int
    measured: bool
    """Whether an attempt's calls and tokens were measured on this repository, or guessed as one call of 512 tokens."""


@dataclass(frozen=True, slots=True)
class Summary:
    """What a run came to."""

    reason: str
    """Why it ended."""
    rounds: tuple[int, ...]
    accepted: tuple[int, ...]
    """The rounds that moved the branch; the last one is where progress ended."""
    before: Measurement | None
    """Of the starting harness on the evaluation set."""
    after: Measurement | None
    gain: Gain | None
    """After against before, paired."""
    outcomes: Mapping[str, int]
    """Proposals of the run by outcome."""
    cost: Cost
    cached: int
    """Replies that came from the cache."""
    boundary: str
    """What still fails: `hand-over`, `algorithm`, or nothing (the paper's hard boundary)."""
    commit: str
    """The head at the end."""
    results: tuple[Round, ...] = field(default=(), repr=False)


def plan(workspace: Workspace, rounds: int) -> Plan:
    """Count what a run would need at most."""
    attempts = planned_attempts(workspace.round_settings(), rounds, workspace.sets)
    head = workspace.read()
    # An ablated solver is asked, but nothing is spent on it.
    known = [
        m
        for m in workspace.ledger.measurements(harness=head.harness.digest)
        if sum(m.counts.values()) and not m.ablation
    ]
    calls, tokens = float(attempts), attempts * 512.0
    if known:
        runs = sum(known[-1].counts.values())
        calls, tokens = attempts * known[-1].calls / runs, attempts * known[-1].tokens / runs
    r, p = workspace.config.round, workspace.config.proposer
    asked = 0 if p.engine == "catalog" else rounds * r.proposals * (1 + r.repair)
    return Plan(
        attempts, round(calls) + asked, round(tokens) + asked * p.context_tokens, measured=bool(known)
    )


def open_run(workspace: Workspace, journal: Journal, options: Options) -> Run:
    """A new run from the current head.

    Raises:
        RepositoryError: An interrupted run is waiting.
    """
    if (interrupted := journal.load()) is not None:
        done = workspace.ledger.next_round(interrupted.lineage) - interrupted.first_round
        raise RepositoryError(
            f"A run was interrupted after {done} of {interrupted.options.rounds} rounds.",
            hint="hl revise --continue, or hl revise --abandon to forget it",
        )
    head = workspace.read()
    return Run(head.lineage, head.commit, workspace.ledger.next_round(head.lineage), options)


def load_run(workspace: Workspace, journal: Journal) -> Run:
    """The interrupted run.

    Raises:
        RepositoryError: There is none, or the branch is another one now.
    """
    run = journal.load()
    if run is None:
        raise RepositoryError("There is no interrupted run here.", hint="hl revise --rounds N")
    head = workspace.read()
    if head.lineage != run.lineage:
        raise RepositoryError(
            f"The interrupted run belongs to branch {run.lineage}, not {head.lineage}.",
            hint=f"git switch {run.lineage}",
        )
    return run


async def revise(
    workspace: Workspace,
    journal: Journal,
    run: Run,
    switches: Switches,
    *,
    on_event: Callable[[Event], None],
    on_stage: Callable[[str, int], None],
    on_attempt: Callable[[Progress], None],
) -> Summary:
    """Carry a run to its end.

    Args:
        workspace: With the run's overrides in its configuration.
        journal: Where the run's state is kept.
        run: New, or loaded from the journal.
        switches: From the command line.
        on_event: Told of progress inside rounds.
        on_stage: Told (what, how many attempts) of evaluations outside rounds.
        on_attempt: Told of their attempts.

    Raises:
        StoppedEarly: A run limit was reached; the journal stays.
        EngineError: An engine stays down; likewise.
        SandboxError: No sandbox holds here.
    """
    o = run.options
    limits = RunLimits(o.max_calls, o.max_tokens, o.max_seconds, o.max_cost)
    meter = Meter(limits, run.spent)
    last_save = 0.0

    def save() -> None:
        nonlocal last_save
        last_save = time.monotonic()
        journal.save(replace(run, spent=meter.cost))

    def save_now_and_then() -> None:
        if time.monotonic() - last_save > SAVE_INTERVAL_S:
            save()

    def tell(event: Event) -> None:
        save_now_and_then()
        on_event(event)

    def tell_attempt(progress: Progress) -> None:
        save_now_and_then()
        on_attempt(progress)

    results: list[Round] = []
    state = chain_state(workspace, run)

    def recorded(result: Round) -> None:
        results.append(result)
        save()

    save()
    try:
        with workspace.cache() as cache:
            async with workspace.rooms(cache, meter, switches) as rooms:

                async def evaluated(revision: Revision, what: str) -> Measurement:
                    work = choose_work(
                        workspace, revision, Role.EVALUATION, None, workspace.config.solver.trials
                    )
                    on_stage(what, len(work.block.questions) * work.trials)
                    return await measure_once(workspace, rooms.evaluator, revision, work, tell_attempt)

                start = replace(workspace.read(run.start), lineage=run.lineage)
                before = await evaluated(start, "evaluation before")
                stops = Stops(run.options.rounds, run.options.patience, run.options.target)
                reason = await run_chain(
                    workspace.book(), rooms, stops, state, on_event=tell, on_round=recorded
                )
                head = workspace.read()
                after = await evaluated(head, "evaluation after")
    finally:
        save()
    summary = _summary(reason, state, results, before, after, meter, head, workspace)
    journal.clear()
    return summary


def chain_state(workspace: Workspace, run: Run) -> ChainState:
    """What the run has done so far, as the ledger tells it.

    A number may be missing between those of the run: of a round that somebody else made and that was not fetched.
    """
    state = ChainState()
    for _, number, _ in workspace.ledger.round_refs(run.lineage):
        if number < run.first_round:
            continue
        record = workspace.ledger.round(run.lineage, number)
        took = record.verdict.decision is Decision.ACCEPTED
        chosen = record.winner.scoring if record.winner is not None else None
        state.reached = head_mean(record.scoring, chosen, record.confirmation, accepted=took)
        state.done += 1
        state.rejected = 0 if took else state.rejected + 1
        state.rounds.append(number)
    return state


def _summary(
    reason: str,
    state: ChainState,
    results: list[Round],
    before: Measurement,
    after: Measurement,
    meter: Meter,
    head: Revision,
    workspace: Workspace,
) -> Summary:
    # Rounds recorded before an interruption are read back, so that the summary tells of the whole run.
    counts: Counter[str] = Counter()
    accepted: list[int] = []
    fresh = {r.number: r for r in results}
    for number in state.rounds:
        if (result := fresh.get(number)) is not None:
            counts.update(c.proposal.outcome.value for c in result.candidates)
            took = result.verdict.decision is Decision.ACCEPTED
        else:
            record = workspace.ledger.round(head.lineage, number)
            counts.update(p.outcome.value for p in record.proposals)
            took = record.verdict.decision is Decision.ACCEPTED
        if took:
            accepted.append(number)
    return Summary(
        reason=reason,
        rounds=tuple(state.rounds),
        accepted=tuple(accepted),
        before=before,
        after=after,
        gain=pair(before, after) if before.score.n and after.score.n else None,
        outcomes=dict(counts),
        cost=meter.cost,
        cached=meter.cached,
        boundary=boundary(after),
        commit=head.commit,
        results=tuple(results),
    )


def boundary(measurement: Measurement) -> str:
    """Whether most of what still fails is a broken hand-over or a wrong algorithm; empty if nothing fails."""
    hand_over = sum(n for name, n in measurement.classes.items() if name in {str(c) for c in HAND_OVER})
    wrong = sum(measurement.classes.values()) - hand_over
    if hand_over + wrong == 0:
        return ""
    return "hand-over" if hand_over > wrong else "algorithm"
