"""Log entries -> lines and JSON. Plain strings and no nouns at import: a log of thousands of lines must be quick."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from hl.ui.output import Output
from hl.ui.text import one_line, render_score

if TYPE_CHECKING:
    from hl.ledger.log import LogEntry
    from hl.types import Measurement

ROLES = ("evaluation", "confirmation", "scoring")
"""Which score speaks for a harness, best first: held-out questions, then questions nobody chose it by."""
SHORT = {"evaluation": "eval", "confirmation": "conf", "scoring": "scor"}
HEADER = ("round", "verdict", "score", "gain", "outcome", "commit", "summary")
WIDTHS = (5, 8, 26, 20, 15, 9)
"""Of all columns but the last; fixed, so that lines can be written as they come."""
SUMMARY_WIDTH = 100


Conditions = tuple[str, str]
"""Solver digest and way of grading: scores under others do not compare."""


def conditions(m: "Measurement") -> Conditions:
    """Under which conditions a score was measured."""
    return m.solver, m.mode


def speaking(measurements: "Sequence[Measurement]", like: "Conditions | None" = None) -> "Measurement | None":
    """The measurement that speaks for a harness: of the best role, on the most questions, the newest.

    Args:
        measurements: Oldest first; ablations never speak.
        like: Conditions to prefer, whatever the role.
    """
    best: Measurement | None = None
    best_rank = (False, 0, 0)
    for m in measurements:
        if m.ablation or not m.score.n or m.role not in ROLES:
            continue
        rank = (conditions(m) == like, -ROLES.index(m.role), m.score.n)
        if best is None or rank >= best_rank:
            best, best_rank = m, rank
    return best


def verdict_of(entry: "LogEntry") -> str:
    """`accepted`, `rejected` (its round's best, but not taken), `not best`, `failed`, `seed` or `by hand`."""
    if entry.accepted:
        return "accepted"
    if entry.round and entry.verdict is not None and entry.verdict.winner == entry.index:
        return "rejected"
    if entry.round:
        return "not best" if entry.outcome in ("scored", "duplicate") else "failed"
    return "by hand" if entry.parents else "seed"


def gain_of(entry: "LogEntry") -> str:
    """`+0.250 ± 0.080`, or `-` where this commit decided nothing.

    `noise` marks a confirmed gain that does not stand out, `scor` one on the questions that chose the winner.
    """
    v = entry.verdict
    if v is None or v.winner != entry.index or v.gain is None or v.gain_se is None:
        return "-"
    mark = " noise" if v.evidence == "within noise" else ""
    return f"{v.gain:+.3f} ± {v.gain_se:.3f}" + (mark if v.confirmed else " scor")


def render_speaking(m: "Measurement | None") -> str:
    """`0.812 ± 0.049 (n=64) eval`, or `-`."""
    return "-" if m is None else f"{render_score(m.score)} {SHORT[m.role]}"


def subject_of(entry: "LogEntry") -> str:
    """The summary, and for a loser the reason."""
    subject = one_line(entry.subject, SUMMARY_WIDTH)
    detail = one_line(entry.detail, SUMMARY_WIDTH)
    return f"{subject} [{detail}]" if detail else subject


COLOURS = {"accepted": "green", "rejected": "yellow", "failed": "red", "not best": "dim", "seed": "cyan"}


def render_header() -> str:
    """The line above the columns."""
    return "  ".join(h.ljust(w) for h, w in zip(HEADER, (*WIDTHS, 0), strict=True)).rstrip()


def number_of(entry: "LogEntry", lineage: str) -> str:
    """`3`, `3/1` for a loser, `topic/3/1` where another lineage than the one looked at made it; empty for others."""
    if not entry.round:
        return ""
    if lineage and entry.lineage != lineage:
        return entry.name
    return f"{entry.round}/{entry.index}" if entry.loser else str(entry.round)


class LogWriter:
    """Writes commits as lines: one each, after the lines of the graph if there are any.

    Args:
        out: Where.
        oneline: The short form.
        lineage: The current branch: rounds of others are named in full.
    """

    def __init__(self, out: Output, *, oneline: bool, lineage: str = "") -> None:
        self._out, self._oneline, self._lineage = out, oneline, lineage
        self._like: Conditions | None = None
        self._others = 0
        if not oneline:
            out.line(out.paint(render_header(), "dim"))

    def write(self, entry: "LogEntry") -> None:
        """The next commit."""
        out = self._out
        *above, prefix = entry.graph or ("",)
        for line in above:
            out.line(out.paint(line, "dim"))
        if prefix:
            prefix = out.paint(prefix, "dim") + " "
        verdict = verdict_of(entry)
        colour = COLOURS.get(verdict, "dim")
        commit = out.paint(entry.commit[:9], "yellow")
        if self._oneline:
            number = number_of(entry, self._lineage)
            score = self._score(entry)
            parts = [commit, *([number] if number else []), out.paint(verdict, colour)]
            parts += [score] if score != "-" else []
            out.line(prefix + " ".join(parts) + " " + subject_of(entry))
            return
        cells = (
            (number_of(entry, self._lineage) or "-").rjust(5),
            verdict,
            self._score(entry),
            gain_of(entry),
            str(entry.outcome or "-"),
        )
        texts = [cell.ljust(width) for cell, width in zip(cells, WIDTHS, strict=False)]
        texts[1] = out.paint(texts[1], colour)
        out.line(prefix + "  ".join([*texts, commit, subject_of(entry)]))

    def end(self) -> None:
        """A last line where some scores do not compare with the others."""
        if self._others:
            note = "* by another solver or way of grading than the first score shown: not comparable with it"
            self._out.line(self._out.paint(note, "dim"))

    def _score(self, entry: "LogEntry") -> str:
        m = speaking(entry.measurements, self._like)
        text = render_speaking(m)
        if m is None:
            return text
        if self._like is None:
            self._like = conditions(m)
        other = conditions(m) != self._like
        self._others += other
        return text + "*" if other else text


def measurement_json(m: "Measurement") -> Mapping[str, Any]:
    """A measurement without its grades."""
    score = m.score
    return {
        "role": str(m.role),
        "mean": score.mean,
        "se": score.se,
        "n": score.n,
        "mode": m.mode,
        "trials": m.trials,
        "solver": m.solver_name,
        "solver_digest": m.solver,
        "questions": m.questions,
        "counts": dict(m.counts),
        "classes": dict(m.classes),
        "zero_call_share": m.zero_call_share,
        "sandbox": m.sandbox,
        "ablation": m.ablation,
        "time": m.time,
    }


def entry_json(entry: "LogEntry") -> Mapping[str, Any]:
    """One commit for `--json`."""
    v = entry.verdict
    speaker = speaking(entry.measurements)
    return {
        "commit": entry.commit,
        "parents": list(entry.parents),
        "time": entry.time,
        "subject": entry.subject.encode("utf-8", "replace").decode(),
        "harness": entry.harness,
        "name": entry.name,
        "lineage": entry.lineage,
        "round": entry.round,
        "index": entry.index if entry.round else None,
        "outcome": str(entry.outcome) if entry.outcome else None,
        "detail": entry.detail,
        "verdict": verdict_of(entry),
        "accepted": entry.accepted,
        "loser": entry.loser,
        "duplicate_of": entry.duplicate_of,
        "decision": None
        if v is None
        else {
            "decision": str(v.decision),
            "evidence": str(v.evidence),
            "winner": v.winner,
            "gain": v.gain,
            "gain_se": v.gain_se,
            "gain_n": v.gain_n,
            "confirmed": v.confirmed,
        },
        "score": None if speaker is None else measurement_json(speaker),
        "measurements": [measurement_json(m) for m in entry.measurements],
    }
