"""`hl run`: answer one question with a revision of the harness."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from hl.commands.context import JsonOption, UnsafeOption, invocation, new_app

app = new_app()


@app.command()
def run(
    context: typer.Context,
    words: Annotated[
        list[str], typer.Argument(metavar="[REV] QUESTION", help="The question, or - to read stdin.")
    ],
    trace: Annotated[bool, typer.Option("--trace", help="Show the calls that the harness made.")] = False,
    unsafe: UnsafeOption = False,
    json: JsonOption = False,
) -> None:
    """Answer one question with a revision of the harness.

    With two arguments the first is the revision. Nothing is graded or recorded.

    \b
    Examples:
      hl run "What is 12 + 30 - 5?"
      hl run HEAD~1 "What is 12 + 30 - 5?" --trace
      cat question.txt | hl run -
    """
    import asyncio

    from hl.codec import encode
    from hl.errors import HlError, UsageError
    from hl.types import Status
    from hl.ui import clean, open_output, write_json
    from hl.ui.progress import index_progress, open_progress
    from hl.workspace import Switches, Workspace

    if len(words) > 2:
        raise UsageError(f"{len(words)} arguments: expected [REV] QUESTION.", hint='hl run "QUESTION"')
    rev, question = (words[0], words[1]) if len(words) == 2 else ("HEAD", words[0])
    question = sys.stdin.read() if question == "-" else question
    workspace = Workspace.open(Path.cwd(), invocation(context).overrides)
    revision = workspace.read(rev)
    with open_progress(quiet=json) as display:
        workspace.search(index_progress(display))
    answered = asyncio.run(workspace.answer(revision.harness, question, Switches(unsafe=unsafe)))
    if json:
        write_json("answer", {"commit": revision.commit, "question": question, **encode(answered)})
    else:
        with open_output() as out:
            if trace:
                for event in answered.trace:
                    out.line(out.paint(f"{event.kind} <-", "cyan") + f" {clean(event.request)}")
                    out.line(out.paint(f"{event.kind} ->", "cyan") + f" {clean(event.reply)}")
                    if event.error:
                        out.line(out.paint(f"{event.kind} error:", "red") + f" {clean(event.error)}")
            if answered.status is Status.OK:
                out.line(clean(answered.answer))
    if answered.status is not Status.OK:
        raise HlError(
            f"The harness failed ({answered.status.value}): {clean(answered.error.strip())[-1500:] or 'no reason'}"
        )
