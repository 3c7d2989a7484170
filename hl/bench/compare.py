"""Several runs side by side, and the paper's numbers below."""

from collections.abc import Mapping, Sequence
from typing import Any

from hl.bench import estimates
from hl.bench.curves import curve, read_chains
from hl.bench.estimates import estimate, parts, read_cells
from hl.bench.paper import CURVES, FIGURES, MODELS
from hl.bench.rows import Row
from hl.bench.table import Table
from hl.bench.tables import scopes
from hl.bench.text import failures_text, gain_text, mean_text, short_text


def models_of(manifest: Mapping[str, Any]) -> str:
    """Which models made a run, in one line."""

    def name(model: Mapping[str, Any]) -> str:
        what = model.get("model") or model.get("path") or ""
        words = f"{model.get('engine', '?')} {what}".strip()
        return words + (f" at {model['base_url']}" if model.get("base_url") else "")

    def names(models: Mapping[str, Any]) -> str:
        return "; ".join(f"{label} = {name(model)}" for label, model in models.items())

    return f"solver {names(manifest['solvers'])}; proposer {names(manifest['proposers'])}"


def compare(runs: Sequence[tuple[str, Mapping[str, Any], Sequence[Row]]]) -> Table:
    """One line a run, arm and group of families.

    Args:
        runs: (name, manifest, rows) of each.
    """
    lines: list[tuple[str, ...]] = []
    for name, manifest, rows in runs:
        arms = [(s, p) for s in manifest["solvers"] for p in manifest["proposers"]]
        for title, kept in scopes(rows):
            for arm in arms:
                cells = read_cells(kept, *arm)
                label = (name, f"{arm[1]} on {arm[0]}", title)
                if cells:
                    lines.append(
                        (
                            *label,
                            short_text(estimate(parts(cells, estimates.seed))),
                            mean_text(estimate(parts(cells, estimates.failures_zero))),
                            gain_text(estimate(parts(cells, estimates.gain(estimates.failures_zero)))),
                            short_text(estimate(parts(cells, estimates.chosen))),
                            failures_text(cells).split(" ")[0],
                        )
                    )
                chain = curve(read_chains(kept, arm))
                if chain is not None:
                    last = chain.points[-1]
                    lines.append(
                        (
                            *label,
                            short_text(chain.points[0].head),
                            f"{mean_text(last.head)} after {len(chain.points) - 1} rounds",
                            gain_text(last.gain),
                            short_text(last.chosen),
                            "-",
                        )
                    )
    notes = tuple(f"{name}: {models_of(manifest)}" for name, manifest, _ in runs)
    head = ("run", "arm", "families", "seed", "mean, failures 0", "paired gain", "chosen", "failed")
    return Table("Runs", head, tuple(lines), notes)


def paper_tables() -> list[Table]:
    """The paper's own numbers, each with its source and mark."""
    lines = [
        (
            f.benchmark,
            f.proposer,
            f.measure,
            f"{f.value:.3f}" + (f" ± {f.se:.3f}" if f.se is not None else ""),
            f.source,
            f.mark,
        )
        for f in FIGURES
    ]
    rounds = max(len(c.values) for c in CURVES)
    curve_lines = [(str(n), *(f"{c.values[n]:.3f}" for c in CURVES)) for n in range(rounds)]
    return [
        Table(
            "The paper's figures",
            ("benchmark", "proposer", "measure", "value", "source", "mark"),
            tuple(lines),
            (f"arXiv:2609.35738, not measured by hl; {MODELS}",),
        ),
        Table(
            f"The paper's curves: {CURVES[0].measure}",
            ("round", *(c.proposer for c in CURVES)),
            tuple(curve_lines),
            tuple(f"{c.proposer}: {c.source} ({c.mark})" for c in CURVES),
        ),
    ]
