"""Curves by round and what round 1 took, by hand."""

import pytest

from hl.bench.curves import curve, independent, points, spent_on
from hl.bench.rows import CHAIN, INDEPENDENT, Row
from tests.bench.kit import failed, head, sample, scored, seed


def chain(block: int, *, family: str = "gcd") -> list[Row]:
    """Seed 0.25; round 1 to 0.5; round 2 is rejected, though its candidate would have been better."""
    at = {"protocol": CHAIN, "block": block, "family": family}
    return [
        seed([1, 0, 0, 0], **at),
        scored(0, [1, 1, 0, 0], [1, 0], harness="a", **at),
        failed(1, "noop", **at),
        head(1, "a", [1, 1, 0, 0], **at),
        scored(0, [1, 1, 1, 0], [0, 0], harness="b", **{**at, "round": 2}),
        failed(1, "duplicate", duplicate_of="a", **{**at, "round": 2}),
        head(2, "a", [1, 1, 0, 0], **at),
    ]


def test_points_by_hand() -> None:
    start, first, second = points(chain(1))
    assert (start.head, start.chosen, start.oracle, start.proposals) == (0.25,) * 4
    # The no-op scores 0.
    assert (first.head, first.chosen, first.oracle, first.proposals) == (0.5, 0.5, 0.5, 0.25)
    # b is best on the evaluation set only; the repeat of a scores as a did in round 1.
    assert (second.head, second.chosen, second.oracle, second.proposals) == (0.5, 0.5, 0.75, 0.625)


def test_a_curve_is_the_mean_over_families_of_their_chains() -> None:
    flat = {"protocol": CHAIN, "family": "lcm"}
    rows = [*chain(1), *chain(2), seed([0, 0], **flat)]
    rows += [head(n, "seed", [0, 0], **flat) for n in (1, 2)]
    found = curve(rows, "s", "p")
    assert found is not None
    assert (found.families, found.chains) == (2, 3)
    assert [p.head for p in found.points] == pytest.approx([0.125, 0.25, 0.25])
    assert found.first_share == pytest.approx(1.0)
    assert curve(rows, "s", "other") is None


def test_no_gain_has_no_share() -> None:
    rows = [seed([1, 0], protocol=CHAIN), head(1, "seed", [1, 0], protocol=CHAIN)]
    found = curve(rows, "s", "p")
    assert found is not None and found.first_share is None


def test_independent_proposals_and_their_cost() -> None:
    rows = [
        seed([0, 0], protocol=INDEPENDENT),
        scored(0, [1, 1], [1], protocol=INDEPENDENT, proposer_tokens=7),
        scored(1, [1, 0], [1], protocol=INDEPENDENT, proposer_tokens=5),
        failed(2, "malformed", protocol=INDEPENDENT, proposer_tokens=3),
    ]
    found = independent(rows, "s", "p")
    assert found is not None
    best, count, spent = found
    assert (best, count) == (1.0, 3)
    # Seed: 2 + 2 questions; each candidate: 1 + 2; one call and ten tokens each.
    assert (spent.calls, spent.tokens, spent.proposer_tokens) == (10, 100, 15)


def test_a_harness_measured_twice_on_one_block_is_paid_for_once() -> None:
    rows = [scored(0, [1], [1], harness="a"), scored(1, [1], [1], harness="a")]
    assert spent_on(rows).calls == sample([1]).calls + sample([1]).calls
