"""`hl fsck`: do rounds, scores, records and question sets fit together?"""

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from hl.commands.context import JsonOption, invocation, new_app, open_reader

if TYPE_CHECKING:
    from hl.ledger.fsck import Problem

app = new_app()


@app.command()
def fsck(context: typer.Context, json: JsonOption = False) -> None:
    """Check that rounds, scores and records fit together.

    Reads every round, note, record and question of this repository and changes nothing. Exits 1 if
    history, scores or questions are damaged; lost detail and what the next command mends are told and exit 0.
    `git fsck` checks the objects below.

    \b
    Examples:
      hl fsck
      hl fsck --json
    """
    from hl.errors import HlError
    from hl.records import Records
    from hl.ui.output import open_output, write_json
    from hl.ui.text import one_line

    reader = open_reader(invocation(context))
    ledger = reader.ledger
    problems = list(ledger.fsck(reader.files, reader.entry, Records(ledger.folder / "records")))
    problems += _check_questions(ledger.root / "questions")
    serious = sum(p.serious for p in problems)
    if json:
        for p in problems:
            write_json(
                "problem", {"where": p.where, "message": p.message, "hint": p.hint, "serious": p.serious}
            )
    else:
        with open_output() as out:
            for p in problems:
                word = out.paint("damaged", "red") if p.serious else out.paint("note", "yellow")
                out.line(
                    f"{word} {one_line(p.where)}: {one_line(p.message)}" + (f" ({p.hint})" if p.hint else "")
                )
            if not problems:
                rounds = len(ledger.round_refs())
                out.line(f"{rounds} round{'' if rounds == 1 else 's'} and their scores fit together")
    if serious:
        raise HlError(
            f"{serious} of the {len(problems)} findings above are damage."
            if len(problems) > 1
            else "the ledger is damaged.",
            hint="hl fetch brings what another clone still has",
        )


def _check_questions(folder: Path) -> "list[Problem]":
    """What is wrong with the question sets; nothing where there are none, which `hl status` tells."""
    from hl.errors import HlError
    from hl.ledger.fsck import Problem
    from hl.tasks.questions import load_sets

    if not folder.exists():
        return []
    try:
        load_sets(folder)
    except HlError as error:
        return [Problem("questions", error.message, error.hint or "")]
    return []
