"""`hl log`: rounds with verdict, score and gain."""

from typing import Annotated

import typer

from hl.commands.context import JsonOption, find_pager, invocation, new_app, open_reader

app = new_app()


@app.command()
def log(
    context: typer.Context,
    revs: Annotated[
        list[str] | None, typer.Argument(metavar="[REV|RANGE]...", help="As for git log; HEAD by default.")
    ] = None,
    losers: Annotated[
        bool, typer.Option("--all", help="Also candidates that lost, with the reason.")
    ] = False,
    limit: Annotated[int | None, typer.Option("-n", metavar="N", min=0, help="Commits at most.")] = None,
    oneline: Annotated[bool, typer.Option("--oneline", help="Short lines without columns.")] = False,
    graph: Annotated[bool, typer.Option("--graph", help="Draw git's graph.")] = False,
    json: JsonOption = False,
) -> None:
    """Rounds with verdict, score and gain.

    The score is that of the harness, whichever commit holds it: on the evaluation set (eval) where
    there is one, else on confirmation (conf) or scoring (scor) questions. The gain is the round's,
    confirmed on questions that did not choose the winner; "noise" marks one that does not stand out,
    "scor" one that was never confirmed: it stems from the questions that chose, and is biased upwards.

    \b
    Examples:
      hl log
      hl log --all -n 5
      hl log --oneline --graph main~10..main
      hl log --json | jq .score.mean
    """
    from hl.ui.history import LogWriter, entry_json
    from hl.ui.output import open_output, write_json

    options = invocation(context)
    reader = open_reader(options)
    entries = reader.ledger.log(
        revs or ["HEAD"], files=reader.files, entry=reader.entry, limit=limit, losers=losers, graph=graph
    )
    if json:
        for entry in entries:
            write_json("log", entry_json(entry))
        return
    entry = next(entries, None)  # an unknown revision is told before anything is printed
    with open_output(find_pager(options.pager)) as out:
        lines = LogWriter(out, oneline=oneline, lineage=reader.ledger.lineage or "")
        while entry is not None:
            lines.write(entry)
            entry = next(entries, None)
        lines.end()
