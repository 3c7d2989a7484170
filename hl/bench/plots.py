"""Rows -> pictures in the paper's layout: bars with the oracle best as circles, and curves by round. PNG and SVG.

One picture for each group of families that gets a mean in the tables. matplotlib is imported here only, and draws to
files; no window is opened. Names from a run are drawn as they are: no formula, no other script, no part of a file name.
"""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Any

from hl.bench import estimates
from hl.bench.arms import Arm, shared_cells
from hl.bench.curves import Curve, curve, read_chains
from hl.bench.estimates import Cell, Estimate, estimate, parts, read_cells
from hl.bench.paper import CURVES
from hl.bench.rows import INDEPENDENT, Row
from hl.bench.tables import scopes
from hl.bench.text import arm_text, grade_of

FORMATS = ("png", "svg")
NAME_CHARS = 40
"""Of a name, in a legend."""


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
        Their file names: `bars-<group>.png`, `curves-<group>.svg`.
    """
    import matplotlib

    arms = [(s, p) for s in manifest["solvers"] for p in manifest["proposers"]]
    written: list[str] = []
    # A `$` in a name is a `$`, not a formula.
    with matplotlib.rc_context({"text.parse_math": False}):
        for name, kept in scopes(rows):
            group, title = _slug(name), f"{name}; {grade_of(manifest)} grades"
            cells = shared_cells({arm: found for arm in arms if (found := read_cells(kept, *arm))})
            if any(cells.values()):
                figure = _bars(cells, arms, manifest["settings"]["proposals"], title)
                written += _save(run, f"bars-{group}", figure)
            chains = shared_cells({arm: found for arm in arms if (found := read_chains(kept, arm))})
            curves = {arm: found for arm, own in chains.items() if (found := curve(own))}
            if curves:
                alone = {arm: found for arm in curves if (found := read_cells(kept, *arm, INDEPENDENT))}
                figure = _curves(curves, alone, arms, title, manifest["benchmark"] if paper else "")
                written += _save(run, f"curves-{group}", figure)
    return tuple(written)


def folders(names: Sequence[str]) -> list[str]:
    """A folder's name for each run's pictures, of plain characters; runs of one name are numbered."""
    found: list[str] = []
    for name in names:
        plain = re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-.") or "run"
        numbered = (plain if n == 1 else f"{plain}-{n}" for n in count(1))
        found.append(next(folder for folder in numbered if folder not in found))
    return found


def _slug(title: str) -> str:
    """A group's part of the file name: `near: untrained families, varied` -> `near-varied`."""
    return re.sub(r"[^a-z0-9]+", "-", re.sub(r":[^,]*", "", title.lower())).strip("-")


def _plain(text: str) -> str:
    """What the font has, and no more of it than a legend bears."""
    return "".join(c if " " <= c <= "~" else "?" for c in text)[:NAME_CHARS]


def _figure(width: float, title: str) -> tuple[Any, Any]:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, 5.0), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    axes.set_title(title, fontsize="medium")
    axes.set_ylabel("evaluation score ± standard error")
    axes.grid(axis="y", linewidth=0.4, alpha=0.5)
    axes.set_axisbelow(True)
    return figure, axes


def _legend(figure: Any, handles: Sequence[Any]) -> None:
    legend = figure.legend(handles=handles, loc="outside lower center", ncols=3, fontsize="small")
    for text in legend.get_texts():
        text.set_parse_math(False)


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


def _values(found: Sequence[Estimate | None]) -> tuple[list[float], list[float]]:
    """Means and standard errors, not a number where there is none."""
    means = [math.nan if e is None else e.mean for e in found]
    return means, [math.nan if e is None else e.fixed.se for e in found]


def _bars(by_arm: Mapping[Arm, Sequence[Cell]], arms: Sequence[Arm], k: int, title: str) -> Any:
    """Families along the axis, their mean last; one bar an arm, the seed's as a line, the oracle's as a circle."""
    families = list(dict.fromkeys(c.family for found in by_arm.values() for c in found))
    places = [*range(len(families)), len(families) + 0.5]
    width = 0.8 / len(by_arm)
    figure, axes = _figure(max(6.0, 0.5 * (len(families) + 3) * max(1.0, len(by_arm) / 2)), title)
    handles: list[Any] = []
    for n, (arm, found) in enumerate(by_arm.items()):
        groups = [[c for c in found if c.family == f] for f in families] + [list(found)]
        at = [p + (n - (len(by_arm) - 1) / 2) * width for p in places]

        def of(column: Callable[[Cell], estimates.Vector], groups: Any = groups) -> Any:
            return _values([estimate(parts(g, column)) for g in groups])

        heights, errors = of(estimates.failures_zero)
        label = f"{_plain(arm_text(arm, arms))}, mean of {k}"
        bars = axes.bar(
            at, heights, width * 0.9, yerr=errors, ecolor="0.35", capsize=2, alpha=0.85, label=label
        )
        tops, errors = of(estimates.oracle)
        circle: dict[str, Any] = {"fmt": "o", "mfc": "none", "color": "black", "ms": 5, "elinewidth": 0.8}
        circles = axes.errorbar(at, tops, errors, label=f"oracle best of {k}", **circle)
        starts, _ = of(estimates.seed)
        ends = ([a - width / 2 for a in at], [a + width / 2 for a in at])
        line = axes.hlines(starts, *ends, colors="black", linestyles="dotted", label="seed")
        handles += [bars] if n else [line, circles, bars]
    axes.set_xticks(places, [*map(_plain, families), "mean"], rotation=45, ha="right", parse_math=False)
    axes.margins(x=0.02)
    axes.set_ylim(0.0, 1.05)
    _legend(figure, handles)
    return figure


def _curves(
    curves: Mapping[Arm, Curve],
    alone: Mapping[Arm, Sequence[Cell]],
    arms: Sequence[Arm],
    title: str,
    benchmark: str,
) -> Any:
    """A colour an arm: head in full, best so far dashed, oracle dotted, independent proposals after the rounds.

    The paper's curves are grey.
    """
    from matplotlib.lines import Line2D

    figure, axes = _figure(7.5, title)
    paper = [c for c in CURVES if c.benchmark == benchmark]
    last = max(*(len(c.points) - 1 for c in curves.values()), *(len(c.values) - 1 for c in paper), 0)
    styles: dict[str, dict[str, Any]] = {
        "head": {"fmt": "-o", "ms": 4},
        "best so far, by scoring": {"fmt": "--s", "ms": 8, "mfc": "none"},
        "best so far, oracle": {"fmt": ":"},
    }
    size = max((len(c.proposals) for cells in alone.values() for c in cells), default=0)
    apart: dict[str, dict[str, Any]] = {
        f"{size} independent, by scoring": {"fmt": "D", "ms": 5},
        f"{size} independent, oracle": {"fmt": "o", "ms": 7, "mfc": "none"},
    }
    for n, (arm, found) in enumerate(curves.items()):
        # Side by side, so that no error bar hides another.
        aside = 0.12 * (n - (len(curves) - 1) / 2)
        common: dict[str, Any] = {"color": f"C{n}", "capsize": 2, "elinewidth": 0.8}
        columns = [
            [p.head for p in found.points],
            [p.chosen for p in found.points],
            [p.oracle for p in found.points],
        ]
        for values, style in zip(columns, styles.values(), strict=True):
            means, errors = _values(values)
            axes.errorbar([r + aside for r in range(len(means))], means, errors, **style, **common)
        for column, style in zip((estimates.chosen, estimates.oracle), apart.values(), strict=True):
            if arm in alone:
                means, errors = _values([estimate(parts(alone[arm], column))])
                axes.errorbar([last + 1.2 + 2 * aside], means, errors, **style, **common)
    handles = [
        Line2D([], [], color=f"C{n}", lw=4, label=_plain(arm_text(a, arms))) for n, a in enumerate(curves)
    ]
    shown = styles | (apart if alone else {})
    handles += [axes.errorbar([], [], label=name, color="black", **style) for name, style in shown.items()]
    for n, c in enumerate(paper):
        style = {"color": str(0.35 + 0.3 * (n % 2)), "marker": "x", "linewidth": 1.0}
        handles += axes.plot(
            range(len(c.values)), c.values, label=f"paper: {c.proposer}, {c.measure}", **style
        )
    ticks = {float(r): str(r) for r in range(last + 1)} | ({last + 1.2: "independent"} if alone else {})
    axes.set_xticks([*ticks], [*ticks.values()])
    axes.set_xlabel("round")
    axes.set_ylim(0.0, min(1.05, 1.1 * axes.get_ylim()[1]))
    _legend(figure, handles)
    return figure
