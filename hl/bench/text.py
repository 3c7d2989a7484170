"""How one number of a table reads, and what it is for a machine."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from hl.bench.estimates import FEW_CLUSTERS, Cell, Estimate, Interval
from hl.bench.table import Entry

NONE = Entry("-", None)
GRADES = {"raw": "F1", "strict": "EM"}
"""What the two grades are called where questions are graded by words."""


def mean_text(found: Estimate | None) -> Entry:
    """`0.402 ± 0.031`."""
    return NONE if found is None else Entry(f"{found.mean:.3f} ± {found.fixed.se:.3f}", _numbers(found))


def short_text(found: Estimate | None) -> Entry:
    """`0.402`."""
    return NONE if found is None else Entry(f"{found.mean:.3f}", _numbers(found))


def gain_text(found: Estimate | None) -> Entry:
    """`+0.102 ± 0.031`."""
    return NONE if found is None else Entry(f"{found.mean:+.3f} ± {found.fixed.se:.3f}", _numbers(found))


def fixed_text(found: Estimate | None) -> Entry:
    """`[+0.041, +0.163]`."""
    return NONE if found is None else Entry(_between(found.fixed), _interval(found.fixed))


def clusters_text(found: Estimate | None, *, warn: bool = True) -> Entry:
    """`[+0.041, +0.163] ± 0.031`; with `warn` it says whether there are too few clusters for it to mean something."""
    if found is None:
        return NONE
    if found.clusters is None:
        return Entry("- (1 cluster)", None)
    few = found.groups < FEW_CLUSTERS
    words = f" ({found.groups} clusters: too few for an interval)" if few and warn else ""
    value = {**_interval(found.clusters), "clusters": found.groups, "too_few": few}
    return Entry(f"{_between(found.clusters)} ± {found.clusters.se:.3f}{words}", value)


def floor_text(floor: float | None) -> Entry:
    """How far noise alone goes."""
    return NONE if floor is None else Entry(f"{floor:.3f}", round(floor, 6))


def above_text(found: Estimate | None, floor: float | None) -> Entry:
    """Whether the lower end of a gain's interval, families fixed, lies above 0 and above the noise floor."""
    if found is None or floor is None:
        return NONE
    above = found.fixed.low > floor
    return Entry("yes" if above else "no", above)


def difference_texts(found: Estimate | None, floor: float | None, *, warn: bool = True) -> tuple[Entry, ...]:
    """A difference, its two intervals (`warn` as in `clusters_text`), its noise floor, and whether it lies above."""
    return (
        gain_text(found),
        fixed_text(found),
        clusters_text(found, warn=warn),
        floor_text(floor),
        above_text(found, floor),
    )


def share_text(value: float) -> Entry:
    """`25%`."""
    return NONE if math.isnan(value) else Entry(f"{value:.0%}", round(value, 6))


def number_text(value: float, digits: int) -> Entry:
    """With so many decimals."""
    return NONE if math.isnan(value) else Entry(f"{value:.{digits}f}", round(value, 6))


def span_text(values: Iterable[int]) -> str:
    """`32`, or `20 to 32`."""
    found = sorted(values)
    low, high = found[0], found[-1]
    return str(low) if low == high else f"{low} to {high}"


def failures_text(cells: Sequence[Cell], *, outcomes: bool = True) -> Entry:
    """`50% (not_found 3, syntax 1)`, or the share alone."""
    failed = Counter(p.outcome for c in cells for p in c.proposals if p.grades is None)
    total = sum(len(c.proposals) for c in cells)
    if not total:
        return NONE
    share = sum(failed.values()) / total
    named = ", ".join(f"{name} {n}" for name, n in sorted(failed.items(), key=lambda kv: (-kv[1], kv[0])))
    text = f"{share:.0%}" + (f" ({named})" if named and outcomes else "")
    return Entry(text, {"share": round(share, 6), "proposals": total, "outcomes": dict(failed)})


def arm_text(arm: tuple[str, str], arms: Sequence[tuple[str, str]]) -> str:
    """The proposer's name, and the solver's where there are several."""
    return arm[1] if len({solver for solver, _ in arms}) == 1 else f"{arm[1]} on {arm[0]}"


def grade_of(manifest: Mapping[str, Any]) -> str:
    """The grade that tables show: `raw` or `strict`; `F1` or `EM` for QA."""
    grade = str(manifest.get("grade", "raw"))
    return GRADES[grade] if manifest["benchmark"] == "qa" else grade


def told(manifest: Mapping[str, Any]) -> tuple[str, ...]:
    """A note on the report control, where the proposer was not told everything."""
    what = manifest["settings"].get("report", "full")
    return () if what == "full" else (f"control: the proposer's report was {what}",)


def _between(interval: Interval) -> str:
    return f"[{interval.low:+.3f}, {interval.high:+.3f}]"


def _interval(interval: Interval) -> dict[str, Any]:
    return {
        "low": round(interval.low, 6),
        "high": round(interval.high, 6),
        "se": round(interval.se, 6),
    }


def _numbers(found: Estimate) -> dict[str, Any]:
    fixed = {"mean": round(found.mean, 6), **_interval(found.fixed)}
    across = None if found.clusters is None else _interval(found.clusters)
    counts = {"families": found.families, "contexts": found.contexts, "clusters": found.groups}
    return {**fixed, **counts, "over_clusters": across}
