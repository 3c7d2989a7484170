"""Curves by round, what round 1 took, and proposers against each other, by hand."""

import math
from dataclasses import replace

import pytest

from hl.bench.curves import Chain, curve, difference, read_chains
from hl.bench.estimates import score
from hl.bench.rows import CHAIN, Row
from tests.bench.kit import again, failed, head, revised, sample, scored, seed


def chain(block: int, *, family: str = "gcd", proposer: str = "p") -> list[Row]:
    """Seed 0.25; round 1 to 0.5; round 2 is rejected, though its candidate would have been better."""
    at = {"protocol": CHAIN, "block": block, "family": family, "proposer": proposer}
    return [
        seed([1, 0, 0, 0], **at),
        revised(1, [0, 0], **at),
        scored(0, [1, 1, 0, 0], [1, 0], harness="a", **at),
        failed(1, "noop", **at),
        head(1, "a", [1, 1, 0, 0], **at),
        revised(2, [1, 0], **at),
        scored(0, [1, 1, 1, 0], [0, 0], harness="b", **{**at, "round": 2}),
        failed(1, "duplicate", duplicate_of="a", **{**at, "round": 2}),
        head(2, "a", [1, 1, 0, 0], **at),
    ]


def numbers(found: Chain) -> list[tuple[float, ...]]:
    return [
        tuple(map(score, (s.head.grades, s.chosen.grades, s.oracle.grades, s.proposals))) for s in found.steps
    ]


def test_steps_by_hand() -> None:
    (found,) = read_chains(chain(1), ("s", "p"))
    start, first, second = numbers(found)
    assert start == (0.25,) * 4
    # The no-op scores 0.
    assert first == (0.5, 0.5, 0.5, 0.25)
    # b is best on the evaluation set only; the repeat of a scores as a did in round 1.
    assert second == (0.5, 0.5, 0.75, 0.625)


def test_best_so_far_adds_up_gains_over_the_parent_and_never_compares_two_blocks() -> None:
    at = {"protocol": CHAIN}
    rows = [
        seed([0, 0], **at),
        # An easy block: the seed scores 1, and so does what replaces it (`--select best` takes it).
        revised(1, [1, 1], **at),
        scored(0, [1, 0], [1, 1], harness="even", **at),
        head(1, "even", [1, 0], **at),
        # A hard one: half of it right is a gain of a half, though less than round 1's mean.
        revised(2, [0, 0], **at),
        scored(0, [1, 1], [1, 0], harness="better", **{**at, "round": 2}),
        head(2, "better", [1, 1], **at),
        # The head gets worse, and so does what a user would be told of it; the best stays.
        revised(3, [1, 1], **at),
        scored(0, [0, 0], [1, 0.5], harness="worse", **{**at, "round": 3}),
        head(3, "worse", [0, 0], **at),
        # A gain of a quarter on a head that lost a quarter is not above the best.
        revised(4, [0, 0], **at),
        scored(0, [0, 1], [0.5, 0], harness="last", **{**at, "round": 4}),
        head(4, "last", [0, 1], **at),
    ]
    (found,) = read_chains(rows, ("s", "p"))
    assert [score(s.chosen.grades) for s in found.steps] == [0.0, 0.0, 1.0, 1.0, 1.0]
    assert (found.steps[4].chosen.harness, found.steps[4].head.harness) == ("better", "last")


def test_a_curve_is_the_mean_over_families_of_their_chains_with_errors() -> None:
    flat = {"protocol": CHAIN, "family": "lcm", "cluster": "other"}
    rows = [*chain(1), *chain(2), seed([0, 0], **flat)]
    for n in (1, 2):
        rows += [revised(n, [0], **flat), head(n, "seed", [0, 0], **flat)]
    found = curve(read_chains(rows, ("s", "p")))
    assert found is not None
    assert (found.families, found.chains) == (2, 3)
    heads = [p.head for p in found.points if p.head is not None]
    assert [h.mean for h in heads] == pytest.approx([0.125, 0.25, 0.25])
    assert all(h.fixed.low <= h.mean <= h.fixed.high and h.clusters is not None for h in heads)
    gains = [p.gain.mean for p in found.points if p.gain is not None]
    assert gains == pytest.approx([0.0, 0.125, 0.125])
    assert found.first_share == pytest.approx(1.0)
    assert read_chains(rows, ("s", "other")) == () and curve(()) is None


def test_no_gain_has_no_share_and_a_round_without_a_judged_proposal_no_mean() -> None:
    at = {"protocol": CHAIN}
    rows = [seed([1, 0], **at), revised(1, [0], **at), failed(0, "lost", **at), head(1, "seed", [1, 0], **at)]
    found = curve(read_chains(rows, ("s", "p")))
    assert found is not None and found.first_share is None
    assert found.points[1].proposals is None and found.points[1].head is not None


def test_the_noise_floor_is_as_wide_as_what_is_compared() -> None:
    at = {"protocol": CHAIN}
    rows = [*chain(1), again("seed", [0, 1, 1, 0], **at), again("a", [1, 1, 0, 1], **at)]
    found = curve(read_chains(rows, ("s", "p")))
    assert found is not None
    # The variance of one measurement: half the squared differences, over the square of 4 questions.
    seed_noise, head_noise = 3 / 2 / 16, 1 / 2 / 16
    assert found.points[1].floor == pytest.approx(1.96 * math.sqrt(seed_noise + head_noise))
    # The seed against itself is no comparison; and what was measured once has no floor.
    assert found.points[0].floor == 0.0
    once = curve(read_chains(chain(1), ("s", "p")))
    assert once is not None and once.points[1].floor is None


def test_proposers_are_compared_chain_by_chain_and_question_by_question() -> None:
    rows = [*chain(1), *chain(2), *chain(1, proposer="q"), *chain(3, proposer="q")]
    one, other = read_chains(rows, ("s", "p")), read_chains(rows, ("s", "q"))
    found, floor = difference(other, one, lambda s: s.head)
    # Chains 2 and 3 have no counterpart.
    assert found is not None and found.contexts == 1 and found.mean == 0.0 and floor is None
    assert difference(one[1:], other, lambda s: s.chosen) == (None, None)


def test_rounds_that_met_the_same_block_are_counted() -> None:
    at = {"protocol": CHAIN}
    rows = [seed([1], **at)]
    for n in (1, 2, 3):
        met = replace(revised(n, [0], **at), scoring=sample([0], block=f"s{n % 2}"))
        rows += [met, head(n, "seed", [1], **at)]
    (found,) = read_chains(rows, ("s", "p"))
    assert found.blocks == 2
