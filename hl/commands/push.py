"""`hl push`: send branch, scores and rounds."""

from typing import Annotated

import typer

from hl.commands.context import JsonOption, invocation, new_app, open_reader

app = new_app()


@app.command()
def push(
    context: typer.Context,
    remote: Annotated[
        str, typer.Argument(metavar="[REMOTE]", help="A git remote; origin by default.")
    ] = "origin",
    records: Annotated[
        bool, typer.Option("--records", help="Also transcripts, replies and reports.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """Send branch, scores and rounds to another repository.

    A plain `git push` sends the branch alone; this sends the scores and every losing candidate too.
    Nothing is forced: a round that differs on the other side stays as it is there.

    \b
    Examples:
      hl push
      hl push backup --records
    """
    from hl.records import Records
    from hl.ui.transfer import tell_transfer

    ledger = open_reader(invocation(context)).ledger
    store = Records(ledger.folder / "records") if records else None
    tell_transfer(ledger.push(remote, records=store), "push", json=json)
