"""`metrics.jsonl` -> curves, as PNG and SVG. matplotlib is imported here only, and draws to files."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

FORMATS = ("png", "svg")
PANELS: Sequence[tuple[str, Sequence[tuple[str, str]]]] = (
    ("reward", (("reward", "reward"), ("rewards/J/mean", "J"), ("hl/parent", "parents' J"))),
    (
        "parts of the reward",
        (
            ("rewards/parse/mean", "parse"),
            ("rewards/build/mean", "build"),
            ("rewards/complete/mean", "complete"),
        ),
    ),
    (
        "groups",
        (
            ("hl/zero_variance", "no signal"),
            ("hl/duplicate", "duplicates"),
            ("hl/lost", "lost"),
            ("hl/win", "wins"),
        ),
    ),
    ("loss", (("loss", "training"), ("eval_loss", "validation"))),
    ("policy", (("entropy", "entropy"), ("kl", "KL"))),
    ("tokens a reply", (("completions/mean_length", "mean"), ("completions/max_length", "longest"))),
)
"""Title -> (key, label)."""


def draw(out: Path, lines: Sequence[Mapping[str, Any]], name: str = "curves") -> tuple[str, ...]:
    """Draw the panels for which there are figures.

    Args:
        out: The run's directory.
        lines: Of `metrics.jsonl`.
        name: Of the files.

    Returns:
        Their names; none if there is nothing to draw.
    """
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    panels = [(title, found) for title, keys in PANELS if (found := _series(lines, keys))]
    if not panels:
        return ()
    rows = -(-len(panels) // 2)
    figure = Figure(figsize=(10, 3 * rows), layout="constrained")
    FigureCanvasAgg(figure)
    for place, (title, series) in enumerate(panels, start=1):
        axes = figure.add_subplot(rows, 2, place)
        for label, steps, values in series:
            axes.plot(steps, values, marker=".", label=label)
        axes.set_title(title)
        axes.set_xlabel("update")
        axes.legend(frameon=False)
    names = [f"{name}.{kind}" for kind in FORMATS]
    # The same figures give the same files: no date, and ids of the SVG from a fixed salt.
    with matplotlib.rc_context({"svg.hashsalt": "hl"}):
        for file in names:
            metadata = {"Date": None} if file.endswith("svg") else {"Software": None}
            figure.savefig(out / file, dpi=120, metadata=metadata)
    return tuple(names)


def _series(
    lines: Sequence[Mapping[str, Any]], keys: Sequence[tuple[str, str]]
) -> list[tuple[str, list[int], list[float]]]:
    found: list[tuple[str, list[int], list[float]]] = []
    for key, label in keys:
        points = [(line["step"], line[key]) for line in lines if isinstance(line.get(key), (int, float))]
        if points:
            found.append((label, [x for x, _ in points], [float(y) for _, y in points]))
    return found
