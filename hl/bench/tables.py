"""Rows -> all their tables, for the terminal and as Markdown; `estimates` and `curves` work out the numbers.

A table says what it averages over, who made it, and which grade it shows.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from hl.bench import estimates
from hl.bench.chain_tables import COSTS_TABLE, chain_tables
from hl.bench.curves import read_chains
from hl.bench.estimates import read_cells, score
from hl.bench.rows import CHAIN, PROPOSAL, Row, in_grade
from hl.bench.step_tables import baseline_tables, comparison_tables, family_tables, one_step_tables
from hl.bench.table import Table
from hl.bench.text import grade_of

VARIED = "answer_format=varied"
"""What the name of a task with format-varied questions holds."""
SEEN = ("sft", "rl")
"""Roles of families that proposers are trained on."""


def all_tables(manifest: Mapping[str, Any], rows: Sequence[Row]) -> list[Table]:
    """Everything that a run's rows give, in the manifest's grade."""
    rows = in_grade(rows, manifest["grade"])
    arms = [(s, p) for s in manifest["solvers"] for p in manifest["proposers"]]
    found: list[Table] = []
    grade = grade_of(manifest)
    groups = scopes(rows)
    for title, kept in groups:
        found += one_step_tables(manifest, title, kept, arms)
    found += family_tables(manifest, rows, arms)
    for title, kept in groups:
        means = comparison_tables(kept, arms) + chain_tables(manifest, kept, arms)
        means += baseline_tables(kept, list(manifest["solvers"]))
        found += means if len(groups) == 1 else [replace(t, title=f"{t.title}: {title}") for t in means]
    return [
        t if t.name == COSTS_TABLE else replace(t, title=f"{t.title}; {grade} grades", grade=grade)
        for t in found
    ]


def scopes(rows: Sequence[Row]) -> list[tuple[str, list[Row]]]:
    """The groups of families that get a mean, canonical and format-varied questions apart.

    Unseen families, training families, both together, and each kind that stands apart from these.
    """
    found: list[tuple[str, list[Row]]] = []
    varied = [r for r in rows if VARIED in r.task]
    canonical = [r for r in rows if VARIED not in r.task]
    for these, suffix in ((canonical, ""), (varied, ", format-varied questions")):
        roles = {r.role for r in these}
        groups = [
            ("unseen families", {"unseen"}),
            ("training families", set(SEEN)),
            ("near: untrained families of training clusters", {"near"}),
            ("excluded: the hard boundary", {"excluded"}),
            ("families of no track" if roles - {""} else "all tasks", {""}),
        ]
        if "unseen" in roles and roles & set(SEEN):
            groups.insert(2, ("training and unseen families", {"unseen", *SEEN}))
        found += [
            (title + suffix, [r for r in these if r.role in wanted])
            for title, wanted in groups
            if roles & wanted
        ]
    return found


def render_cell(rows: Sequence[Row]) -> str:
    """What a finished cell came to: `seed 0.010, mean of 8 0.402, oracle 0.969; scored 6, noop 2`."""
    arm = (rows[0].solver, rows[0].proposer)
    outcomes = Counter(r.outcome for r in rows if r.kind == PROPOSAL)
    counts = ", ".join(f"{name} {n}" for name, n in sorted(outcomes.items(), key=lambda kv: (-kv[1], kv[0])))
    if rows[0].protocol == CHAIN:
        (chain,) = read_chains(rows, arm)
        text = " ".join(f"{score(step.head.grades):.3f}" for step in chain.steps)
        return f"head by round {text}; {counts}"
    (cell,) = read_cells(rows, *arm, rows[0].protocol)
    mean, best = score(estimates.failures_zero(cell)), score(estimates.oracle(cell))
    return f"seed {score(cell.seed):.3f}, mean {mean:.3f}, oracle {best:.3f}; {counts}"
