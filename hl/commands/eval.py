"""`hl eval`: measure a revision; adds to what is known of it."""

from pathlib import Path
from typing import Annotated

import typer

from hl.commands.context import JsonOption, UnsafeOption, invocation, new_app

app = new_app()

MAX_TRIALS = 1000
"""As for the key solver.trials."""


@app.command("eval")
def eval_(
    context: typer.Context,
    rev: Annotated[str, typer.Argument(metavar="[REV]", help="A revision; HEAD by default.")] = "HEAD",
    role: Annotated[
        str, typer.Option("--set", metavar="SET", help="evaluation, scoring, confirmation or feedback.")
    ] = "evaluation",
    size: Annotated[
        int | None, typer.Option("-n", metavar="N", help="The first N questions of the set.")
    ] = None,
    trials: Annotated[
        int | None,
        typer.Option("--trials", metavar="T", help="Attempts per question, each with its own seed."),
    ] = None,
    ablate: Annotated[
        bool, typer.Option("--ablate-solver", help="Replace the solver by one that answers with empty text.")
    ] = False,
    unsafe: UnsafeOption = False,
    json: JsonOption = False,
) -> None:
    """Measure a revision; adds to what is known of it, overwrites nothing.

    Questions and configuration are those of the current checkout, the harness is the revision's.
    Attempts that are stored already cost nothing. With --ablate-solver a harness whose model does
    the work falls to the score of an empty answer.

    \b
    Examples:
      hl eval
      hl eval HEAD~2 --set scoring -n 64
      hl eval --trials 4
      hl eval --ablate-solver
    """
    import asyncio

    from hl.codec import encode
    from hl.errors import UsageError
    from hl.evaluate import Evaluator
    from hl.measure import choose_work, measure
    from hl.solver import Meter
    from hl.types import Measurement, Role
    from hl.ui import columns, open_output, render_score, write_json
    from hl.ui.progress import index_progress, open_progress
    from hl.ui.run import RunProgress
    from hl.ui.text import render_cost, render_counts
    from hl.workspace import Switches, Workspace

    if role not in {r.value for r in Role}:
        raise UsageError(
            f"--set {role}: there are {', '.join(r.value for r in Role)}.", hint="hl eval --help"
        )
    if trials is not None and not 1 <= trials <= MAX_TRIALS:
        raise UsageError(f"--trials {trials}: must lie between 1 and {MAX_TRIALS}.", hint="hl eval --help")
    workspace = Workspace.open(Path.cwd(), invocation(context).overrides)
    revision = workspace.read(rev)
    work = choose_work(workspace, revision, Role(role), size, trials or workspace.config.solver.trials)
    meter = Meter()

    async def run(display: RunProgress) -> Measurement:
        with workspace.cache() as cache:
            switches = Switches(unsafe=unsafe, ablation="empty" if ablate else "")
            evaluator: Evaluator
            async with workspace.evaluator(cache, meter, switches) as evaluator:
                display.stage(role, len(work.block.questions) * work.trials)
                return (await measure(workspace, evaluator, revision, work, display.attempt))[0]

    with workspace.ledger.lock(), open_progress(quiet=json) as display:
        workspace.search(index_progress(display))
        result = asyncio.run(run(RunProgress(display)))
    if json:
        write_json(
            "measurement", {**encode(result), "commit": revision.commit, "score": encode(result.score)}
        )
        return
    tokens = result.tokens / max(1, sum(result.counts.values()))
    rows = [
        ("score", f"{render_score(result.score)} {result.mode}, {role} set"),
        ("solver", result.solver_name),
        ("attempts", render_counts(result.counts)),
        ("failures", render_counts(result.classes) or "none"),
        ("tool errors", render_counts(result.tool_errors) or "none"),
        ("without a call", f"{result.zero_call_share:.0%} of the attempts"),
        (
            "per attempt",
            f"{result.calls / max(1, sum(result.counts.values())):.1f} calls, {tokens:.0f} tokens",
        ),
        ("spent now", render_cost(meter.cost)),
        ("sandbox", result.sandbox),
    ]
    with open_output() as out:
        for line in columns(rows):
            out.line(line)
