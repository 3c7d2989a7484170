"""`hl fetch`: bring branches, scores and rounds."""

from typing import Annotated

import typer

from hl.commands.context import JsonOption, invocation, new_app, open_reader

app = new_app()


@app.command()
def fetch(
    context: typer.Context,
    remote: Annotated[
        str, typer.Argument(metavar="[REMOTE]", help="A git remote; origin by default.")
    ] = "origin",
    records: Annotated[
        bool, typer.Option("--records", help="Also transcripts, replies and reports.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """Bring branches, scores and rounds from another repository.

    After a plain `git clone` this brings every score and every losing candidate. The work tree and
    the branch stay as they are: `git merge` moves them.

    \b
    Examples:
      git clone SOMEWHERE agent && cd agent && hl fetch
      hl fetch --records
    """
    from hl.records import Records
    from hl.ui.transfer import tell_transfer

    ledger = open_reader(invocation(context)).ledger
    store = Records(ledger.folder / "records") if records else None
    tell_transfer(ledger.fetch(remote, records=store), "fetch", json=json)
