"""Room 6, select: (parent, candidates) on the scoring block -> Selection; with the confirmed gain -> Verdict.

Promises: pure and deterministic (ties go to the earlier proposal); decision and evidence are separate
questions. Refuses to compare what is not comparable: another solver, another grade, another ablation. Does
not: measure, confirm or record anything.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from hl.config.sections import SELECT_RULES
from hl.errors import HlError, UsageError
from hl.stats import holm, paired_gain
from hl.types import Decision, Evidence, Gain, Measurement, Verdict

ALPHA = 0.05
"""Level of `significant` and of the evidence `gain` (ours)."""


@dataclass(frozen=True, slots=True)
class Selection:
    """What the scoring block alone says."""

    winner: int | None
    """Index of the proposal to go on with, even if it did not pass; None if none was scored."""
    gain: Gain | None
    """Winner against parent: biased upwards, it was used to choose."""
    passed: bool
    """Whether the rule lets the winner become the head, subject to confirmation."""
    reason: str
    """One clause, without a final stop."""


def pair(parent: Measurement, candidate: Measurement) -> Gain:
    """Compare two measurements on the questions that both have a grade for.

    Raises:
        HlError: They were made by different solvers or graded differently, or they share no question.
    """
    gain = _paired(parent, candidate)
    if gain.n == 0:
        raise HlError(
            f"harnesses {parent.harness[:12]} and {candidate.harness[:12]} share no graded question",
            hint="hl eval REV --set evaluation   # for both",
        )
    return gain


def _paired(parent: Measurement, candidate: Measurement) -> Gain:
    """As `pair`, but no shared question gives n = 0."""
    for what, one, two in (
        (
            "solver",
            f"{parent.solver_name} ({parent.solver})",
            f"{candidate.solver_name} ({candidate.solver})",
        ),
        ("grade", parent.mode, candidate.mode),
        ("ablation", parent.ablation or "none", candidate.ablation or "none"),
    ):
        if one != two:
            raise HlError(
                f"scores of harnesses {parent.harness[:12]} and {candidate.harness[:12]} cannot be compared: "
                f"{what} {one} against {two}",
                hint="hl eval REV --set evaluation   # measures a revision with the current configuration",
            )
    before = dict(zip(parent.ids, parent.grades, strict=True))
    ours: list[float] = []
    theirs: list[float] = []
    for question, grade in zip(candidate.ids, candidate.grades, strict=True):
        old = before.get(question)
        if old is not None and grade is not None:
            ours.append(old)
            theirs.append(grade)
    return paired_gain(ours, theirs)


def rank(gain: float, index: int) -> tuple[float, int]:
    """What candidates are ordered by: the paired gain on the scoring block, then the earlier proposal."""
    # Rounded, so that the order in which floats were added breaks no tie.
    return round(gain, 9), -index


def select(rule: str, parent: Measurement, candidates: Sequence[Measurement | None]) -> Selection:
    """Choose among a round's candidates by their scores on the block that all of them share with the parent.

    Candidates are ranked by paired gain, so a question that was lost for one of them does not favour another.

    Args:
        rule: One of `SELECT_RULES`. parent: The parent on the scoring block. candidates: One entry a
        proposal, in order; None where there is nothing to score (it counts as 0, which no
            rule can choose: there is no harness to make the head).

    Raises:
        UsageError: Unknown rule.
        HlError: A candidate was measured by another solver or grade than the parent.
    """
    if rule not in SELECT_RULES:
        raise UsageError(f"unknown selection rule {rule!r}", hint=f"--select {'|'.join(SELECT_RULES)}")
    gains = {i: _paired(parent, c) for i, c in enumerate(candidates) if c is not None}
    # A candidate of which every attempt was lost says nothing.
    scored = {i: gain for i, gain in gains.items() if gain.n > 0}
    if not scored:
        return Selection(None, None, False, f"none of {len(candidates)} proposals could be scored")

    def order_of(i: int) -> tuple[float, int]:
        return rank(scored[i].mean, i)

    winner = max(scored, key=order_of)
    best = scored[winner]
    words = f"proposal {winner} was best of {len(scored)} scored with {_words(best)} on the scoring block"
    if rule == "best":
        return Selection(winner, best, True, words)
    if rule == "improve":
        passed = round(best.mean, 9) > 0.0
        return Selection(winner, best, passed, words if passed else f"{words}: not above the parent")
    order = sorted(scored)
    adjusted = dict(zip(order, holm([scored[i].p_greater for i in order]), strict=True))
    significant = [i for i in order if adjusted[i] <= ALPHA and scored[i].mean > 0.0]
    if not significant:
        return Selection(winner, best, False, f"{words}: p {adjusted[winner]:.2g} after Holm, wanted {ALPHA}")
    winner = max(significant, key=order_of)
    best = scored[winner]
    return Selection(
        winner,
        best,
        True,
        f"proposal {winner} has {_words(best)} on the scoring block, p {adjusted[winner]:.2g} after Holm",
    )


def decide(rule: str, selection: Selection, confirmed: Gain | None, *, confirm: bool) -> Verdict:
    """Turn a selection and its confirmation into a verdict.

    `improve` and `significant` accept only if the confirmed gain is above 0; with `best` confirmation only
    reports. Evidence is `gain` when a one-sided paired permutation test on the deciding block says p < 0.05
    (ours: the confirmed gain; without confirmation the selection gain, which the reason then calls
    uncorrected). Neither follows from the other: an accepted winner is often within noise.

    Args:
        rule: One of `SELECT_RULES`.
        selection: What `select` gave.
        confirmed: Winner against parent on an unused block; None if it was not or could not be measured.
        confirm: Whether the configuration asks for confirmation.
    """

    def verdict(accepted: bool, evidence: Gain | None, reason: str) -> Verdict:
        return Verdict(
            decision=Decision.ACCEPTED if accepted else Decision.REJECTED,
            evidence=Evidence.GAIN if evidence is not None and _stands_out(evidence) else Evidence.NOISE,
            winner=selection.winner,
            selection=selection.gain,
            confirmed=confirmed,
            reason=reason[:1].upper() + reason[1:] + ".",
        )

    if selection.winner is None or not selection.passed:
        return verdict(False, None, selection.reason)
    if not confirm:
        return verdict(True, selection.gain, f"{selection.reason} (used to choose, not confirmed)")
    if confirmed is None or confirmed.n == 0:
        return verdict(
            rule == "best", None, f"{selection.reason}, but the confirmation could not be measured"
        )
    reason = f"{selection.reason} and {_words(confirmed)} on the confirmation block"
    if rule == "best":
        return verdict(True, confirmed, reason)
    accepted = round(confirmed.mean, 9) > 0.0
    return verdict(accepted, confirmed, reason if accepted else f"{reason}: not confirmed")


def _stands_out(gain: Gain) -> bool:
    return gain.mean > 0.0 and gain.p_greater < ALPHA


def _words(gain: Gain) -> str:
    return f"{gain.mean:+.3f} ± {gain.se:.3f} (n {gain.n})"
