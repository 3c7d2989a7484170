"""What `hl train data` does: a teacher's run and ledgers -> rows, what rows are, whether they hold. No verb itself."""

import shlex
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hl.solver import RunLimits
    from training.data import Row, Stats
    from training.mining import Mined
    from training.settings import Settings

PAPER_ROWS, PAPER_LOOPS = 432, 0.48
"""The paper's rows, and the share of interpreter loops among them."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What to do, as typed."""

    out: Path
    from_history: Sequence[Path]
    teach: bool
    """Whether a teacher is asked; ledgers alone need none."""
    limits: "RunLimits"
    unsafe: bool
    json: bool


def make(settings: "Settings", asked: Asked) -> None:
    """Let the teacher write, read the rows, and say what they are.

    Raises:
        StoppedEarly: A limit was reached; rows of what was finished are written.
        RepositoryError: A ledger cannot be read.
    """
    import asyncio

    from hl.bench.repositories import shortages
    from hl.bench.run import spent
    from hl.bench.tables import render_cell
    from hl.errors import StoppedEarly
    from hl.ui import say, warn
    from hl.ui.bench import BenchProgress
    from hl.ui.progress import open_progress
    from hl.ui.text import render_cost
    from hl.workspace import Switches
    from training.dataset import prepare, write
    from training.mining import Mined, Place, mine, rules_of
    from training.teach import RUN, places, plan_of, teach

    plan, rules = plan_of(settings), rules_of(settings)
    command = shlex.join(["hl", *sys.argv[1:]])
    prepare(asked.out, settings)
    stopped: StoppedEarly | None = None
    if asked.teach:
        with open_progress(quiet=asked.json) as display:
            watch = BenchProgress(display, 0, render_cell)
            try:
                asyncio.run(
                    teach(plan, asked.out, command, asked.limits, Switches(unsafe=asked.unsafe), watch)
                )
            except KeyboardInterrupt:
                say("stopped; what was measured is kept, and the same command goes on")
                raise
            except StoppedEarly as stop:
                stopped = stop
        for shortage in shortages(asked.out / RUN, plan):
            warn(shortage)
        say(f"spent so far: {render_cost(spent(asked.out / RUN))}")
    mined = Mined()
    for place in (*places(plan, asked.out), *(Place(repository) for repository in asked.from_history)):
        mine(place, rules, mined)
    write(asked.out, settings, mined, command, asked.from_history)
    _tell_skipped(mined)
    show(mined.rows, json=asked.json)
    if stopped is not None:
        raise StoppedEarly(stopped.message, hint="the same command with a higher limit goes on")
    say(f"rows: {asked.out / 'rows.jsonl'}; next: hl train data {shlex.quote(str(asked.out))} --verify")


def _tell_skipped(mined: "Mined") -> None:
    from hl.ui import warn

    for reason, count in mined.skipped.most_common():
        warn(f"{count} proposals are no rows: {reason}")


def dry_run(settings: "Settings", *, teach: bool, json: bool) -> None:
    """Say what the teacher's run would need."""
    import typer

    from hl.bench.plan import GUESSED_TOKENS, attempts, cells, proposer_calls
    from hl.ui import write_json
    from training.teach import plan_of

    plan = plan_of(settings)
    needed, replies, count = attempts(plan), proposer_calls(plan), len(list(cells(plan)))
    if not teach:
        needed = replies = count = 0
    if json:
        record = {
            "contexts": count,
            "attempts": needed,
            "teacher_calls": replies,
            "tokens": needed * GUESSED_TOKENS,
        }
        write_json("plan", record)
        return
    typer.echo(
        f"{count} contexts in {len(plan.tasks)} families, at most {count * settings.data.proposals:,} rows, "
        f"{needed:,} attempts and {replies:,} replies of teachers; about {needed * GUESSED_TOKENS:,} tokens of the "
        f"solver (guessing one call of {GUESSED_TOKENS} tokens an attempt)"
    )


def show(rows: "Sequence[Row]", *, json: bool) -> None:
    """Print what rows are: how many were kept, why others were not, and of which pattern they are."""
    from hl.codec import encode
    from hl.ui import clean, columns, open_output, write_json
    from training.data import stats_of

    stats = stats_of(rows)
    if json:
        write_json("stats", {**encode(stats), "paper": {"rows": PAPER_ROWS, "interpreter loop": PAPER_LOOPS}})
        return
    with open_output() as out:
        for lines in _tables(stats):
            for line in columns([tuple(map(clean, row)) for row in lines], right=(1, 2)):
                out.line(line)
            out.line()
        out.line(_gains(stats))


def _tables(stats: "Stats") -> list[list[tuple[str, ...]]]:
    every, kept = max(1, stats.rows), max(1, stats.kept)
    paper = f"paper: {PAPER_ROWS} rows, {PAPER_LOOPS:.0%} interpreter loops"
    verdicts = [
        ("verdict", "rows", "share"),
        *((v, f"{n}", f"{n / every:.0%}") for v, n in stats.verdicts.items()),
    ]
    patterns = [("pattern", "kept", "share", paper)]
    patterns += [(p, f"{n}", f"{n / kept:.0%}", "") for p, n in stats.patterns.items()]
    tables = [verdicts, patterns]
    for what, found in (("family", stats.families), ("teacher", stats.teachers)):
        tables.append([(what, "kept", "rows"), *((name, f"{k}", f"{n}") for name, (k, n) in found.items())])
    if stats.tags:
        tables.append(
            [("tag", "kept", "share"), *((t, f"{n}", f"{n / kept:.0%}") for t, n in stats.tags.items())]
        )
    return tables


def _gains(stats: "Stats") -> str:
    least, middle, most = stats.tokens
    if stats.gain is None or stats.fresh is None:
        return f"{stats.kept} of {stats.rows} rows kept, in {stats.contexts} contexts"
    return (
        f"{stats.kept} of {stats.rows} rows kept, in {stats.contexts} contexts; mean gain of the kept "
        f"{stats.gain:+.3f} on scoring questions, {stats.fresh:+.3f} on fresh ones; "
        f"replies of about {least} to {most} tokens (median {middle})"
    )


def verify(settings: "Settings", asked: Asked) -> None:
    """Apply and score every row again.

    Raises:
        HlError: A row does not come to what it claims, or cannot be checked here.
        StoppedEarly: A limit was reached.
    """
    import asyncio

    from hl.bench.plan import cells
    from hl.bench.repositories import open_cell
    from hl.errors import HlError
    from hl.ui import open_output, write_json
    from hl.ui.progress import Snapshot, open_progress
    from hl.workspace import Switches, Workspace
    from training.data import load_rows
    from training.teach import RUN, plan_of
    from training.verify import DIFFERS, DOES_NOT_APPLY, SAME, STATES, UNCHECKED, WITHIN_NOISE
    from training.verify import verify as check_rows

    rows = load_rows(asked.out)
    plan = plan_of(settings)
    workspaces = [Workspace.open(repository, settings.hl) for repository in asked.from_history]
    if (asked.out / RUN / "manifest.json").exists():
        workspaces = [*(open_cell(asked.out / RUN, plan, cell) for cell in cells(plan)), *workspaces]
    done = 0
    with open_progress(quiet=asked.json) as display:

        def progress(_: object) -> None:
            nonlocal done
            done += 1
            display.update(Snapshot(phase="scoring again", done=done))

        switches = Switches(unsafe=asked.unsafe)
        checks = asyncio.run(check_rows(rows, workspaces, asked.limits, switches, progress))
    counts = Counter(c.state for c in checks)
    bad = [c for c in checks if c.state in (DIFFERS, DOES_NOT_APPLY)]
    scored = [c for c in checks if c.row.gain is not None]
    unchecked = [c for c in scored if c.state == UNCHECKED]
    if asked.json:
        for c in checks:
            again = None if c.again is None else c.again.mean
            claimed = None if c.row.gain is None else c.row.gain.mean
            record = {
                "id": c.row.id,
                "state": c.state,
                "claimed": claimed,
                "again": again,
                "detail": c.detail,
            }
            write_json("check", record)
    else:
        with open_output() as out:
            for c in [*bad, *unchecked][:20]:
                claimed = "" if c.row.gain is None else f", claimed {c.row.gain.mean:+.3f}"
                now = "" if c.again is None else f", came to {c.again.mean:+.3f}"
                out.line(f"{c.row.id} {c.state}{claimed}{now}{f': {c.detail}' if c.detail else ''}")
            again = counts[SAME] + counts[WITHIN_NOISE] + counts[DIFFERS]
            states = ", ".join(f"{counts[s]} {s}" for s in STATES if counts[s])
            out.line(f"{len(checks)} rows applied again, {again} scored again: {states}")
    if bad:
        raise HlError(
            f"{len(bad)} of {len(checks)} rows do not come to what they claim.", hint="hl train data --help"
        )
    if unchecked:
        raise HlError(
            f"{len(unchecked)} of {len(scored)} scored rows could not be scored again here.",
            hint="give the settings and the --from-history of the run that made them",
        )
