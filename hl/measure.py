"""One measurement of one revision: run it on a block, keep the transcripts, add the score to the ledger.

Nothing is overwritten: a measurement is added beside what is there, unless exactly this one is there already.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

from hl.codec import encode
from hl.errors import UsageError
from hl.evaluate import Evaluator, Progress, Work
from hl.types import Attempt, Measurement, QuestionSet, Revision, Role
from hl.workspace import Workspace


def default_size(workspace: Workspace, role: Role) -> int:
    """Questions that `hl eval` takes of a set when not told: one round's block, or the whole evaluation set."""
    r = workspace.config.round
    wanted = {
        Role.FEEDBACK: r.feedback,
        Role.SCORING: r.scoring,
        Role.CONFIRMATION: r.confirmation,
        Role.EVALUATION: r.evaluation,
    }[role]
    return min(wanted, len(workspace.sets.of(role).questions))


def choose_work(workspace: Workspace, revision: Revision, role: Role, size: int | None, trials: int) -> Work:
    """The first `size` questions of a set, as work.

    Raises:
        UsageError: The set has fewer questions.
    """
    pool = workspace.sets.of(role)
    size = default_size(workspace, role) if size is None else size
    if not 1 <= size <= len(pool.questions):
        raise UsageError(
            f"-n {size}: the {role.value} set has {len(pool.questions)} questions.",
            hint=f"hl eval --set {role.value}",
        )
    return Work(revision.harness, pool.block(0, size), trials=trials)


def stored(workspace: Workspace, evaluator: Evaluator, work: Work) -> Measurement | None:
    """The newest stored measurement of exactly this work under exactly these conditions."""
    found = [
        m
        for m in workspace.ledger.measurements(harness=work.harness.digest)
        if m.questions == work.block.digest
        and m.role == work.block.role
        and m.solver == evaluator.identity
        and m.trials == work.trials
        and None not in m.grades
    ]
    return found[-1] if found else None


async def measure(
    workspace: Workspace,
    evaluator: Evaluator,
    revision: Revision,
    work: Work,
    on_attempt: Callable[[Progress], None] | None = None,
) -> tuple[Measurement, tuple[Attempt, ...]]:
    """Run the work and add its measurement to the ledger.

    Raises:
        StoppedEarly: A run limit was reached; finished attempts are in the cache.
        EngineError: The engine stays down; likewise.
    """
    ((measurement, attempts),) = await evaluator.score([work], on_attempt)
    record = workspace.records.put({"kind": "attempts", "attempts": encode(attempts)})
    measurement = replace(measurement, record=record)
    known = workspace.ledger.measurements(harness=work.harness.digest)
    if not any(_same(measurement, m) for m in known):
        workspace.ledger.add_measurements(revision.commit, [measurement])
    return measurement, attempts


async def measure_once(
    workspace: Workspace,
    evaluator: Evaluator,
    revision: Revision,
    work: Work,
    on_attempt: Callable[[Progress], None] | None = None,
) -> Measurement:
    """The stored measurement of this work, or a new one."""
    if (found := stored(workspace, evaluator, work)) is not None:
        # It may hang on another commit with the same harness; readers of the log look at this one first.
        if found not in workspace.ledger.measurements(commit=revision.commit):
            workspace.ledger.add_measurements(revision.commit, [found])
        return found
    return (await measure(workspace, evaluator, revision, work, on_attempt))[0]


async def measure_each(
    workspace: Workspace,
    evaluator: Evaluator,
    revisions: Sequence[Revision],
    block: QuestionSet,
    trials: int,
    on_attempt: Callable[[Progress], None] | None = None,
) -> tuple[Measurement, ...]:
    """Measure revisions on one block, all in one queue; a harness that comes twice is run once.

    Returns:
        One measurement a revision, the stored one where there is one.

    Raises:
        StoppedEarly: A run limit was reached; finished attempts are in the cache.
        EngineError: The engine stays down; likewise.
    """
    first = {r.harness.digest: r for r in reversed(revisions)}
    works = {digest: Work(r.harness, block, trials=trials) for digest, r in first.items()}
    found = {digest: stored(workspace, evaluator, work) for digest, work in works.items()}
    missing = [digest for digest, measurement in found.items() if measurement is None]
    scored = await evaluator.score([works[digest] for digest in missing], on_attempt)
    for digest, (measurement, attempts) in zip(missing, scored, strict=True):
        record = workspace.records.put({"kind": "attempts", "attempts": encode(attempts)})
        found[digest] = replace(measurement, record=record)
        workspace.ledger.add_measurements(first[digest].commit, [replace(measurement, record=record)])
    return tuple(m for r in revisions if (m := found[r.harness.digest]) is not None)


def _same(a: Measurement, b: Measurement) -> bool:
    """Equal but for the time that the ledger stamped."""
    return replace(a, time="") == replace(b, time="")
