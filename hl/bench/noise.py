"""The A/A control -> how large a difference noise alone makes. Pure.

A harness is measured once on the evaluation set, and a second measurement of it would differ. A column of a table is
a weighted sum of such measurements, so its noise follows from the weights and from the variance of one measurement:
the mean of eight candidates averages their noise, one harness against another does not. A difference to the seed has
the seed's noise too; it is one measurement for all contexts of a family, which share its cached replies.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from hl.bench.estimates import Cell, Repeat, Vector, choice

Z = 1.96
"""Half the width of a normal 95 % interval, in standard errors."""

Weights = Mapping[str, float]
"""Digest of a harness -> what its measurement weighs."""


class Repeated(Protocol):
    """A context or a chain, with its A/A control."""

    @property
    def family(self) -> str: ...
    @property
    def block(self) -> int: ...
    @property
    def harness(self) -> str:
        """The seed's digest."""
        ...

    @property
    def again(self) -> tuple[Repeat, ...]: ...


_T = TypeVar("_T", bound=Repeated)


@dataclass(frozen=True, slots=True)
class Noise:
    """Variance of one measurement of a family's evaluation set, trials included."""

    seed: float
    candidate: float
    """The winners'; the seed's where no winner was measured twice."""


def family_noise(cells: Sequence[Repeated]) -> Mapping[str, Noise]:
    """Family -> its noise, of the families that have an A/A control.

    Args:
        cells: Of one solver. The seed's control is the same for all proposers of a run, and counted once.
    """
    found: dict[str, Noise] = {}
    for family in dict.fromkeys(c.family for c in cells):
        own = [c for c in cells if c.family == family]
        seeds = {c.block: r for c in own for r in c.again if r.harness == c.harness}
        if not seeds:
            continue
        first = next(iter(seeds.values())).first
        seed = _variance([first, *(r.second for r in seeds.values())])
        winners = [_variance([r.first, r.second]) for c in own for r in c.again if r.harness != c.harness]
        known = [v for v in winners if not math.isnan(v)]
        candidate = math.fsum(known) / len(known) if known else seed
        if not math.isnan(seed):
            found[family] = Noise(seed, candidate)
    return found


def _variance(measured: Sequence[Vector]) -> float:
    """Of the mean over questions of one measurement; not a number where no question was graded twice."""
    spread: list[float] = []
    for values in zip(*measured, strict=True):
        present = [v for v in values if not math.isnan(v)]
        if len(present) > 1:
            mean = math.fsum(present) / len(present)
            spread.append(math.fsum((v - mean) ** 2 for v in present) / (len(present) - 1))
    return math.fsum(spread) / len(spread) ** 2 if spread else math.nan


def floor(cells: Sequence[_T], weights: Callable[[_T], Weights], noise: Mapping[str, Noise]) -> float | None:
    """How far from 0 noise alone takes the mean over families of a weighted sum, in 95 of 100 cases.

    Returns:
        None where a family has no A/A control.
    """
    families: dict[str, list[_T]] = {}
    for cell in cells:
        families.setdefault(cell.family, []).append(cell)
    if not families or any(f not in noise for f in families):
        return None
    total = 0.0
    for family, own in families.items():
        # A harness that several contexts share was measured once for all of them.
        mean: dict[str, float] = {}
        for cell in own:
            for harness, weight in weights(cell).items():
                mean[harness] = mean.get(harness, 0.0) + weight / len(own)
        seeds = {c.harness for c in own}
        total += math.fsum(
            w * w * (noise[family].seed if h in seeds else noise[family].candidate) for h, w in mean.items()
        )
    return Z * math.sqrt(total) / len(families)


def single_floor(families: Sequence[str], noise: Mapping[str, Noise]) -> float | None:
    """The floor of one harness against the seed, once a family; None where a family has no A/A control."""
    if not families or any(f not in noise for f in families):
        return None
    return Z * math.sqrt(math.fsum(noise[f].seed + noise[f].candidate for f in families)) / len(families)


def mean_weights(cell: Cell) -> Weights:
    """Of the mean of the K proposals; one that failed is measured by nobody, and has no noise."""
    found: dict[str, float] = {}
    for p in cell.proposals:
        if p.grades is not None:
            found[p.harness] = found.get(p.harness, 0.0) + 1.0 / len(cell.proposals)
    return found


def chosen_weights(cell: Cell) -> Weights:
    """Of the chosen candidate, or of the seed where there is none."""
    best = choice(cell)
    return {cell.harness if best is None else best.harness: 1.0}


def seed_weights(cell: Cell) -> Weights:
    """Of the seed."""
    return {cell.harness: 1.0}


def less(one: Callable[[Cell], Weights], two: Callable[[Cell], Weights]) -> Callable[[Cell], Weights]:
    """Of a difference in one cell: what both measured cancels."""
    return lambda cell: differ(one(cell), two(cell))


def differ(one: Weights, two: Weights) -> Weights:
    """One minus the other."""
    return {h: one.get(h, 0.0) - two.get(h, 0.0) for h in {**one, **two}}
