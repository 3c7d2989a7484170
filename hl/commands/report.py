"""`hl report`: what a proposer is told about a revision."""

from typing import Annotated

import typer

from hl.commands.context import JsonOption, find_pager, invocation, new_app, open_reader

app = new_app()


@app.command()
def report(
    context: typer.Context,
    rev: Annotated[str, typer.Argument(metavar="[REV]", help="A revision; HEAD by default.")] = "HEAD",
    number: Annotated[
        int | None, typer.Option("--round", metavar="N", min=1, help="The report of round N of this branch.")
    ] = None,
    tokens: Annotated[
        int | None, typer.Option("--tokens", metavar="N", min=1, help="Fit it to N tokens; [report] tokens.")
    ] = None,
    json: JsonOption = False,
) -> None:
    """What a proposer is told about a revision.

    Reports are made when a round revises a harness, and kept with the round. The newest one about
    the harness of REV is printed; where no round has revised it, the one that led to it.

    \b
    Examples:
      hl report
      hl report HEAD~1 --tokens 2000
      hl report --round 3
    """
    from hl.codec import decode
    from hl.config import load_config
    from hl.errors import HlError, RepositoryError
    from hl.records import Records
    from hl.report import render_json, render_report
    from hl.types import Report
    from hl.ui.output import open_output, say, write_json
    from hl.ui.text import clean

    options = invocation(context)
    reader = open_reader(options)
    ledger = reader.ledger
    if number is not None:
        record = ledger.round(ledger.require_lineage(), number)
    else:
        digest = ledger.read(rev, reader.files, reader.entry).harness.digest
        about = [r for r in ledger.rounds() if r.parent_harness == digest]
        made = ledger.entry(rev, files=reader.files, entry=reader.entry)
        if about:
            record = max(about, key=lambda r: (r.time, r.number))
        elif made.round:
            record = ledger.round(made.lineage, made.round)
            say(f"{rev} has not been revised yet; this report on {record.parent[:9]} led to it")
        else:
            raise HlError(
                f"no round has revised the harness of {rev} yet, so there is no report of it.",
                hint="hl revise --rounds 1",
            )
    stored = Records(ledger.folder / "records").get(record.report)
    try:
        found = decode(Report, stored["report"])
    except (KeyError, TypeError, ValueError):
        raise RepositoryError(
            f"the report of round {record.number} cannot be read.", hint="hl fsck"
        ) from None
    if json:
        from json import loads

        write_json(
            "report", {"lineage": record.lineage, "round": record.number, "report": loads(render_json(found))}
        )
        return
    budget = tokens or load_config(ledger.root, options.overrides, require_trust=False).report.tokens
    with open_output(find_pager(options.pager)) as out:
        out.line(clean(render_report(found, max_tokens=budget)).rstrip("\n"))
