"""Room 6: the three rules, what may be compared, and why winners are confirmed."""

import random
import statistics
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hl.errors import HlError, UsageError
from hl.selection import ALPHA, SELECT_RULES, decide, pair, select
from hl.stats import best_of_n_bias
from hl.types import Decision, Evidence, Gain, Measurement, Role


def measured(
    grades: Sequence[float | None], *, harness: str = "h" * 64, ids: Sequence[str] = ()
) -> Measurement:
    return Measurement(
        harness=harness,
        role=Role.SCORING,
        questions="q" * 64,
        ids=tuple(ids) or tuple(f"q{i}" for i in range(len(grades))),
        grades=tuple(grades),
        solver="0123456789abcdef",
        solver_name="scripted",
        mode="raw",
        counts={},
        classes={},
        tool_errors={},
        trials=1,
        calls=0,
        tokens=0,
        seconds=0.0,
        zero_call_share=0.0,
        sandbox="bwrap+landlock+seccomp",
    )


PARENT = measured([1, 1, 0, 0, 0, 0, 0, 0])
WORSE = measured([1, 0, 0, 0, 0, 0, 0, 0])
SAME = measured([0, 0, 1, 1, 0, 0, 0, 0])
BETTER = measured([1, 1, 1, 0, 0, 0, 0, 0])
MUCH = measured([1, 1, 1, 1, 1, 1, 1, 1])

# --- comparing --------------------------------------------------------------------------------------------------


def test_pair_takes_the_shared_graded_questions() -> None:
    one = measured([0, 1, None, 0.5], ids=["a", "b", "c", "d"])
    two = measured([1, 1, 0.5, None, 0], ids=["d", "a", "c", "b", "e"])
    gain = pair(one, two)
    assert (gain.n, gain.mean, gain.wins) == (2, 0.75, 2)


@pytest.mark.parametrize(
    ("other", "words"),
    [
        (
            replace(SAME, solver="f" * 16, solver_name="openai big"),
            "scripted (0123456789abcdef) against openai big",
        ),
        (replace(SAME, mode="strict"), "raw against strict"),
        (replace(SAME, ablation="empty"), "none against empty"),
        (measured([1, 1], ids=["x", "y"]), "share no graded question"),
        (measured([None] * 8), "share no graded question"),
    ],
)
def test_what_cannot_be_compared_is_refused(other: Measurement, words: str) -> None:
    with pytest.raises(HlError) as caught:
        pair(PARENT, other)
    assert words in caught.value.message
    assert caught.value.hint and caught.value.hint.startswith("hl eval")


def test_select_refuses_another_solver_too() -> None:
    with pytest.raises(HlError, match="cannot be compared"):
        select("best", PARENT, [replace(BETTER, solver="f" * 16)])


# --- rules ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rule", "candidates", "winner", "passed"),
    [
        ("improve", [WORSE, BETTER, MUCH], 2, True),
        ("improve", [WORSE, SAME], 1, False),
        ("improve", [None, BETTER, BETTER], 1, True),
        ("improve", [WORSE], 0, False),
        ("improve", [None, None], None, False),
        ("improve", [], None, False),
        ("improve", [measured([None] * 8), BETTER], 1, True),
        ("improve", [measured([None] * 8)], None, False),
        ("best", [WORSE, SAME], 1, True),
        ("best", [WORSE, None], 0, True),
        ("best", [None, None], None, False),
        ("significant", [BETTER], 0, False),
        ("significant", [WORSE, MUCH], 1, True),
        ("significant", [MUCH, MUCH], 0, True),
        ("significant", [None], None, False),
    ],
)
def test_rule(rule: str, candidates: list[Measurement | None], winner: int | None, passed: bool) -> None:
    selection = select(rule, PARENT, candidates)
    assert (selection.winner, selection.passed) == (winner, passed)
    assert (selection.gain is None) == (winner is None)
    if winner is not None and candidates[winner] is not None:
        assert selection.gain == pair(PARENT, candidates[winner])


def test_the_correction_grows_with_the_scored_candidates() -> None:
    parent = measured([0] * 20)
    # Five wins, no loss: p = 1/32 alone, 2/32 corrected for two.
    five = measured([1] * 5 + [0] * 15)
    assert select("significant", parent, [five, None, None]).passed
    assert not select("significant", parent, [five, measured([0] * 20)]).passed


def test_a_significant_gain_beats_a_larger_one_that_is_not() -> None:
    parent = measured([0.5] * 12)
    steady = measured([0.55] * 12)
    wild = measured([1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0])
    assert select("improve", parent, [wild, steady]).winner == 0
    selection = select("significant", parent, [wild, steady])
    assert (selection.winner, selection.passed) == (1, True)


def test_a_lost_question_does_not_favour_a_candidate() -> None:
    # The lost question was the one that everybody fails: without pairing the first mean would be higher.
    parent = measured([1, 1, 0, 0])
    lucky = measured([1, 1, None, 0])
    selection = select("improve", parent, [lucky, measured([1, 1, 0, 0.5])])
    assert selection.winner == 1


def test_an_unknown_rule_is_named() -> None:
    with pytest.raises(UsageError, match="'luck'") as caught:
        select("luck", PARENT, [BETTER])
    assert caught.value.hint == "--select improve|best|significant"


GRADE = st.one_of(st.none(), st.sampled_from([0.0, 0.1, 0.3, 0.5, 1.0]))
MEASURED = st.one_of(st.none(), st.lists(GRADE, min_size=6, max_size=6).map(measured))


@given(
    st.sampled_from(SELECT_RULES),
    st.lists(st.sampled_from([0.0, 0.1, 0.3, 1.0]), min_size=6, max_size=6).map(measured),
    st.lists(MEASURED, max_size=6),
)
def test_selection_properties(rule: str, parent: Measurement, candidates: list[Measurement | None]) -> None:
    selection = select(rule, parent, candidates)
    if selection.winner is None:
        assert not selection.passed
        return
    chosen = candidates[selection.winner]
    assert chosen is not None and selection.gain == pair(parent, chosen)
    gains = [
        round(pair(parent, c).mean, 9) if c is not None and any(g is not None for g in c.grades) else None
        for c in candidates
    ]
    best = max(g for g in gains if g is not None)
    if rule != "significant" or not selection.passed:
        assert gains.index(best) == selection.winner
    if rule == "improve":
        assert selection.passed == (best > 0)
    if rule == "significant" and selection.passed:
        assert selection.gain.mean > 0 and selection.gain.p_greater <= ALPHA


# --- verdicts ---------------------------------------------------------------------------------------------------


def gain(mean: float, p: float = 0.5, n: int = 32) -> Gain:
    return Gain(mean, 0.05, n, 0, 0, 0, 1.0, p)


UP = select("improve", PARENT, [MUCH])
FLAT = select("improve", PARENT, [SAME])
NONE = select("improve", PARENT, [None])
DOWN = select("best", PARENT, [WORSE])


@pytest.mark.parametrize(
    ("rule", "selection", "confirmed", "confirm", "decision", "evidence"),
    [
        ("improve", UP, gain(0.2, 0.01), True, "accepted", "gain"),
        ("improve", UP, gain(0.02, 0.4), True, "accepted", "within noise"),
        ("improve", UP, gain(0.0), True, "rejected", "within noise"),
        ("improve", UP, gain(-0.2, 0.99), True, "rejected", "within noise"),
        ("improve", UP, None, True, "rejected", "within noise"),
        ("improve", UP, gain(0.0, 1.0, n=0), True, "rejected", "within noise"),
        ("improve", UP, None, False, "accepted", "gain"),
        ("improve", FLAT, None, True, "rejected", "within noise"),
        ("improve", FLAT, None, False, "rejected", "within noise"),
        ("improve", NONE, None, True, "rejected", "within noise"),
        ("significant", UP, gain(0.1, 0.2), True, "accepted", "within noise"),
        ("significant", UP, gain(-0.1), True, "rejected", "within noise"),
        ("best", DOWN, gain(-0.1), True, "accepted", "within noise"),
        ("best", DOWN, gain(0.3, 0.001), True, "accepted", "gain"),
        ("best", DOWN, None, True, "accepted", "within noise"),
        ("best", DOWN, None, False, "accepted", "within noise"),
    ],
)
def test_verdict(rule, selection, confirmed, confirm, decision, evidence) -> None:  # type: ignore[no-untyped-def]
    verdict = decide(rule, selection, confirmed, confirm=confirm)
    assert (verdict.decision, verdict.evidence) == (Decision(decision), Evidence(evidence))
    assert (verdict.winner, verdict.selection, verdict.confirmed) == (
        selection.winner,
        selection.gain,
        confirmed,
    )
    assert verdict.reason[0].isupper() and verdict.reason.endswith(".") and "\n" not in verdict.reason


def test_an_unconfirmed_gain_is_labelled() -> None:
    assert "not confirmed" in decide("improve", UP, None, confirm=False).reason
    assert "could not be measured" in decide("improve", UP, None, confirm=True).reason
    assert (
        "+0.200 ± 0.050 (n 32) on the confirmation block"
        in decide("improve", UP, gain(0.2), confirm=True).reason
    )


# --- why confirm --------------------------------------------------------------------------------------------------


def coin(rng: random.Random, n: int) -> Measurement:
    return measured([float(rng.random() < 0.5) for _ in range(n)])


def test_identical_candidates_drift_without_confirmation_and_not_with_it() -> None:
    """Ten rounds of 8 identical candidates, J = 0.5, n = 32: the record climbs to 0.71, the confirmed gain stays 0."""
    rng = random.Random(7)
    n, k, rounds = 32, 8, 10
    records: list[float] = []
    selected: list[float] = []
    confirmed: list[float] = []
    evidence: list[bool] = []
    for _ in range(60):
        head = coin(rng, n)
        for _ in range(rounds):
            candidates = [coin(rng, n) for _ in range(k)]
            selection = select("improve", head, candidates)
            if not selection.passed:
                continue
            assert selection.winner is not None and selection.gain is not None
            verdict = decide("improve", selection, None, confirm=False)
            assert verdict.decision == Decision.ACCEPTED
            head = candidates[selection.winner]
            again = pair(coin(rng, n), coin(rng, n))
            evidence.append(decide("improve", selection, again, confirm=True).evidence == Evidence.GAIN)
            selected.append(selection.gain.mean)
            confirmed.append(again.mean)
        records.append(head.score.mean)
    se = 0.5 / n**0.5
    assert statistics.fmean(records) == pytest.approx(0.71, abs=0.015)
    assert statistics.fmean(records) == pytest.approx(0.5 + best_of_n_bias(se, k * rounds), abs=0.015)
    assert statistics.fmean(selected) > 0.05
    assert abs(statistics.fmean(confirmed)) < 3 * statistics.stdev(confirmed) / len(confirmed) ** 0.5
    assert statistics.fmean(evidence) < 0.1
