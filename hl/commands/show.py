"""`hl show`: one edit, its reply, its verdict, and where its scores come from."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from hl.commands.context import JsonOption, Reader, find_pager, invocation, new_app, open_reader

if TYPE_CHECKING:
    from hl.ledger.log import LogEntry
    from hl.ledger.rounds import ProposalRecord, RoundRecord
    from hl.types import Harness
    from hl.ui.output import Output

app = new_app()

REPLY_CHARACTERS = 16_384
"""Of a reply, on a terminal; --json has all of it."""


@app.command()
def show(
    context: typer.Context,
    rev: Annotated[
        str, typer.Argument(metavar="[REV]", help="A revision, or a candidate such as 3/0.")
    ] = "HEAD",
    json: JsonOption = False,
) -> None:
    """One edit: the diff, the reply, the verdict, the scores.

    Candidates are named ROUND/INDEX as in `hl log --all`, or BRANCH/ROUND/INDEX.

    \b
    Examples:
      hl show
      hl show HEAD~2
      hl show 3/0
    """
    from hl.codec import encode
    from hl.ui.history import entry_json
    from hl.ui.output import open_output, write_json

    options = invocation(context)
    reader = open_reader(options)
    entry = reader.ledger.entry(rev, files=reader.files, entry=reader.entry)
    record = reader.ledger.round(entry.lineage, entry.round) if entry.round else None
    proposal = next((p for p in record.proposals if p.index == entry.index), None) if record else None
    reply = _reply(reader, proposal)
    code = _diff(reader, entry)
    if json:
        write_json(
            "show",
            {
                **entry_json(entry),
                "detail": proposal.detail if proposal else "",
                "verdict_record": encode(record.verdict) if record else None,
                "proposal": {**encode(proposal), "scoring": None} if proposal else None,
                "reply": reply,
                "diff": code,
            },
        )
        return
    with open_output(find_pager(options.pager)) as out:
        _write_head(out, entry, record, proposal)
        _write_scores(out, entry, proposal)
        if proposal is not None:
            _write_reply(out, proposal, reply)
        if code:
            out.line()
            out.diff(code)


def _reply(reader: Reader, proposal: "ProposalRecord | None") -> Any:
    """The stored reply, or None where it is not here."""
    from hl.records import Records

    if proposal is None or not proposal.reply:
        return None
    return Records(reader.ledger.folder / "records").find(proposal.reply)


def _diff(reader: Reader, entry: "LogEntry") -> str:
    from hl.ui.compare import harness_diff

    after = _harness(reader, entry.commit)
    if after is None:
        return ""
    before = _harness(reader, entry.parents[0]) if entry.parents else None
    return harness_diff(before, after)


def _harness(reader: Reader, commit: str) -> "Harness | None":
    """The harness at a commit; None where hl.toml's files are not there."""
    from hl.errors import RepositoryError

    try:
        return reader.ledger.read(commit, reader.files, reader.entry).harness
    except RepositoryError:
        return None


def _write_head(
    out: "Output", entry: "LogEntry", record: "RoundRecord | None", proposal: "ProposalRecord | None"
) -> None:
    from hl.ui.history import COLOURS, verdict_of
    from hl.ui.text import clean, columns, one_line, render_cost

    verdict = verdict_of(entry)
    out.line(out.paint(f"commit {entry.commit}", "yellow"))
    rows: list[tuple[str, str]] = []
    if record is not None and proposal is not None:
        decided = record.verdict
        rows.append(("round", f"{entry.name}, one of {len(record.proposals)} candidates"))
        rows.append(("verdict", out.paint(verdict, COLOURS.get(verdict, "dim"))))
        if decided.winner == entry.index:
            rows.append(("reason", one_line(decided.reason)))
            for gain, label in (
                (decided.confirmed, "confirmed on fresh questions"),
                (decided.selection, "on the questions that chose it, so biased upwards"),
            ):
                if gain is not None:
                    won = f"{gain.wins} won, {gain.losses} lost of {gain.n}"
                    rows.append(("gain", f"{gain.mean:+.3f} ± {gain.se:.3f} {label}; {won}"))
            rows.append(("evidence", decided.evidence.value))
        rows.append(
            ("outcome", proposal.outcome.value + (", changes no call" if proposal.behavioural_noop else ""))
        )
        if proposal.detail:
            rows.append(("detail", one_line(proposal.detail)))
        if proposal.duplicate_of:
            rows.append(("same as", f"harness {proposal.duplicate_of[:12]}"))
        tokens = proposal.prompt_tokens + proposal.completion_tokens
        turns = f", {proposal.repairs} repair turns" if proposal.repairs else ""
        rows.append(("proposer", f"{one_line(proposal.proposer)}, {tokens:,} tokens{turns}"))
        rows.append(("cost", f"of the whole round: {render_cost(record.cost)}"))
    else:
        rows.append(("verdict", out.paint(verdict, COLOURS.get(verdict, "dim"))))
        if entry.trailers and not entry.genuine:
            rows.append(("trailers", "not confirmed by a round that is here: copied, or `hl fetch` is due"))
    rows.append(("harness", entry.harness[:12] or "hl.toml's files are not all here"))
    for line in columns(rows):
        out.line(line)
    out.line()
    for line in clean(entry.message).rstrip("\n").split("\n"):
        out.line(f"    {line}".rstrip())


def _write_scores(out: "Output", entry: "LogEntry", proposal: "ProposalRecord | None") -> None:
    from hl.ui.text import columns, one_line, render_counts, render_score

    out.line()
    if not entry.measurements:
        out.line("no scores of this harness: hl eval " + entry.commit[:9])
        return
    kept = proposal is not None and not proposal.harness
    whose = "the parent, since the edit did not apply" if kept else "this harness, whichever commit holds it"
    out.line(out.paint(f"scores of {whose}; newest first", "bold"))
    rows = [("  score", "set", "grade", "trials", "questions", "solver", "sandbox", "time", "failures")]
    rows += [
        (
            "  " + render_score(m.score),
            m.role.value + (f", {m.ablation} solver" if m.ablation else ""),
            m.mode,
            str(m.trials),
            m.questions[:9],
            one_line(m.solver_name),
            m.sandbox,
            m.time,
            render_counts(m.classes) or "none",
        )
        for m in reversed(entry.measurements)
    ]
    for line in columns(rows):
        out.line(line)


def _write_reply(out: "Output", proposal: "ProposalRecord", reply: Any) -> None:
    from hl.ui.text import clean

    out.line()
    text = reply.get("text") if isinstance(reply, dict) else None  # pyright: ignore[reportUnknownMemberType]
    if not isinstance(text, str):
        if proposal.reply:
            out.line("the reply is not in this clone: hl fetch --records")
        return
    out.line(out.paint("reply", "bold"))
    for line in clean(text[:REPLY_CHARACTERS]).rstrip("\n").split("\n"):
        out.line(f"  | {line}".rstrip())
    if len(text) > REPLY_CHARACTERS:
        out.line(f"  ... and {len(text) - REPLY_CHARACTERS:,} more characters: hl show --json")
