"""The noise floor is as wide as what is compared: simulated harnesses that differ in nothing."""

import random

import pytest

from hl.bench import estimates, noise
from hl.bench.estimates import Cell, Proposed, Repeat, Vector, score
from hl.bench.noise import family_noise, less

MEAN = less(noise.mean_weights, noise.seed_weights)
CHOSEN = less(noise.chosen_weights, noise.seed_weights)


def measured(rng: random.Random, chances: list[float]) -> Vector:
    return tuple(float(rng.random() < p) for p in chances)


def equal_cells(rng: random.Random, families: int, contexts: int, k: int = 8) -> list[Cell]:
    """Seed and candidates are one and the same harness under different trial seeds."""
    cells: list[Cell] = []
    for f in range(families):
        chances = [rng.random() for _ in range(24)]
        seed = measured(rng, chances)
        for c in range(contexts):
            grades = [measured(rng, chances) for _ in range(k)]
            proposals = tuple(
                Proposed("scored", rng.random(), g, harness=f"{f}-{c}-{n}") for n, g in enumerate(grades)
            )
            best = max(proposals, key=lambda p: p.scoring or 0.0)
            again = (
                Repeat("seed", seed, measured(rng, chances)),
                Repeat(best.harness, best.grades or (), measured(rng, chances)),
            )
            cells.append(Cell(f"f{f}", f"c{f}", "", c + 1, seed, proposals, again, "seed"))
    return cells


@pytest.mark.parametrize("contexts", [1, 4])
@pytest.mark.parametrize(("column", "weights"), [(estimates.failures_zero, MEAN), (estimates.chosen, CHOSEN)])
def test_noise_alone_passes_the_floor_once_in_twenty(column, weights, contexts) -> None:  # pyright: ignore
    rng = random.Random(7)
    passed = 0
    for _ in range(400):
        cells = equal_cells(rng, 6, contexts)
        floor = noise.floor(cells, weights, family_noise(cells))
        found = sum(score(estimates.gain(column)(c)) for c in cells) / len(cells)
        assert floor is not None
        passed += abs(found) > floor
    assert passed / 400 == pytest.approx(0.05, abs=0.03)


def test_one_harness_against_another_is_noisier_than_a_mean_of_eight() -> None:
    cells = equal_cells(random.Random(1), 6, 1)
    known = family_noise(cells)
    one, eight = noise.floor(cells, CHOSEN, known), noise.floor(cells, MEAN, known)
    assert one is not None and eight is not None
    # Variances 1 + 1 against 1 + 1/8.
    assert one / eight == pytest.approx((2 / (1 + 1 / 8)) ** 0.5, rel=0.1)
    assert noise.single_floor([f"f{n}" for n in range(6)], known) == pytest.approx(one)


def test_what_both_measured_cancels_and_a_failure_has_no_noise() -> None:
    seed, other = (0.0, 1.0), (1.0, 1.0)
    again = (Repeat("seed", seed, (1.0, 1.0)),)
    alone = Cell("f", "c", "", 1, seed, (Proposed("not_found", None, None),) * 8, again, "seed")
    # Half of the squared difference, over two questions: 0.5 / 4.
    known = family_noise([alone])
    assert known["f"].seed == known["f"].candidate == pytest.approx(0.125)
    assert noise.floor([alone], MEAN, known) == pytest.approx(noise.Z * 0.125**0.5)
    assert noise.floor([alone], CHOSEN, known) == 0.0
    same = Proposed("scored", 0.0, other, harness="h")
    cell = Cell("f", "c", "", 1, seed, (same,), again, "seed")
    assert noise.floor([cell], less(noise.mean_weights, noise.chosen_weights), known) == 0.0
    assert noise.floor([Cell("g", "c", "", 1, seed, (same,))], MEAN, known) is None
