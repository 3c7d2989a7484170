"""What the two benchmarks of `hl bench` share: their options, and how a run is carried out. No verb of its own."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hl.commands._limits import (
    limits_of,
)
from hl.commands.context import invocation

if TYPE_CHECKING:
    from hl.bench.plan import BenchTask, Plan
    from hl.bench.table import Table

SolverOption = Annotated[
    list[str],
    typer.Option(
        "--solver", metavar="NAME=SPEC", help="A frozen model, such as q=openai:MODEL@URL; repeatable."
    ),
]
ProposerOption = Annotated[
    list[str],
    typer.Option(
        "--proposer", metavar="NAME=SPEC", help="What writes edits: catalog, or as --solver; repeatable."
    ),
]
ContextsOption = Annotated[
    int | None, typer.Option("--contexts", metavar="N", help="Contexts a family (tiny 1, else 4).")
]
ProposalsOption = Annotated[
    int, typer.Option("--proposals", metavar="K", help="Proposals a context or round.")
]
FeedbackOption = Annotated[
    int | None, typer.Option("--feedback", metavar="N", help="Questions the proposer sees (tiny 8, else 16).")
]
ScoringOption = Annotated[
    int | None, typer.Option("--scoring", metavar="N", help="Questions that choose (tiny 16, else 32).")
]
EvaluationOption = Annotated[
    int | None, typer.Option("--evaluation", metavar="N", help="Held-out questions (tiny 32, else 128).")
]
RoundsOption = Annotated[
    int, typer.Option("--rounds", metavar="N", help="Chains of so many rounds instead of one step.")
]
ChainsOption = Annotated[int | None, typer.Option("--chains", metavar="N", help="Chains a task (4).")]
IndependentOption = Annotated[
    int, typer.Option("--independent", metavar="N", help="So many independent proposals beside the chains.")
]
SelectOption = Annotated[
    str,
    typer.Option("--select", metavar="RULE", help="Who wins a chain's round: improve, best or significant."),
]
SeedOption = Annotated[
    str,
    typer.Option("--seed", metavar="SEED", help="The harness that is revised: a seed's name, or your own."),
]
BaselinesOption = Annotated[
    str,
    typer.Option("--baselines", metavar="A,B", help="Measure these seeds too: cot, react, reflexion, ..."),
]
ReportOption = Annotated[
    str,
    typer.Option(
        "--report", metavar="WHICH", help="Control: full, shuffled (another task's report) or none."
    ),
]
OutOption = Annotated[
    Path | None,
    typer.Option("--out", metavar="DIR", help="Where results go (bench-runs/TRACK or qa-DATASETS)."),
]
PaperOption = Annotated[
    bool,
    typer.Option("--paper", help="Run nothing: print the paper's numbers, and the run in --out."),
]


@dataclass(frozen=True, slots=True)
class Protocol:
    """What is measured, as typed."""

    solver: Sequence[str]
    proposer: Sequence[str]
    contexts: int | None
    proposals: int
    feedback: int | None
    scoring: int | None
    evaluation: int | None
    rounds: int
    chains: int | None
    independent: int
    select: str
    seed: str
    baselines: str
    report: str


@dataclass(frozen=True, slots=True)
class Controls:
    """How it is carried out, as typed."""

    out: Path | None
    dry_run: bool
    max_calls: int | None
    max_tokens: int | None
    max_seconds: float | None
    max_cost: float | None
    paper: bool
    unsafe: bool
    json: bool


def build_plan(
    overrides: Sequence[str], benchmark: str, tasks: "tuple[BenchTask, ...]", defaults: str, asked: Protocol
) -> "Plan":
    """The run that was asked for.

    Raises:
        UsageError: A number out of range, or an unknown name.
    """
    from hl.bench.choice import REPORTS, listed, pick, sizes_of
    from hl.bench.models import configured, parse_model
    from hl.bench.plan import Plan, Settings, check, choose
    from hl.config import load_config
    from hl.config.keys import KEYS
    from hl.config.sections import SELECT_RULES
    from hl.errors import UsageError
    from hl.new import load_seed, seed_names

    most = int(KEYS["round.pool_rounds"].high or 0)
    for name, low, high, value in (
        ("contexts", 1, most, asked.contexts),
        ("rounds", 0, most, asked.rounds),
        ("chains", 1, most, asked.chains),
        ("proposals", 1, KEYS["round.proposals"].high, asked.proposals),
        ("independent", 0, KEYS["round.proposals"].high, asked.independent),
        ("feedback", 1, KEYS["round.feedback"].high, asked.feedback),
        ("scoring", 1, KEYS["round.scoring"].high, asked.scoring),
        ("evaluation", 1, KEYS["round.evaluation"].high, asked.evaluation),
    ):
        if value is not None and not low <= value <= (high or value):
            raise UsageError(
                f"--{name} {value}: must lie between {low} and {high:g}.", hint=f"hl bench {benchmark} --help"
            )
    if (asked.chains is not None or asked.independent) and not asked.rounds:
        option = "--chains" if asked.chains is not None else "--independent"
        raise UsageError(f"{option} belongs to chains.", hint=f"hl bench {benchmark} --rounds 10 {option} N")
    if asked.rounds and asked.contexts is not None:
        raise UsageError("--contexts belongs to single steps; chains are counted by --chains.")
    config = load_config(None, overrides)
    sizes = sizes_of(defaults)
    load_seed(asked.seed)
    settings = Settings(
        contexts=0 if asked.rounds else asked.contexts or sizes.contexts,
        proposals=asked.proposals,
        feedback=pick(asked.feedback, config, "feedback", sizes.feedback),
        scoring=pick(asked.scoring, config, "scoring", sizes.scoring),
        evaluation=pick(asked.evaluation, config, "evaluation", sizes.evaluation),
        seed=asked.seed if asked.seed in seed_names() else str(Path(asked.seed).resolve()),
        select=choose(asked.select, SELECT_RULES, "a --select", f"hl bench {benchmark} --help"),
        rounds=asked.rounds,
        chains=(asked.chains or 4) if asked.rounds else 0,
        independent=asked.independent,
        report=choose(asked.report, REPORTS, "a --report", f"hl bench {benchmark} --help"),
        baselines=listed(asked.baselines, seed_names(), "a seed harness"),
    )
    plan = Plan(
        benchmark,
        tasks,
        tuple(parse_model(text, "solver") for text in asked.solver) or (configured(config, "solver"),),
        tuple(parse_model(text, "proposer") for text in asked.proposer) or (configured(config, "proposer"),),
        settings,
        tuple(overrides),
    )
    check(plan)
    return plan


def carry_out(
    context: typer.Context,
    benchmark: str,
    tasks: "tuple[BenchTask, ...]",
    defaults: str,
    asked: Protocol,
    controls: Controls,
) -> None:
    """Run a benchmark, or say what it would need, or print the paper's numbers."""
    import asyncio
    import shlex
    import sys

    from hl.bench.compare import compare, paper_tables
    from hl.bench.folder import open_folder
    from hl.bench.repositories import shortages
    from hl.bench.results import TABLE, read_results, write_results
    from hl.bench.run import run, spent
    from hl.bench.tables import render_cell
    from hl.errors import EngineError, StoppedEarly
    from hl.sandbox.host import find_tier
    from hl.ui import say, warn, write_json
    from hl.ui.bench import BenchProgress
    from hl.ui.progress import open_progress
    from hl.ui.text import render_cost
    from hl.workspace import Switches

    out = controls.out or Path("bench-runs") / (
        defaults if benchmark == "reasoning-gym" else f"qa-{defaults}"
    )
    if controls.paper:
        beside = [read_results(out)] if (out / "manifest.json").exists() or controls.out else []
        ours = compare([(r.name, r.manifest, r.rows) for r in beside]) if beside else []
        write_tables([*paper_tables(), *ours], json=controls.json)
        return
    limits = limits_of(
        f"bench {benchmark}", controls.max_calls, controls.max_tokens, controls.max_seconds, controls.max_cost
    )
    plan = build_plan(invocation(context).overrides, benchmark, tasks, defaults, asked)
    tier = asyncio.run(find_tier(unsafe=controls.unsafe))
    if controls.dry_run:
        _estimate(plan, out, tier, json=controls.json)
        return
    with open_progress(quiet=controls.json) as display:
        watch = BenchProgress(display, plan.settings.rounds, render_cell)
        with open_folder(plan, out, tier, shlex.join(["hl", *sys.argv[1:]]), watch):
            for shortage in shortages(out, plan):
                warn(shortage)
            try:
                asyncio.run(
                    run(
                        plan,
                        out,
                        limits,
                        Switches(unsafe=controls.unsafe),
                        watch,
                    )
                )
            except KeyboardInterrupt:
                say("stopped; what was measured is kept, and the same command goes on")
                raise
            except (EngineError, StoppedEarly) as stop:
                say(f"{out / TABLE}: {write_results(out).unfinished}")
                if isinstance(stop, EngineError):
                    raise
                raise StoppedEarly(
                    stop.message, hint="the same command with a higher limit goes on"
                ) from None
    say(f"spent so far: {render_cost(spent(out))}")
    results = write_results(out)
    if controls.json:
        from hl.codec import encode

        for row in results.rows:
            # Inside: a row has a kind of its own.
            write_json("row", {"row": encode(row)})
    write_tables(results.tables, json=controls.json)
    say(f"results: {out} (table.md, rows.jsonl, plots); next: hl bench show {shlex.quote(str(out))} --paper")


def _estimate(plan: "Plan", out: Path, tier: str, *, json: bool) -> None:
    """Say what a run would need, after every check that the run itself begins with."""
    from hl.bench.folder import check_run
    from hl.bench.plan import GUESSED_TOKENS, attempts, cell_count, proposer_calls
    from hl.bench.rows import load_rows, per_attempt
    from hl.ui import write_json

    check_run(plan, out, tier)
    needed, replies, count = attempts(plan), proposer_calls(plan), cell_count(plan)
    measured = per_attempt(load_rows(out))
    calls, tokens = measured or (1.0, GUESSED_TOKENS)
    if json:
        record = {"cells": count, "attempts": needed, "proposer_calls": replies}
        record |= {"calls": round(needed * calls), "tokens": round(needed * tokens)}
        write_json("plan", {**record, "measured": measured is not None})
        return
    asks = f" and {replies:,} replies of proposers" if replies else ""
    if measured is None:
        basis = f"at least one call an attempt, and {needed * GUESSED_TOKENS:,} tokens if it is one of {GUESSED_TOKENS}"
    else:
        basis = f"about {needed * calls:,.0f} calls and {needed * tokens:,.0f} tokens, as measured in {out}"
    typer.echo(
        f"{count:,} cell{'s' if count > 1 else ''}, at most {needed:,} attempts{asks}; {basis}; "
        "failed edits, duplicates and repeated questions cost nothing"
    )


def write_tables(tables: "Sequence[Table]", *, json: bool) -> None:
    """Tables as text, or as JSON lines."""
    from hl.ui import clean, columns, open_output, write_json

    if json:
        for table in tables:
            write_json("table", table.record)
        return
    with open_output() as out:
        for number, table in enumerate(tables):
            if number:
                out.line()
            out.line(out.paint(clean(table.title), "bold"))
            lines = columns([tuple(map(clean, row)) for row in (table.head, *table.texts)])
            for line in lines:
                out.line(f"  {line}")
            for note in table.notes:
                out.line(out.paint(f"  {clean(note)}", "dim"))
