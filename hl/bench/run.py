"""A whole bench run: its directory, its cells one after another, and what it spent.

Promises: killed at any instant, the same command goes on and makes no call again whose reply was recorded; another
run's directory is refused; nothing is written before every task has its questions. It prints nothing.
"""

import shutil
import tempfile
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

from hl.bench import manifest as manifests
from hl.bench.chain import one_chain
from hl.bench.control import WithReport, donor_of
from hl.bench.plan import CellPlan, Plan, cells, check
from hl.bench.repositories import index_corpora, make_questions, open_cell, store_questions
from hl.bench.rows import CHAIN, Row, load_rows, write_rows
from hl.bench.step import baselines, one_step
from hl.bench.watch import Watch
from hl.cache import Cache
from hl.codec import decode, encode
from hl.config.trust import write_file
from hl.errors import RepositoryError, UsageError
from hl.evaluate import Progress, Work
from hl.ledger.locks import hold
from hl.report import build_report
from hl.rounds import Event, Rooms
from hl.solver import Meter, RunLimits
from hl.types import Cost, Report
from hl.workspace import Switches, Workspace

SPENT = "spent.json"
SAVE_INTERVAL_S = 2.0
"""How often what was spent is taken down (as `hl revise` does)."""


def prepare(plan: Plan, out: Path, command: str, watch: Watch) -> None:
    """Make the run's directory, or see that it holds this very run.

    Raises:
        UsageError: A task is wrong, or the directory holds another run.
        RepositoryError: It holds something else.
    """
    check(plan)
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    if (out / manifests.FILE).exists():
        differs = manifests.difference(manifests.load(out), manifests.describe(plan, {}, command, now))
        if differs:
            raise UsageError(f"--out {out} holds another run: {differs}.", hint="choose another --out")
        return
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise RepositoryError(
            f"--out {out} is not empty and holds no bench run.", hint="choose another --out"
        )
    made = {
        task: make_questions(plan, task, partial(watch.questions, task.name), partial(watch.index, task.name))
        for task in plan.tasks
    }
    out.parent.mkdir(parents=True, exist_ok=True)
    # Aside, then renamed: a directory that is there is whole.
    draft = Path(tempfile.mkdtemp(dir=out.parent, prefix=f".{out.name}-"))
    try:
        questions = {task.name: store_questions(draft, task, sets) for task, sets in made.items()}
        manifests.save(draft, manifests.describe(plan, questions, command, now))
        draft.chmod(0o755)
        draft.replace(out)
    except BaseException:
        shutil.rmtree(draft, ignore_errors=True)
        raise


async def run(plan: Plan, out: Path, limits: RunLimits, switches: Switches, watch: Watch) -> tuple[Row, ...]:
    """Carry out what is left of a prepared run; returns all its rows.

    Raises:
        StoppedEarly: A run limit was reached; what was measured is kept.
        EngineError: An engine stays down; likewise.
        SandboxError: No sandbox holds here.
        LockedError: Another hl carries out this run.
    """
    with hold(out / "lock"):
        cache = Cache(out / "cache.sqlite")
        # A run that was killed wrote down less than it paid for; its cache has every reply.
        meter = Meter(limits, replace(cache.paid(), seconds=spent(out).seconds))
        try:
            return await _cells(plan, out, cache, meter, switches, _Saving(out, meter, watch))
        finally:
            cache.close()
            _save_spent(out, meter.cost)


async def _cells(
    plan: Plan, out: Path, cache: Cache, meter: Meter, switches: Switches, watch: Watch
) -> tuple[Row, ...]:
    rows = list(load_rows(out))
    finished = {row.cell for row in rows}
    planned = list(cells(plan))
    index_corpora(out, dict.fromkeys(c.task for c in planned if c.name not in finished), watch)
    for number, cell in enumerate(planned, start=1):
        if cell.name in finished:
            continue
        watch.cell(cell.name, number, len(planned))
        new = await _cell(plan, cell, out, cache, meter, switches, watch)
        rows += new
        write_rows(out, rows)
        watch.finished(new)
    return tuple(rows)


async def _cell(
    plan: Plan, cell: CellPlan, out: Path, cache: Cache, meter: Meter, switches: Switches, watch: Watch
) -> tuple[Row, ...]:
    workspace = open_cell(out, plan, cell)
    with workspace.ledger.lock():
        workspace.ledger.recover()
        async with _rooms(plan, cell, out, workspace, cache, meter, switches) as rooms:
            protocol = one_chain if cell.protocol == CHAIN else one_step
            rows = await protocol(cell, plan.settings, workspace, rooms, watch)
            names = plan.settings.baselines if cell.baselines else ()
            return (*rows, *await baselines(cell, names, workspace, rooms, watch))


@asynccontextmanager
async def _rooms(
    plan: Plan,
    cell: CellPlan,
    out: Path,
    workspace: Workspace,
    cache: Cache,
    meter: Meter,
    switches: Switches,
) -> AsyncGenerator[Rooms]:
    """The cell's rooms; the report control changes who proposes."""
    told = plan.settings.report
    donor = await _donor(plan, cell, out, cache, meter, switches) if told == "shuffled" else None
    async with workspace.rooms(cache, meter, switches) as rooms:
        yield rooms if told == "full" else replace(rooms, proposer=WithReport(rooms.proposer, donor))


async def _donor(
    plan: Plan, cell: CellPlan, out: Path, cache: Cache, meter: Meter, switches: Switches
) -> Report:
    """The report on the same seed of another task."""
    other = donor_of(cell.task, plan.tasks)
    name = next(
        c.name
        for c in cells(plan)
        if (c.task, c.protocol, c.block) == (other, cell.protocol, cell.block)
        and (c.solver, c.proposer) == (cell.solver, cell.proposer)
    )
    workspace = open_cell(out, plan, replace(cell, task=other, name=name))
    block = workspace.sets.feedback.block(0, plan.settings.feedback)
    seed = workspace.read(_first_commit(workspace))
    async with workspace.evaluator(cache, meter, switches) as evaluator:
        ((measurement, attempts),) = await evaluator.score([Work(seed.harness, block)])
    return build_report(
        workspace.spec, measurement, attempts, block, (), show_gold=workspace.config.report.gold
    )


def _first_commit(workspace: Workspace) -> str:
    """The seed's commit: the parent of the first round, or the head while there is none."""
    ledger = workspace.ledger
    return ledger.round(ledger.require_lineage(), 1).parent if ledger.next_round() > 1 else "HEAD"


class _Saving:
    """Takes down what was spent now and then, on the way to another watch."""

    def __init__(self, out: Path, meter: Meter, inner: Watch) -> None:
        self._out, self._meter, self._inner = out, meter, inner
        self._last = 0.0

    def _save(self) -> None:
        if time.monotonic() - self._last > SAVE_INTERVAL_S:
            self._last = time.monotonic()
            _save_spent(self._out, self._meter.cost)

    def questions(self, task: str, done: int, total: int) -> None:
        self._inner.questions(task, done, total)

    def index(self, task: str, done: int, total: int) -> None:
        self._inner.index(task, done, total)

    def cell(self, name: str, number: int, total: int) -> None:
        self._inner.cell(name, number, total)

    def event(self, event: Event) -> None:
        self._save()
        self._inner.event(event)

    def stage(self, what: str, total: int) -> None:
        self._inner.stage(what, total)

    def attempt(self, progress: Progress) -> None:
        self._save()
        self._inner.attempt(progress)

    def finished(self, rows: tuple[Row, ...]) -> None:
        self._inner.finished(rows)


def spent(out: Path) -> Cost:
    """What the run has cost so far, replies from the cache not counted."""
    import json

    try:
        return decode(Cost, json.loads((out / SPENT).read_bytes()))
    except FileNotFoundError:
        return Cost()
    except (OSError, ValueError) as error:
        raise RepositoryError(
            f"{out / SPENT} cannot be read: {error}.", hint=f"rm {out / SPENT}, and count anew"
        ) from None


def _save_spent(out: Path, cost: Cost) -> None:
    import json

    write_file(out / SPENT, json.dumps(encode(cost)) + "\n")
