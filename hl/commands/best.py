"""`hl best`: revisions by score."""

from typing import TYPE_CHECKING, Annotated

import typer

from hl.commands.context import JsonOption, invocation, new_app, open_reader

if TYPE_CHECKING:
    from hl.ledger.log import LogEntry
    from hl.types import Measurement

app = new_app()


@app.command()
def best(
    context: typer.Context,
    revs: Annotated[
        list[str] | None, typer.Argument(metavar="[REV|RANGE]...", help="As for git log; HEAD by default.")
    ] = None,
    losers: Annotated[bool, typer.Option("--all", help="Also candidates that lost.")] = False,
    limit: Annotated[int, typer.Option("-n", metavar="N", min=1, help="Revisions to print (10).")] = 10,
    json: JsonOption = False,
) -> None:
    """Revisions by score.

    By the score on the evaluation set where there is one, else by the confirmed one, on the most
    questions; scores that only chose a winner are biased upwards and do not count. Only scores of
    one solver and one way of grading are ranked: those of the newest measurement.

    \b
    Examples:
      hl best
      hl best --all -n 3
      hl best main try-voting
    """
    from hl.errors import HlError
    from hl.ui.history import entry_json, measurement_json, subject_of, verdict_of
    from hl.ui.output import open_output, say, write_json
    from hl.ui.text import columns, render_score

    reader = open_reader(invocation(context))
    entries = list(reader.ledger.log(revs or ["HEAD"], files=reader.files, entry=reader.entry, losers=losers))
    ranked, left_out = rank(entries)
    if not ranked:
        raise HlError("no revision has an evaluation or a confirmed score yet.", hint="hl eval")
    if left_out:
        say(f"{left_out} left out: only other solvers or gradings measured them")
    if json:
        for place, (entry, m) in enumerate(ranked[:limit], 1):
            write_json("best", {"rank": place, **entry_json(entry), "score": measurement_json(m)})
        return
    rows = [
        (
            str(place),
            render_score(m.score),
            m.role.value,
            entry.commit[:9],
            f"round {entry.name or '-'}" if entry.round else verdict_of(entry),
            subject_of(entry),
        )
        for place, (entry, m) in enumerate(ranked[:limit], 1)
    ]
    with open_output() as out:
        for line in columns(rows, right=(0,)):
            out.line(line)


def rank(entries: "list[LogEntry]") -> "tuple[list[tuple[LogEntry, Measurement]], int]":
    """(revisions with the measurement that ranks them, best first; how many have only incomparable ones).

    A harness that several commits hold is ranked once, as its oldest commit in the history, or else as a loser.
    """
    once: dict[str, LogEntry] = {}
    for e in entries:
        # Newest first, so the oldest stays; a loser (whose tree may be its parent's) gives way to any other.
        if e.harness and not (e.loser and e.harness in once):
            once[e.harness] = e
    counted = [
        m
        for e in once.values()
        for m in e.measurements
        if m.role in ("evaluation", "confirmation") and not m.ablation and m.score.n
    ]
    if not counted:
        return [], 0
    newest = max(counted, key=lambda m: m.time)
    ranked: list[tuple[LogEntry, Measurement]] = []
    left_out = 0
    for entry in once.values():
        fitting = [m for m in counted if m.harness == entry.harness]
        same = [m for m in fitting if (m.solver, m.mode) == (newest.solver, newest.mode)]
        same.sort(key=lambda m: (m.role == "evaluation", m.score.n, m.time))
        if same:
            ranked.append((entry, same[-1]))
        elif fitting:
            left_out += 1
    ranked.sort(key=lambda pair: (-pair[1].score.mean, pair[1].score.se, pair[0].time))
    return ranked, left_out
