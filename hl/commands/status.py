"""`hl status`: where the branch stands, and what to type next."""

import typer

from hl.commands.context import JsonOption, Reader, invocation, new_app, open_reader

app = new_app()


@app.command()
def status(context: typer.Context, json: JsonOption = False) -> None:
    """Where the branch stands and what to type next.

    \b
    Example:
      hl status
    """
    from hl.config import load_config
    from hl.config.trust import is_trusted
    from hl.journal import Journal
    from hl.tasks.base import selected_grade
    from hl.ui.history import entry_json, render_speaking, speaking, verdict_of
    from hl.ui.output import open_output, write_json
    from hl.ui.text import columns, one_line

    options = invocation(context)
    reader = open_reader(options)
    ledger = reader.ledger
    config = load_config(ledger.root, options.overrides, require_trust=False)
    lineage = ledger.lineage
    head = ledger.entry("HEAD", files=reader.files, entry=reader.entry) if ledger.head else None
    dirty = ledger.is_dirty(reader.files)
    rounds = len(ledger.round_refs(lineage)) if lineage else 0
    run = Journal(ledger.folder / "run.json").load()
    unfinished = ledger.unfinished()
    running = ledger.is_locked()
    trusted = is_trusted(ledger.root)
    questions = _questions(reader)
    speaker = speaking(head.measurements) if head else None
    if running:
        following = "hl log"
    elif not trusted:
        following = "hl config trust"
    elif head is None:
        following = "git add . && git commit"
    elif dirty:
        following = f'git commit -m "..." -- {" ".join(dirty)}'
    elif run is not None or unfinished:
        following = "hl revise --continue"
    elif lineage is None:
        following = "git switch -c NEW-BRANCH"
    elif speaker is None:
        following = "hl eval"
    else:
        following = "hl revise --rounds 10" if not rounds else "hl log"
    interrupted = None
    if run is not None:
        done = ledger.next_round(run.lineage) - run.first_round
        interrupted = {"lineage": run.lineage, "done": done, "rounds": run.options.rounds}
    if json:
        write_json(
            "status",
            {
                "root": str(ledger.root),
                "branch": lineage,
                "task": config.task.name,
                "head": entry_json(head) if head else None,
                "dirty": dirty,
                "rounds": rounds,
                "questions": questions,
                "running": running,
                "interrupted": None if running else interrupted,
                "unfinished": unfinished,
                "trusted": trusted,
                "next": following,
            },
        )
        return
    rows = [
        ("branch", lineage or "none: HEAD is detached"),
        ("task", f"{config.task.name}, {selected_grade(config.task.name, config.task.grade)} grades"),
    ]
    if head is not None:
        rows.append(("head", f"{head.commit[:9]} {one_line(head.subject, 70)}"))
        made = f"round {head.name}, {verdict_of(head)}" if head.round else verdict_of(head)
        rows.append(("made by", made))
        rows.append(("score", render_speaking(speaker)))
        if speaker is not None:
            rows.append(("", f"solver {one_line(speaker.solver_name)}, sandbox {speaker.sandbox}"))
    else:
        rows.append(("head", "no commit yet"))
    rows.append(("harness", f"changed since the last commit: {', '.join(dirty)}" if dirty else "clean"))
    rows.append(("rounds", str(rounds)))
    shown = ", ".join(f"{n} {role}" for role, n in questions.items())
    rows.append(("questions", shown or "none here: questions/ is missing"))
    if interrupted is not None:
        rows.append(
            (
                "running" if running else "interrupted",
                f"a run of {interrupted['rounds']} rounds on {interrupted['lineage']}, {interrupted['done']} done",
            )
        )
    elif running:
        rows.append(("running", "another hl works here"))
    elif unfinished:
        rows.append(("interrupted", "a round was being recorded"))
    if not trusted:
        rows.append(("trust", "hl.toml sets what needs your trust: read it first"))
    rows.append(("next", following))
    with open_output() as out:
        for line in columns(rows):
            out.line(line)


def _questions(reader: Reader) -> dict[str, int]:
    """Role -> questions in its pool, counted and not read."""
    folder = reader.ledger.root / "questions"
    found: dict[str, int] = {}
    for role in ("feedback", "scoring", "confirmation", "evaluation"):
        path = folder / f"{role}.jsonl"
        if path.is_file():
            with path.open("rb") as stream:
                found[role] = sum(1 for line in stream if line.strip())
    return found
