"""`hl revise`: run rounds of proposed edits and keep what scores better."""

from pathlib import Path
from typing import Annotated

import typer

from hl.commands.context import JsonOption, UnsafeOption, invocation, new_app

app = new_app()


@app.command()
def revise(
    context: typer.Context,
    rounds: Annotated[int | None, typer.Option("--rounds", metavar="N", help="Rounds to run (3).")] = None,
    proposals: Annotated[
        int | None, typer.Option("--proposals", metavar="K", help="Proposals a round.")
    ] = None,
    select: Annotated[
        str, typer.Option("--select", metavar="RULE", help="improve, best or significant: who wins a round.")
    ] = "",
    patience: Annotated[
        int | None, typer.Option("--patience", metavar="N", help="Stop after N rejected rounds in a row.")
    ] = None,
    target: Annotated[
        float | None,
        typer.Option("--target", metavar="SCORE", help="Stop when the head's confirmed score is this good."),
    ] = None,
    max_calls: Annotated[
        int | None, typer.Option("--max-calls", metavar="N", help="Stop before more model calls.")
    ] = None,
    max_tokens: Annotated[
        int | None, typer.Option("--max-tokens", metavar="N", help="Stop after that many tokens.")
    ] = None,
    max_seconds: Annotated[
        float | None, typer.Option("--max-seconds", metavar="S", help="Stop after that many seconds.")
    ] = None,
    max_cost: Annotated[
        float | None,
        typer.Option("--max-cost", metavar="MONEY", help="Stop after that much money (price_in, price_out)."),
    ] = None,
    profile: Annotated[str, typer.Option("--profile", help="A named set of values: small.")] = "",
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what it would need, and do nothing.")
    ] = False,
    resume: Annotated[bool, typer.Option("--continue", help="Go on with the interrupted run.")] = False,
    abandon: Annotated[
        bool, typer.Option("--abandon", help="Forget the interrupted run; its rounds stay.")
    ] = False,
    unsafe: UnsafeOption = False,
    json: JsonOption = False,
) -> None:
    """Run rounds of proposed edits and keep what scores better.

    A round measures the head, asks for K edits, runs every candidate on the same questions, and
    accepts the best if it also gains on questions that nobody chose it by. Every proposal is kept.
    Stopped by Ctrl-C, a limit or a crash, a run goes on with --continue; no recorded call is repeated.

    \b
    Examples:
      hl revise --rounds 10
      hl revise --rounds 3 --proposals 4 --select significant
      hl revise --max-calls 5000 --patience 3
      hl revise --rounds 10 --dry-run
      hl revise --continue
    """
    import asyncio
    from dataclasses import replace

    from hl.errors import RepositoryError, StoppedEarly, UsageError
    from hl.journal import Journal, Options
    from hl.revise import Summary, load_run, open_run, plan
    from hl.revise import revise as carry_out
    from hl.rounds import Event
    from hl.ui import say, warn, write_json
    from hl.ui.progress import index_progress, open_progress
    from hl.ui.run import RunProgress
    from hl.ui.summary import round_json, summary_json, write_summary
    from hl.workspace import Switches, Workspace

    given = {
        "patience": patience,
        "target": target,
        "max_calls": max_calls,
        "max_tokens": max_tokens,
        "max_seconds": max_seconds,
        "max_cost": max_cost,
    }
    for name, value in {"rounds": rounds, **given}.items():
        # Not `value <= 0`: that would let nan through, a limit that is never reached.
        if value is not None and not value > 0:
            raise UsageError(
                f"--{name.replace('_', '-')} {value:g}: must be above 0.", hint="hl revise --help"
            )
    if target is not None and target > 1:
        raise UsageError(f"--target {target:g}: no score is above 1.", hint="hl revise --help")
    overrides = list(invocation(context).overrides)
    overrides += [f"round.proposals={proposals}"] if proposals is not None else []
    overrides += [f"round.select={select}"] if select else []
    if resume and (proposals is not None or select or profile or rounds is not None):
        raise UsageError(
            "--continue goes on with the run as it was begun; only limits may change.",
            hint="hl revise --continue",
        )
    if resume and (rules := [o for o in overrides if o.startswith("round.")]):
        raise UsageError(
            f"-c {rules[0]}: --continue goes on with the rules that the run began with.",
            hint="hl revise --continue, or hl revise --abandon and begin anew",
        )
    directory = Path.cwd()
    if abandon:
        # Needs neither the configuration nor the journal to be in order: it is the way out of both.
        from hl.ledger import Ledger

        abandoned = Ledger.open(directory)
        with abandoned.lock():
            Journal(abandoned.folder / "run.json").clear()
        say("the interrupted run is forgotten; its rounds stay in the ledger")
        return
    workspace = Workspace.open(directory, overrides, profile=profile or None)
    ledger = workspace.ledger
    journal = Journal(ledger.common_dir / "hl" / "run.json")
    if dry_run:
        needed = plan(workspace, rounds or 3)
        if json:
            write_json(
                "plan",
                {
                    "attempts": needed.attempts,
                    "calls": needed.calls,
                    "tokens": needed.tokens,
                    "measured": needed.measured,
                },
            )
            return
        basis = "as the head used" if needed.measured else "guessing one call of 512 tokens"
        typer.echo(
            f"at most {needed.attempts:,} attempts, about {needed.calls:,} calls and {needed.tokens:,} tokens"
            f" ({basis}); stored attempts and failed edits cost nothing"
        )
        return
    with ledger.lock():
        if recovered := ledger.recover():
            say(recovered)
        if dirty := ledger.is_dirty([*workspace.config.harness.files]):
            raise RepositoryError(
                f"{', '.join(dirty)} changed since the last commit, and a revision starts from a commit.",
                hint=f'git commit -m "..." -- {" ".join(dirty)}, or git restore {" ".join(dirty)}',
            )
        if resume:
            run = load_run(workspace, journal)
            changed = {k: v for k, v in given.items() if v is not None}
            run = replace(run, options=replace(run.options, **changed))  # pyright: ignore[reportArgumentType]
            both = (*run.options.overrides, *overrides)
            run = replace(run, options=replace(run.options, overrides=both))
            workspace = Workspace.open(directory, both, profile=run.options.profile or None)
        else:
            options = Options(rounds or 3, **given, overrides=tuple(overrides), profile=profile)  # pyright: ignore[reportArgumentType]
            run = open_run(workspace, journal, options)
        if ledger.notice:
            warn(ledger.notice)
        with open_progress(quiet=json) as display:
            workspace.search(index_progress(display))
            progress = RunProgress(display, run.first_round + run.options.rounds - 1)

            def tell(event: Event) -> None:
                progress(event)
                if json and event.kind == "round" and event.result is not None:
                    write_json("round", round_json(event.result))

            async def work() -> Summary:
                return await carry_out(
                    workspace,
                    journal,
                    run,
                    Switches(unsafe=unsafe),
                    on_event=tell,
                    on_stage=progress.stage,
                    on_attempt=progress.attempt,
                )

            try:
                summary = asyncio.run(work())
            except KeyboardInterrupt:
                say("stopped; what was measured is kept, and `hl revise --continue` goes on")
                raise
            except StoppedEarly as stop:
                raise StoppedEarly(stop.message, hint=stop.hint or "hl revise --continue") from None
    if json:
        write_json("summary", summary_json(summary))
    else:
        write_summary(summary)
