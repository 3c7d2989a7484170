"""Statistics of paired scores: pure functions, standard library only (this room is on the start-up path of
`log`).

Promises: deterministic; exact where exact is affordable, seeded Monte Carlo beyond. Grades are floats in [0,
1], but nothing here needs that. Does not decide anything: `selection.py` does.
"""

import math
import random
from collections.abc import Sequence
from functools import cache

from hl.types import Gain, Score

_UNITS = 10**9
"""Differences are compared as integers in billionths, so that ties in a sum are ties."""
_MAX_SUMS = 16_384
"""Exact null distributions with more distinct sums than this are sampled instead (14 unequal differences
fit)."""
_FLIPS = 9_999
"""Monte Carlo sign flips; with the observed one, p is a multiple of 1/10,000."""


def mean_se(values: Sequence[float]) -> Score:
    """Mean with standard error sd / sqrt(n) (sample sd); se is 0 for n < 2, both are 0 for n = 0."""
    n = len(values)
    if n == 0:
        return Score(0.0, 0.0, 0)
    mean = math.fsum(values) / n
    variance = math.fsum((v - mean) ** 2 for v in values) / (n - 1) if n > 1 else 0.0
    return Score(mean, math.sqrt(variance / n), n)


def sign_test_p(wins: int, losses: int) -> float:
    """Two-sided exact sign test: how often a fair coin is at least this uneven; 1 without wins and losses.

    Ties are left out (Dixon and Mood 1946). For p = 1/2 doubling the smaller tail equals the method of small
    p-values.
    """
    n = wins + losses
    if wins == losses:
        return 1.0
    tail = sum(math.comb(n, k) for k in range(min(wins, losses) + 1))
    return min(1.0, 2 * tail / 2**n)


def permutation_p(differences: Sequence[float]) -> float:
    """One-sided paired sign-flip test: how often random signs give a sum at least as large as the observed
    one.

    Under the null of exchangeable pairs each difference's sign is a fair coin (Fisher 1935; Pitman 1937).
    Exact while the sums stay few (always for grades of 0 and 1, where it equals the one-sided sign test);
    beyond that Monte Carlo with a fixed seed and p = (1 + hits) / (1 + flips), which keeps the test valid
    (Phipson and Smyth 2010).

    Returns:
        p in (0, 1]; 1 when no difference is other than zero.
    """
    units = [u for u in (round(d * _UNITS) for d in differences) if u]
    if not units:
        return 1.0
    observed = sum(units)
    exact = _exact_tail(units, observed)
    return exact if exact is not None else _sampled_tail(units, observed)


def _exact_tail(units: Sequence[int], observed: int) -> float | None:
    sizes = [abs(u) for u in units]
    if len(set(sizes)) == 1:
        n, wins = len(units), sum(u > 0 for u in units)
        return sum(math.comb(n, k) for k in range(wins, n + 1)) / 2**n
    ways = {0: 1}
    for size in sizes:
        after: dict[int, int] = {}
        for total, count in ways.items():
            for moved in (total + size, total - size):
                after[moved] = after.get(moved, 0) + count
        if len(after) > _MAX_SUMS:
            return None
        ways = after
    return sum(count for total, count in ways.items() if total >= observed) / 2 ** len(sizes)


def _sampled_tail(units: Sequence[int], observed: int) -> float:
    # Signs are drawn eight at a time: one table look-up adds the sum that a random byte gives its eight
    # differences.
    tables: list[list[int]] = []
    for start in range(0, len(units), 8):
        table = [0]
        for size in (abs(u) for u in units[start : start + 8]):
            table = [t - size for t in table] + [t + size for t in table]
        tables.append(table * (256 // len(table)))
    rng = random.Random(0)
    width = len(tables)
    hits = 0
    for _ in range(_FLIPS):
        total = sum(table[byte] for table, byte in zip(tables, rng.randbytes(width), strict=True))
        hits += total >= observed
    return (1 + hits) / (1 + _FLIPS)


def paired_gain(parent: Sequence[float], candidate: Sequence[float]) -> Gain:
    """Compare two harnesses question by question.

    Args:
        parent: Grades of the parent.
        candidate: Grades of the candidate on the same questions, in the same order.

    Raises:
        ValueError: The lengths differ.
    """
    if len(parent) != len(candidate):
        raise ValueError(f"{len(parent)} grades cannot be paired with {len(candidate)}")
    differences = [c - p for p, c in zip(parent, candidate, strict=True)]
    score = mean_se(differences)
    units = [round(d * _UNITS) for d in differences]
    wins, losses = sum(u > 0 for u in units), sum(u < 0 for u in units)
    return Gain(
        mean=score.mean,
        se=score.se,
        n=score.n,
        wins=wins,
        losses=losses,
        ties=score.n - wins - losses,
        p_sign=sign_test_p(wins, losses),
        p_greater=permutation_p(differences),
    )


@cache
def expected_normal_max(k: int) -> float:
    """Expected maximum of k independent standard normals: 0 for 1, 0.564 for 2, 1.424 for 8 (Tippett 1925).

    Raises:
        ValueError: k is not positive.
    """
    if k < 1:
        raise ValueError(f"no maximum of {k} values")
    # E[max] = integral over x > 0 of (1 - F(x)^k) - F(-x)^k; the trapezoid is exact to 1e-9 for this smooth
    # tail.
    step, stop = 1e-3, 9.0

    def height(x: float) -> float:
        below = 0.5 * math.erfc(x / math.sqrt(2.0))
        return -math.expm1(k * math.log1p(-below)) - below**k

    steps = int(stop / step)
    return step * (math.fsum(height(i * step) for i in range(1, steps)) + 0.5 * (height(0.0) + height(stop)))


def best_of_n_bias(se: float, k: int) -> float:
    """How far the best of k equal candidates is expected to score above its true score, with standard error
    se each."""
    return se * expected_normal_max(k)


def bonferroni(p_values: Sequence[float], *, tests: int | None = None) -> tuple[float, ...]:
    """P-values multiplied by the number of tests, at most 1 (Dunn 1961)."""
    m = len(p_values) if tests is None else tests
    return tuple(min(1.0, p * m) for p in p_values)


def holm(p_values: Sequence[float]) -> tuple[float, ...]:
    """Step-down adjusted p-values in the given order: never above Bonferroni's (Holm 1979)."""
    m = len(p_values)
    adjusted = [1.0] * m
    running = 0.0
    for rank, at in enumerate(sorted(range(m), key=lambda i: (p_values[i], i))):
        running = max(running, min(1.0, p_values[at] * (m - rank)))
        adjusted[at] = running
    return tuple(adjusted)


def bootstrap_ci(
    values: Sequence[float], *, level: float = 0.95, draws: int = 2000, seed: int = 0
) -> tuple[float, float]:
    """Percentile bootstrap interval of the mean (Efron 1979).

    Args:
        values: At least one.
        level: Coverage in (0, 1).
        draws: Resamples.
        seed: Same seed, same interval.

    Raises:
        ValueError: No values, or a level outside (0, 1).
    """
    if not values or not 0.0 < level < 1.0:
        raise ValueError(f"no {level} interval of {len(values)} values")
    rng = random.Random(seed)
    n = len(values)
    means = sorted(math.fsum(rng.choices(values, k=n)) / n for _ in range(draws))
    cut = (1.0 - level) / 2.0
    low, high = math.floor(cut * (draws - 1)), math.ceil((1.0 - cut) * (draws - 1))
    return means[low], means[high]
