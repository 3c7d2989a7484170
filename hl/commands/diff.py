"""`hl diff`: compare two revisions, in code and question by question."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hl.commands.context import (
    Invocation,
    JsonOption,
    Reader,
    UnsafeOption,
    find_pager,
    invocation,
    new_app,
    open_reader,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hl.types import Measurement, Revision

app = new_app()


@app.command()
def diff(
    context: typer.Context,
    revs: Annotated[
        list[str] | None, typer.Argument(metavar="[A [B]]", help="Two revisions, or A..B; HEAD~1 and HEAD.")
    ] = None,
    role: Annotated[
        str, typer.Option("--set", metavar="SET", help="evaluation, confirmation, scoring or feedback.")
    ] = "",
    stored: Annotated[bool, typer.Option("--stored", help="Never measure; only what is known.")] = False,
    limit: Annotated[int, typer.Option("-n", metavar="N", min=0, help="Questions to list a side (10).")] = 10,
    unsafe: UnsafeOption = False,
    json: JsonOption = False,
) -> None:
    """Compare two revisions, in code and question by question.

    Pairs their stored scores on the questions that both were asked: the evaluation set if both
    have it, else confirmation, then scoring questions (which chose the winner, so its score on them
    is biased upwards), then feedback. Where they share none, both are measured on the evaluation set.

    \b
    Examples:
      hl diff HEAD~1 HEAD
      hl diff main..try-voting
      hl diff main/3/0 main/3/2 --set scoring
    """
    from hl.codec import encode
    from hl.errors import HlError
    from hl.selection import pair
    from hl.ui.compare import changed, comparable, harness_diff
    from hl.ui.history import measurement_json
    from hl.ui.output import open_output, write_json

    options = invocation(context)
    names = _sides(revs or [])
    _check_role(role)
    reader = open_reader(options)
    one, two = (reader.ledger.read(name, reader.files, reader.entry) for name in names)
    known = reader.ledger.measurements_of([one.harness.digest, two.harness.digest])
    both = comparable(known.get(one.harness.digest, ()), known.get(two.harness.digest, ()), role)
    same = one.harness.digest == two.harness.digest
    if both is None and not same and not stored:
        both = _measure_both(options, one, two, role or "evaluation", unsafe)
    code = harness_diff(one.harness, two.harness)
    gain = pair(*both) if both and not same else None
    won, lost = changed(*both) if both and not same else ((), ())
    texts = _questions(reader) if won or lost else {}
    if json:
        write_json(
            "diff",
            {
                "a": {"rev": names[0], "commit": one.commit, "harness": one.harness.digest},
                "b": {"rev": names[1], "commit": two.commit, "harness": two.harness.digest},
                "diff": code,
                "scores": [measurement_json(m) for m in both] if both else None,
                "gain": encode(gain) if gain else None,
                "won": [{**encode(c), "question": texts.get(c.id)} for c in won],
                "lost": [{**encode(c), "question": texts.get(c.id)} for c in lost],
            },
        )
        return
    from hl.ui.text import columns, one_line, render_gain, render_score

    with open_output(find_pager(options.pager)) as out:
        out.diff(code)
        if same:
            out.line("the harnesses are the same")
            return
        if both is None or gain is None:
            raise HlError(
                f"{names[0]} and {names[1]} were never asked the same questions by the same solver.",
                hint=f"hl diff {names[0]} {names[1]}   # without --stored",
            )
        out.line()
        before, after = both
        rows = [
            (names[0], render_score(before.score), f"{before.role.value} set, {before.solver_name}"),
            (names[1], render_score(after.score), f"{after.role.value} set, {after.solver_name}"),
            (
                "gain",
                render_gain(gain),
                f"paired on {gain.n} questions; exact sign test p = {gain.p_sign:.3g}",
            ),
        ]
        for line in columns(rows):
            out.line(line)
        out.line(f"{gain.wins} won, {gain.losses} lost, {gain.ties} as before")
        if before.role == "scoring":
            out.line("these questions chose the round's winner: its score on them is biased upwards")
        for word, colour, questions in (("won", "green", won), ("lost", "red", lost)):
            for c in questions[:limit]:
                text = one_line(texts.get(c.id, c.id), 80)
                out.line(f"  {out.paint(word.ljust(4), colour)} {c.before:.2f} -> {c.after:.2f}  {text}")
            if len(questions) > limit:
                out.line(f"  {word.ljust(4)} and {len(questions) - limit} more")


def _sides(revs: list[str]) -> tuple[str, str]:
    from hl.errors import UsageError

    if len(revs) == 1 and ".." in revs[0]:
        one, _, two = revs[0].partition("..")
        if two.startswith("."):
            raise UsageError(
                f"{revs[0]}: hl diff compares two revisions, not a merge base.", hint="hl diff A B"
            )
        return one or "HEAD", two or "HEAD"
    if len(revs) > 2:
        raise UsageError(f"hl diff compares two revisions, not {len(revs)}.", hint="hl diff A B")
    if not revs:
        return "HEAD~1", "HEAD"
    return (revs[0], revs[1]) if len(revs) == 2 else (revs[0], "HEAD")


def _check_role(role: str) -> None:
    from hl.errors import UsageError
    from hl.ui.compare import ROLES

    if role and role not in ROLES:
        raise UsageError(f"--set {role}: there are {', '.join(ROLES)}.", hint="hl diff --help")


def _measure_both(
    options: Invocation, one: "Revision", two: "Revision", role: str, unsafe: bool
) -> "tuple[Measurement, Measurement]":
    """Measure both on the same questions now, and keep the scores."""
    import asyncio

    from hl.measure import choose_work, measure_once
    from hl.solver import Meter
    from hl.types import Role
    from hl.ui.output import say
    from hl.ui.progress import index_progress, open_progress
    from hl.ui.run import RunProgress
    from hl.workspace import Switches, Workspace

    workspace = Workspace.open(Path.cwd(), options.overrides)
    trials = workspace.config.solver.trials
    works = [
        (revision, choose_work(workspace, revision, Role(role), None, trials)) for revision in (one, two)
    ]
    say(f"no questions in common yet: measuring both on the {role} set")

    async def run(display: RunProgress) -> list["Measurement"]:
        with workspace.cache() as cache:
            async with workspace.evaluator(cache, Meter(), Switches(unsafe=unsafe)) as evaluator:
                found: list[Measurement] = []
                for revision, work in works:
                    display.stage(role, len(work.block.questions) * work.trials)
                    found.append(await measure_once(workspace, evaluator, revision, work, display.attempt))
                return found

    with workspace.ledger.lock(), open_progress() as display:
        workspace.search(index_progress(display))
        before, after = asyncio.run(run(RunProgress(display)))
    return before, after


def _questions(reader: Reader) -> "Mapping[str, str]":
    """Question id -> text, of the current checkout; empty where it cannot be read."""
    from hl.errors import HlError
    from hl.tasks.questions import load_sets
    from hl.types import Role

    try:
        _, sets = load_sets(reader.ledger.root / "questions")
    except HlError:
        return {}
    return {q.id: q.text for role in Role for q in sets.of(role).questions}
