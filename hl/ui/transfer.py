"""What a push or a fetch carried, as text and as JSON."""

from typing import TYPE_CHECKING

from hl.ui.output import open_output, warn, write_json
from hl.ui.text import one_line

if TYPE_CHECKING:
    from hl.ledger.transport import Transfer


def tell_transfer(done: "Transfer", verb: str, *, json: bool) -> None:
    """Print what was carried; conflicts are a warning, since neither side was changed.

    Args:
        done: What the ledger reports.
        verb: `push` or `fetch`.
        json: Whether to print JSON.
    """
    for name in done.conflicts:
        warn(f"round {one_line(name)} differs on {one_line(done.remote)}; both sides stay as they are")
    if json:
        write_json(
            verb,
            {
                "remote": done.remote,
                "branch": done.branch,
                "rounds": done.rounds,
                "notes": done.notes,
                "records": done.records,
                "conflicts": list(done.conflicts),
            },
        )
        return
    parts = [f"branch {one_line(done.branch)}"] if done.branch else []
    parts.append(f"{done.rounds} new rounds")
    parts.append("new scores" if done.notes else "no new scores")
    parts += [f"{done.records} new records"] if done.records else []
    direction = "to" if verb == "push" else "from"
    with open_output() as out:
        out.line(f"{direction} {one_line(done.remote)}: {', '.join(parts)}")
