"""Commit messages of candidates and rounds: what plain `git log` tells, and what is read back from it.

Text of a model reaches a message only as one cleaned line, the subject. Trailers are the last paragraph and ours
alone. A trailer is believed only where the round's own commit has the commit among its parents: copies (cherry-pick,
rebase, forgery) are shown by git but mean nothing here.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from hl.ledger.names import render_candidate
from hl.types import Candidate, Decision, Evidence, Gain, Measurement, Outcome, Round, Score

SUBJECT_MAX = 100
_OURS = re.compile(r"^\s*HL-[A-Za-z-]+\s*:.*$", re.IGNORECASE | re.MULTILINE)
_TRAILER = re.compile(r"^(HL-[A-Za-z]+): (.*)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class RoundVerdict:
    """A round's verdict as its commit's message tells it: all that `hl log` needs."""

    decision: Decision
    evidence: Evidence
    winner: int | None
    gain: float | None
    gain_se: float | None
    gain_n: int
    confirmed: bool
    """Whether the gain was measured on the confirmation block; else it is the selection's, biased upwards."""


def clean_line(text: str, limit: int = SUBJECT_MAX) -> str:
    """Model text as one harmless line: no `HL-*:` lines, nothing unprintable, not too long."""
    line = " ".join("".join(c if c.isprintable() else " " for c in _OURS.sub("", text)).split())
    line = re.sub(r"^(HL-[A-Za-z-]+\s*:\s*)+", "", line, flags=re.IGNORECASE)
    return line if len(line) <= limit else line[: limit - 3].rstrip() + "..."


def candidate_message(round: Round, candidate: Candidate) -> str:
    """The message of a candidate's commit. No durations: it must repeat."""
    p = candidate.proposal
    accepted = is_accepted(round, p.index)
    subject = clean_line(p.summary) or f"Candidate {p.index} of round {round.number}"
    trailers = [f"HL-Round: {render_candidate(round.lineage, round.number, p.index)}"]
    if accepted and len(round.confirmation) == 2 and round.confirmation[1].score.n:
        trailers.append(f"HL-Score: {render_score(round.confirmation[1].score, 'confirmation')}")
    elif candidate.scoring is not None:
        trailers.append(f"HL-Score: {render_score(candidate.scoring.score, 'scoring')}")
    gain = round.verdict.confirmed or round.verdict.selection
    if accepted and gain is not None:
        label = "confirmation" if round.verdict.confirmed else "scoring"
        trailers.append(f"HL-Gain: {render_gain(gain, label)}")
    trailers.append(f"HL-Edit: {_render_edit(candidate)}")
    trailers.append(f"HL-Proposer: {clean_line(p.proposer)}")
    trailers.append(f"HL-Solver: {render_solver(round.scoring)}")
    return subject + "\n\n" + "\n".join(trailers) + "\n"


def round_message(round: Round) -> str:
    """The message of a round's commit."""
    v = round.verdict
    chosen = "" if v.winner is None else f", best candidate {v.winner}"
    lines = [
        f"Round {round.number} of {round.lineage}: {v.decision.value}{chosen}",
        "",
        clean_line(v.reason, 400) or "No reason given.",
        "",
        f"HL-Decision: {v.decision.value}",
        f"HL-Evidence: {v.evidence.value}",
    ]
    if v.winner is not None:
        lines.append(f"HL-Winner: {v.winner}")
    if (gain := v.confirmed or v.selection) is not None:
        lines.append(f"HL-Gain: {render_gain(gain, 'confirmation' if v.confirmed else 'scoring')}")
    return "\n".join(lines) + "\n"


def is_accepted(round: Round, index: int) -> bool:
    """Whether this candidate becomes the head."""
    return round.verdict.decision is Decision.ACCEPTED and round.verdict.winner == index


def render_score(score: Score, label: str) -> str:
    """Such as `0.7188 +- 0.0808 n=32 scoring`."""
    return f"{score.mean:.4f} +- {score.se:.4f} n={score.n} {label}"


def render_gain(gain: Gain, label: str) -> str:
    """Such as `+0.2500 +- 0.0800 n=32 confirmation`."""
    return f"{gain.mean:+.4f} +- {gain.se:.4f} n={gain.n} {label}"


def render_solver(measurement: Measurement) -> str:
    """Such as `llamacpp smollm2 0123456789abcdef`."""
    return f"{clean_line(measurement.solver_name)} {measurement.solver}".strip()


def _render_edit(candidate: Candidate) -> str:
    p = candidate.proposal
    if not p.edits:
        return p.outcome.value
    added = sum(len(e.replace.splitlines()) for e in p.edits)
    removed = sum(len(e.search.splitlines()) for e in p.edits)
    noop = " behavioural-noop" if candidate.behavioural_noop else ""
    return f"{p.outcome.value} blocks={len(p.edits)} lines=+{added}-{removed}{noop}"


def parse_trailers(message: str) -> Mapping[str, str]:
    """The `HL-*` trailers of a message: those of its last paragraph, never of its subject."""
    if "HL-" not in message:
        return {}
    paragraphs = message.rstrip("\n").split("\n\n")
    if len(paragraphs) < 2:
        return {}
    return dict(_TRAILER.findall(paragraphs[-1]))


def parse_verdict(message: str) -> RoundVerdict | None:
    """The verdict in a round commit's message, or None."""
    trailers = parse_trailers(message)
    try:
        decision = Decision(trailers["HL-Decision"])
        evidence = Evidence(trailers["HL-Evidence"])
        winner = int(trailers["HL-Winner"]) if "HL-Winner" in trailers else None
        gain: tuple[float, float, int, str] | None = None
        if text := trailers.get("HL-Gain"):
            mean, _, se, n, label = text.split(" ")
            gain = float(mean), float(se), int(n.removeprefix("n=")), label
    except (KeyError, ValueError):
        return None
    if gain is None:
        return RoundVerdict(decision, evidence, winner, None, None, 0, False)
    return RoundVerdict(decision, evidence, winner, gain[0], gain[1], gain[2], gain[3] == "confirmation")


def parse_outcome(trailers: Mapping[str, str]) -> Outcome | None:
    """The outcome in an `HL-Edit` trailer."""
    word = trailers.get("HL-Edit", "").split(" ")[0]
    return Outcome(word) if word in {o.value for o in Outcome} else None
