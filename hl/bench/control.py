"""`--report shuffled|none`: a proposer that is given another task's report, or none, to show what feedback is worth."""

from collections.abc import Sequence
from dataclasses import replace

from hl.bench.plan import BenchTask
from hl.types import ProposalContext, Proposer, Reply, Report, Score


def donor_of(task: BenchTask, tasks: Sequence[BenchTask]) -> BenchTask:
    """Whose report `task` is given: the next in the list of another cluster, or of another family if there is none.

    Never its own, nor that on the same family's questions in another form. `tasks` holds two families at least.
    """
    at = tasks.index(task)
    following = [t for t in (*tasks[at + 1 :], *tasks[:at]) if t.plain != task.plain]
    return next((t for t in following if t.cluster != task.cluster), following[0])


class WithReport:
    """A proposer whose report is replaced.

    Args:
        inner: Who proposes.
        donor: The report of another task, or None for an empty one.
    """

    def __init__(self, inner: Proposer, donor: Report | None) -> None:
        self._inner = inner
        self._donor = donor
        self.name = f"{inner.name} ({'shuffled' if donor else 'no'} report)"

    def _context(self, context: ProposalContext) -> ProposalContext:
        own = context.report
        report = replace(self._donor, task=own.task, harness=own.harness) if self._donor else _empty(own)
        return replace(context, report=report)

    async def propose(self, context: ProposalContext, index: int, count: int) -> Reply:
        """Reply number `index`, without this task's report."""
        return await self._inner.propose(self._context(context), index, count)

    async def repair(self, context: ProposalContext, index: int, reply: Reply, hint: str) -> Reply:
        """As `propose`."""
        return await self._inner.repair(self._context(context), index, reply, hint)


def _empty(report: Report) -> Report:
    """The same report with nothing in it that a run could have told."""
    return Report(
        task=report.task,
        harness=report.harness,
        score=Score(0.0, 0.0, 0),
        statuses={},
        classes={},
        tool_errors={},
        failures=(),
        successes=(),
        calls_per_attempt=0.0,
        tokens_per_attempt=0.0,
        seconds_per_attempt=0.0,
        zero_call_share=0.0,
    )
