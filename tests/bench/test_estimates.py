"""The columns of the tables, worked out by hand, and the bootstraps where their answer is known."""

import math
import random

import pytest

from hl.bench import estimates
from hl.bench.estimates import Cell, Part, Proposed, estimate, parts, read_cells, score
from tests.bench.kit import again, failed, sample, scored, seed

ROWS = [
    seed([0, 0, 1, 0]),
    # On scoring the second is best, on the evaluation set the first.
    scored(0, [1, 1, 1, 0], [0, 1]),
    scored(1, [1, 0, 1, 0], [1, 1]),
    failed(2, "not_found"),
    failed(3, "duplicate", harness="h1", duplicate_of="h1"),
    failed(4, "lost"),
    again("seed", [1, 0, 1, 0]),
    again("h1", [1, 0, 0, 0]),
]


def one() -> Cell:
    (cell,) = read_cells(ROWS, "s", "p")
    return cell


def test_a_duplicate_scores_as_what_it_repeats_and_a_lost_proposal_is_none_of_the_k() -> None:
    cell = one()
    assert [p.outcome for p in cell.proposals] == ["scored", "scored", "not_found", "duplicate"]
    assert cell.proposals[3].grades == cell.proposals[1].grades == (1, 0, 1, 0)


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (estimates.seed, 1 / 4),
        # (3/4 + 2/4 + 0 + 2/4) / 4
        (estimates.failures_zero, 7 / 16),
        # (3/4 + 2/4 + 1/4 + 2/4) / 4
        (estimates.failures_parent, 8 / 16),
        (estimates.valid_only, 7 / 12),
        (estimates.oracle, 3 / 4),
        (estimates.chosen, 2 / 4),
        (estimates.gain(estimates.failures_zero), 7 / 16 - 1 / 4),
        # Seed: one question of four went up; winner: one went down.
        (estimates.seed_again, 1 / 4),
        (estimates.winner_again, -1 / 4),
    ],
)
def test_columns_by_hand(column: object, expected: float) -> None:
    assert score(column(one())) == pytest.approx(expected)  # pyright: ignore[reportCallIssue]


def test_cross_fitting_takes_from_one_half_what_is_best_on_the_other() -> None:
    a, b = (1.0, 0.0, 1.0, 0.0), (0.0, 1.0, 0.0, 1.0)
    cell = Cell("f", "c", "", 1, (0.0,) * 4, (Proposed("scored", 0, a), Proposed("scored", 0, b)))
    # `a` is best on even places, `b` on odd ones; each is taken where it is worth nothing.
    assert score(estimates.oracle(cell)) == 0.5
    assert estimates.cross_fitted(cell) == (0.0, 0.0, 0.0, 0.0)


def test_cross_fitted_best_of_equal_candidates_is_not_above_their_mean() -> None:
    rng = random.Random(1)
    oracle: list[float] = []
    crossed: list[float] = []
    for _ in range(400):
        proposals = tuple(
            Proposed("scored", 0.0, tuple(float(rng.random() < 0.5) for _ in range(32))) for _ in range(8)
        )
        cell = Cell("f", "c", "", 1, (0.0,) * 32, proposals)
        oracle.append(score(estimates.oracle(cell)))
        crossed.append(score(estimates.cross_fitted(cell)))
    assert sum(crossed) / 400 == pytest.approx(0.5, abs=0.015)
    assert sum(oracle) / 400 > 0.6


def test_a_user_without_a_valid_proposal_keeps_the_seed() -> None:
    (cell,) = read_cells([seed([1, 0]), failed(0, "no_edit"), failed(1, "syntax")], "s", "p")
    for column in (estimates.oracle, estimates.chosen, estimates.cross_fitted):
        assert column(cell) == cell.seed
    assert estimates.failures_zero(cell) == (0.0, 0.0)
    assert estimate(parts([cell], estimates.valid_only)) is None


def test_lost_questions_are_left_out() -> None:
    (cell,) = read_cells([seed([None, 1, 0, 1]), scored(0, [1, None, 1, 1], [1])], "s", "p")
    assert score(cell.seed) == pytest.approx(2 / 3)
    # Only the last two questions have a grade from both.
    assert score(estimates.gain(estimates.failures_zero)(cell)) == pytest.approx(1 / 2)


def test_an_estimate_weighs_families_alike_whatever_their_contexts() -> None:
    given = [Part("a", "x", (1.0, 1.0)), Part("a", "x", (0.0, 0.0)), Part("b", "y", (1.0, 1.0))]
    found = estimate(given)
    assert found is not None
    assert found.mean == pytest.approx((0.5 + 1.0) / 2)
    assert (found.families, found.contexts) == (2, 3)


def test_the_bootstrap_over_questions_agrees_with_the_formula() -> None:
    values = tuple(float(i % 4 == 0) for i in range(64))
    found = estimate([Part("a", "x", values)], draws=20_000)
    assert found is not None and found.clusters is None
    assert found.fixed.se == pytest.approx(math.sqrt(0.25 * 0.75 / 64), rel=0.03)
    assert found.fixed.low < 0.25 < found.fixed.high


def test_the_bootstrap_over_clusters_sees_what_lies_between_them() -> None:
    given = [Part(f"f{i}", f"c{i}", (float(i % 2),) * 10) for i in range(10)]
    found = estimate(given, draws=20_000)
    assert found is not None and found.clusters is not None
    # Within a family nothing varies; between ten clusters of 0 and 1 the formula is that of a coin.
    assert found.fixed.se == pytest.approx(0.0, abs=1e-9)
    assert found.clusters.se == pytest.approx(math.sqrt(0.25 / 10), rel=0.03)
    same = [Part(f"f{i}", "one", (float(i % 2),) * 10) for i in range(10)]
    alone = estimate(same)
    assert alone is not None and alone.clusters is None


def test_contexts_of_a_family_share_their_questions_in_a_draw() -> None:
    values = tuple(float(i % 2) for i in range(40))
    single = estimate([Part("a", "x", values)], draws=20_000)
    double = estimate([Part("a", "x", values), Part("a", "x", values)], draws=20_000)
    assert single is not None and double is not None
    # The same questions asked twice are not twice as many questions.
    assert double.fixed.se == pytest.approx(single.fixed.se, rel=0.05)


def test_the_chosen_is_who_selection_ranks_first() -> None:
    # By mean h0 leads, 1 against 2/3; but on the questions that were graded for both it and the seed, h1 gained more.
    rows = [
        seed([0, 0], scoring=sample([1, 1, 0], block="s")),
        scored(0, [1, 0], [1, None, None]),
        scored(1, [0, 1], [1, 0, 1]),
        scored(2, [1, 1], [1, 1, 1]),
        failed(3, "duplicate", harness="h2", duplicate_of="h2"),
    ]
    (cell,) = read_cells(rows[:3], "s", "p")
    assert [p.scoring for p in cell.proposals] == [0.0, 0.0]
    assert estimates.chosen(cell) == (1.0, 0.0)  # a tie goes to the earlier one
    (cell,) = read_cells(rows, "s", "p")
    best = estimates.choice(cell)
    assert best is not None and best.harness == "h2" and best.scoring == pytest.approx(1 / 3)


def test_a_lost_scoring_question_favours_nobody() -> None:
    rows = [
        seed([0, 0], scoring=sample([0, 1], block="s")),
        scored(0, [1, 0], [None, 1]),  # mean 1, gain 0
        scored(1, [0, 1], [1, 0.5]),  # mean 0.75, gain 0.25
    ]
    (cell,) = read_cells(rows, "s", "p")
    assert estimates.chosen(cell) == (0.0, 1.0)


def test_a_cluster_that_is_drawn_twice_is_drawn_anew_inside() -> None:
    rng = random.Random(3)
    ratios: list[float] = []
    for _ in range(20):
        given = [
            Part(f"f{c}", f"c{c}", tuple(float(rng.random() < 0.5) for _ in range(32))) for c in range(10)
        ]
        found = estimate(given)
        assert found is not None and found.clusters is not None
        ratios.append(found.clusters.se**2 / (0.25 / 32 / 10))
    # Between clusters lies noise alone, which is counted there and inside: 2 times, and 3 times with equal inner draws.
    assert sum(ratios) / len(ratios) == pytest.approx(1.9, abs=0.25)


def test_intervals_over_clusters_cover_what_they_promise() -> None:
    rng = random.Random(4)
    covered = 0
    for _ in range(200):
        given: list[Part] = []
        for c in range(12):
            level = min(1.0, max(0.0, rng.gauss(0.5, 0.15)))
            given.append(Part(f"f{c}", f"c{c}", tuple(float(rng.random() < level) for _ in range(64))))
        found = estimate(given, draws=500)
        assert found is not None and found.clusters is not None
        covered += found.clusters.low <= 0.5 <= found.clusters.high
    assert 0.9 <= covered / 200 <= 0.98
