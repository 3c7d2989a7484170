"""How one number of a table reads."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from hl.bench import estimates
from hl.bench.estimates import Cell, Estimate


def mean_text(found: Estimate | None) -> str:
    return "-" if found is None else f"{found.mean:.3f} ± {found.fixed.se:.3f}"


def short_text(found: Estimate | None) -> str:
    return "-" if found is None else f"{found.mean:.3f}"


def gain_text(found: Estimate | None) -> str:
    return "-" if found is None else f"{found.mean:+.3f} ± {found.fixed.se:.3f}"


def fixed_text(found: Estimate | None) -> str:
    return "-" if found is None else f"[{found.fixed.low:+.3f}, {found.fixed.high:+.3f}]"


def clusters_text(found: Estimate | None) -> str:
    if found is None or found.clusters is None:
        return "-"
    return f"[{found.clusters.low:+.3f}, {found.clusters.high:+.3f}] ± {found.clusters.se:.3f}"


def floor_text(found: Estimate | None) -> str:
    return "-" if found is None else f"{estimates.floor_of(found):.3f} ({found.mean:+.3f} measured)"


def share_text(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.0%}"


def number_text(value: float, digits: int) -> str:
    return "-" if math.isnan(value) else f"{value:.{digits}f}"


def failures_text(cells: Sequence[Cell]) -> str:
    outcomes = Counter(p.outcome for c in cells for p in c.proposals if p.grades is None)
    total = sum(len(c.proposals) for c in cells)
    if not total:
        return "-"
    named = ", ".join(f"{name} {n}" for name, n in sorted(outcomes.items(), key=lambda kv: (-kv[1], kv[0])))
    return f"{sum(outcomes.values()) / total:.0%}" + (f" ({named})" if named else "")


def arm_text(arm: tuple[str, str], arms: Sequence[tuple[str, str]]) -> str:
    """The proposer's name, and the solver's where there are several."""
    return arm[1] if len({solver for solver, _ in arms}) == 1 else f"{arm[1]} on {arm[0]}"


def grade_of(manifest: Mapping[str, Any]) -> str:
    return str(manifest.get("grade", "raw"))


def told(manifest: Mapping[str, Any]) -> tuple[str, ...]:
    told = manifest["settings"].get("report", "full")
    return () if told == "full" else (f"control: the proposer's report was {told}",)
