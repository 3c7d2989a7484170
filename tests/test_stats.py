"""Statistics against scipy, brute force and simulation."""

import itertools
import math
import random
import statistics

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hl.stats import (
    best_of_n_bias,
    bonferroni,
    bootstrap_ci,
    expected_normal_max,
    holm,
    mean_se,
    paired_gain,
    permutation_p,
    sign_test_p,
)
from hl.types import Gain, Score

GRADES = st.lists(st.floats(0, 1), min_size=2, max_size=40)
BINARY = st.lists(st.sampled_from([-1.0, 0.0, 1.0]), min_size=1, max_size=60)


@given(GRADES)
def test_mean_se_is_the_textbook_one(values: list[float]) -> None:
    score = mean_se(values)
    assert score.n == len(values)
    assert score.mean == pytest.approx(statistics.fmean(values))
    assert score.se == pytest.approx(statistics.stdev(values) / math.sqrt(len(values)), abs=1e-12)


def test_mean_se_of_few() -> None:
    assert mean_se([]) == Score(0.0, 0.0, 0)
    assert mean_se([0.5]) == Score(0.5, 0.0, 1)


@pytest.mark.parametrize(
    ("wins", "losses"), [(0, 0), (1, 0), (0, 6), (3, 10), (10, 3), (25, 25), (130, 99), (400, 301)]
)
def test_sign_test_is_scipys(wins: int, losses: int) -> None:
    from scipy.stats import binomtest

    expected = binomtest(wins, wins + losses).pvalue if wins + losses else 1.0
    assert sign_test_p(wins, losses) == pytest.approx(expected, rel=1e-9)


@given(BINARY)
def test_permutation_of_binary_grades_is_the_one_sided_sign_test(differences: list[float]) -> None:
    from scipy.stats import binomtest

    wins, losses = differences.count(1.0), differences.count(-1.0)
    expected = binomtest(wins, wins + losses, alternative="greater").pvalue if wins + losses else 1.0
    assert permutation_p(differences) == pytest.approx(expected, rel=1e-9)


@settings(max_examples=50)
@given(st.lists(st.integers(-20, 20).map(lambda i: i / 20), min_size=1, max_size=9))
def test_permutation_is_exact_by_brute_force(differences: list[float]) -> None:
    observed = sum(differences)
    sums = [
        sum(s * abs(d) for s, d in zip(signs, differences, strict=True))
        for signs in itertools.product((1, -1), repeat=len(differences))
    ]
    expected = sum(total >= observed - 1e-9 for total in sums) / len(sums) if any(differences) else 1.0
    assert permutation_p(differences) == pytest.approx(expected)


def test_permutation_beyond_exact_is_close_and_repeats() -> None:
    rng = random.Random(3)
    differences = [rng.gauss(0.1, 1.0) for _ in range(203)]
    p = permutation_p(differences)
    # With many unequal differences the null is close to normal.
    z = math.fsum(differences) / math.sqrt(math.fsum(d * d for d in differences))
    assert p == pytest.approx(0.5 * math.erfc(z / math.sqrt(2)), abs=0.02)
    assert p == permutation_p(differences)
    assert 0 < permutation_p([abs(d) for d in differences]) <= 1e-4


@given(
    GRADES.flatmap(
        lambda a: st.tuples(st.just(a), st.lists(st.floats(0, 1), min_size=len(a), max_size=len(a)))
    )
)
def test_gain_is_antisymmetric(pair: tuple[list[float], list[float]]) -> None:
    one, two = pair
    there, back = paired_gain(one, two), paired_gain(two, one)
    assert there.mean == pytest.approx(-back.mean)
    assert there.se == pytest.approx(back.se)
    assert (there.wins, there.losses, there.ties) == (back.losses, back.wins, back.ties)
    assert there.wins + there.losses + there.ties == there.n == len(one)
    assert there.p_sign == back.p_sign
    assert 0 < there.p_greater <= 1
    assert there.p_greater + back.p_greater >= 1 - 0.05  # they share the observed arrangement


def test_gain_counts() -> None:
    gain = paired_gain([0.0, 1.0, 0.5, 0.0], [1.0, 0.0, 0.5, 0.25])
    assert (gain.mean, gain.n, gain.wins, gain.losses, gain.ties) == (0.0625, 4, 2, 1, 1)
    assert paired_gain([], []) == Gain(0.0, 0.0, 0, 0, 0, 0, 1.0, 1.0)
    with pytest.raises(ValueError, match="1 grades cannot be paired with 2"):
        paired_gain([0.0], [0.0, 1.0])


def test_rounding_noise_is_a_tie() -> None:
    gain = paired_gain([0.1 + 0.2], [0.3])
    assert (gain.ties, gain.p_greater) == (1, 1.0)


@pytest.mark.parametrize(
    ("k", "expected"), [(1, 0.0), (2, 1 / math.sqrt(math.pi)), (8, 1.4236003), (80, 2.4267744)]
)
def test_expected_maximum(k: int, expected: float) -> None:
    assert expected_normal_max(k) == pytest.approx(expected, abs=1e-6)
    assert best_of_n_bias(0.1, k) == pytest.approx(0.1 * expected, abs=1e-6)


def test_no_maximum_of_nothing() -> None:
    with pytest.raises(ValueError, match="maximum of 0"):
        expected_normal_max(0)


def test_best_of_eight_is_biased_as_much_as_said() -> None:
    rng = random.Random(5)
    n, k = 32, 8
    best = [max(sum(rng.random() < 0.5 for _ in range(n)) / n for _ in range(k)) for _ in range(1500)]
    assert statistics.fmean(best) - 0.5 == pytest.approx(best_of_n_bias(0.5 / math.sqrt(n), k), abs=0.006)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=10))
def test_holm_lies_between_raw_and_bonferroni(p_values: list[float]) -> None:
    adjusted, blunt = holm(p_values), bonferroni(p_values)
    assert all(p <= h <= b for p, h, b in zip(p_values, adjusted, blunt, strict=True))
    order = sorted(range(len(p_values)), key=lambda i: p_values[i])
    assert [adjusted[i] for i in order] == sorted(adjusted)


def test_holm_example() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx((0.03, 0.06, 0.06, 0.02))
    assert bonferroni([0.01, 0.2], tests=8) == pytest.approx((0.08, 1.0))
    assert holm([]) == ()


def test_bootstrap_covers_and_repeats() -> None:
    rng = random.Random(11)
    values = [rng.gauss(0.3, 0.2) for _ in range(120)]
    low, high = bootstrap_ci(values, seed=4)
    assert (low, high) == bootstrap_ci(values, seed=4)
    assert low < statistics.fmean(values) < high
    assert high - low == pytest.approx(2 * 1.96 * mean_se(values).se, rel=0.15)
    wide = bootstrap_ci(values, level=0.99, seed=4)
    assert wide[0] <= low and wide[1] >= high
    assert bootstrap_ci([0.5]) == (0.5, 0.5)


@pytest.mark.parametrize(("values", "level"), [([], 0.95), ([1.0], 1.0), ([1.0], 0.0)])
def test_bootstrap_refuses(values: list[float], level: float) -> None:
    with pytest.raises(ValueError, match="interval"):
        bootstrap_ci(values, level=level)
