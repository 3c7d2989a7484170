"""Rows -> pictures in the paper's layout: bars with the oracle best as circles, and curves by round. PNG and SVG.

matplotlib is imported here only, and draws to files; no window is opened.
"""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hl.bench import curves, estimates
from hl.bench.estimates import estimate, parts, read_cells
from hl.bench.paper import CURVES
from hl.bench.rows import Row

FORMATS = ("png", "svg")


def draw(
    run: Path, manifest: Mapping[str, Any], rows: Sequence[Row], *, paper: bool = False
) -> tuple[str, ...]:
    """Write the pictures that the rows allow into the run's directory.

    Args:
        run: Where.
        manifest: The run's.
        rows: The run's.
        paper: Whether the paper's curves are drawn too.

    Returns:
        Their file names.
    """
    import matplotlib

    arms = [(s, p) for s in manifest["solvers"] for p in manifest["proposers"]]
    written: list[str] = []
    # A `$` in a name is a `$`, not a formula.
    with matplotlib.rc_context({"text.parse_math": False}):
        if any(read_cells(rows, *arm) for arm in arms):
            written += _save(run, "bars", _bars(rows, arms, manifest["settings"]["proposals"]))
        if any(curves.curve(rows, *arm) for arm in arms):
            written += _save(run, "curves", _curves(rows, arms, manifest["benchmark"] if paper else ""))
    return tuple(written)


def _figure(width: float) -> tuple[Any, Any]:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, 4.5), layout="constrained")
    FigureCanvasAgg(figure)
    return figure, figure.add_subplot()


def _save(run: Path, name: str, figure: Any) -> list[str]:
    import matplotlib

    names: list[str] = []
    # The same rows give the same files: no date, and ids of the SVG from a fixed salt.
    with matplotlib.rc_context({"svg.hashsalt": "hl"}):
        for kind in FORMATS:
            metadata = {"Date": None} if kind == "svg" else {"Software": None}
            figure.savefig(run / f"{name}.{kind}", dpi=150, metadata=metadata)
            names.append(f"{name}.{kind}")
    return names


def _bars(rows: Sequence[Row], arms: Sequence[tuple[str, str]], k: int) -> Any:
    """Families along the axis, their mean last; one bar an arm, the seed's as a line, the oracle's as a circle."""
    by_arm = {arm: found for arm in arms if (found := read_cells(rows, *arm))}
    families = list(dict.fromkeys(c.family for found in by_arm.values() for c in found))
    places = [*range(len(families)), len(families) + 0.5]
    width = 0.8 / len(by_arm)
    figure, axes = _figure(max(6.0, 0.5 * (len(families) + 3) * max(1.0, len(by_arm) / 2)))
    for n, (arm, found) in enumerate(by_arm.items()):
        groups = [[c for c in found if c.family == f] for f in families] + [list(found)]
        at = [p + (n - (len(by_arm) - 1) / 2) * width for p in places]
        values = [estimate(parts(g, estimates.failures_zero)) for g in groups]
        heights = [math.nan if v is None else v.mean for v in values]
        errors = [0.0 if v is None else v.fixed.se for v in values]
        label = arm[1] if len({s for s, _ in by_arm}) == 1 else f"{arm[1]} on {arm[0]}"
        axes.bar(at, heights, width * 0.9, yerr=errors, capsize=2, label=f"{label}, mean of {k}")
        best = [estimate(parts(g, estimates.oracle)) for g in groups]
        tops = [math.nan if v is None else v.mean for v in best]
        circle = {"facecolors": "none", "edgecolors": "black", "zorder": 3}
        axes.scatter(at, tops, s=28, label=f"oracle best of {k}" if n == 0 else None, **circle)
        seeds = [estimate(parts(g, estimates.seed)) for g in groups]
        starts = [math.nan if v is None else v.mean for v in seeds]
        ends = ([a - width / 2 for a in at], [a + width / 2 for a in at])
        axes.hlines(starts, *ends, colors="black", linestyles="dotted", label="seed" if n == 0 else None)
    axes.set_xticks(places, [*families, "mean"], rotation=45, ha="right")
    axes.set_ylim(0.0, 1.05)
    axes.set_ylabel("evaluation score")
    figure.legend(loc="outside upper center", ncols=3, fontsize="small")
    return figure


def _curves(rows: Sequence[Row], arms: Sequence[tuple[str, str]], benchmark: str) -> Any:
    """Head in full, best so far by scoring dashed, oracle dotted; the paper's in grey."""
    figure, axes = _figure(6.5)
    for n, arm in enumerate(arms):
        found = curves.curve(rows, *arm)
        if found is None:
            continue
        rounds, colour = range(len(found.points)), f"C{n}"
        name = arm[1] if len({s for s, _ in arms}) == 1 else f"{arm[1]} on {arm[0]}"
        axes.plot(rounds, [p.head for p in found.points], "-o", color=colour, label=f"{name}, head")
        axes.plot(rounds, [p.chosen for p in found.points], "--", color=colour, label=f"{name}, best so far")
        axes.plot(rounds, [p.oracle for p in found.points], ":", color=colour, label=f"{name}, oracle")
        alone = curves.independent(rows, *arm)
        if alone is not None:
            label = f"{name}, oracle of {alone[1]} independent"
            axes.axhline(alone[0], color=colour, linewidth=0.8, linestyle="dashdot", label=label)
    for n, drawn in enumerate(c for c in CURVES if c.benchmark == benchmark):
        style = {"color": str(0.35 + 0.3 * (n % 2)), "marker": "x"}
        axes.plot(
            range(len(drawn.values)),
            drawn.values,
            label=f"paper: {drawn.proposer} ({drawn.measure})",
            **style,
        )
    axes.set_xlabel("round")
    axes.set_ylabel("evaluation score")
    axes.set_ylim(0.0, 1.05)
    figure.legend(loc="outside upper center", ncols=3, fontsize="small")
    return figure
