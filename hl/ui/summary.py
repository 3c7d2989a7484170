"""What a run came to, as text and as JSON."""

from collections.abc import Mapping
from typing import Any

from hl.codec import encode
from hl.revise import Summary
from hl.types import Measurement, Round
from hl.ui.output import open_output
from hl.ui.text import columns, one_line, render_cost, render_counts, render_gain, render_score


def round_json(result: Round) -> Mapping[str, Any]:
    """One round for `--json`: scores and outcomes, without transcripts."""
    return {
        "lineage": result.lineage,
        "round": result.number,
        "parent": result.parent.commit,
        "verdict": encode(result.verdict),
        "parent_score": encode(result.scoring.score),
        "candidates": [
            {
                "index": c.proposal.index,
                "outcome": c.proposal.outcome.value,
                "summary": c.proposal.summary,
                "detail": c.proposal.detail,
                "score": encode(c.scoring.score) if c.scoring else None,
                "behavioural_noop": c.behavioural_noop,
            }
            for c in result.candidates
        ],
        "cost": encode(result.cost),
    }


def summary_json(summary: Summary) -> Mapping[str, Any]:
    """The summary for `--json`."""
    return {
        "reason": summary.reason,
        "rounds": list(summary.rounds),
        "accepted": list(summary.accepted),
        "before": _measured(summary.before),
        "after": _measured(summary.after),
        "gain": encode(summary.gain) if summary.gain else None,
        "outcomes": dict(summary.outcomes),
        "cost": encode(summary.cost),
        "cached_replies": summary.cached,
        "boundary": summary.boundary,
        "commit": summary.commit,
    }


def _measured(measurement: Measurement | None) -> Mapping[str, Any] | None:
    if measurement is None:
        return None
    return {
        **encode(measurement.score),
        "role": measurement.role.value,
        "zero_call_share": measurement.zero_call_share,
    }


def write_summary(summary: Summary) -> None:
    """Print the summary on stdout."""
    total = sum(summary.outcomes.values())
    shares = ", ".join(
        f"{name} {n} ({n / total:.0%})"
        for name, n in sorted(summary.outcomes.items(), key=lambda kv: (-kv[1], kv[0]))
    )
    rows = [("rounds", f"{len(summary.rounds)}, accepted {len(summary.accepted)}: {summary.reason}")]
    if summary.accepted and summary.accepted[-1] != summary.rounds[-1]:
        rows.append(("progress", f"ended at round {summary.accepted[-1]}"))
    rows.append(("proposals", shares or "none"))
    if summary.before and summary.after:
        rows.append(("evaluation", f"{render_score(summary.before.score)} before"))
        rows.append(("", f"{render_score(summary.after.score)} after"))
        if summary.gain is not None and summary.accepted:
            g = summary.gain
            rows.append(
                (
                    "gain",
                    f"{render_gain(g)} paired; {g.wins} won, {g.losses} lost, sign test p = {g.p_sign:.2g}",
                )
            )
        if summary.after.zero_call_share:
            rows.append(
                (
                    "without a call",
                    f"{summary.after.zero_call_share:.0%} of the attempts never asked the model",
                )
            )
        if summary.boundary:
            failing = render_counts(summary.after.classes)
            rows.append(("still failing", f"{failing}: mostly {_boundary(summary.boundary)}"))
    cached = f"; {summary.cached:,} replies from the cache" if summary.cached else ""
    rows.append(("cost", render_cost(summary.cost) + cached))
    with open_output() as out:
        for line in columns([(one_line(a), b) for a, b in rows]):
            out.line(line)


def _boundary(kind: str) -> str:
    return (
        "broken hand-overs, which edits can mend"
        if kind == "hand-over"
        else "wrong answers, not broken hand-overs"
    )
