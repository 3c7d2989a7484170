"""Rows of chains -> their tables; `curves` works out the numbers."""

from collections.abc import Mapping, Sequence
from typing import Any

from hl.bench import curves
from hl.bench.rows import Row
from hl.bench.table import Table
from hl.bench.text import arm_text, grade_of, told


def chain_tables(
    manifest: Mapping[str, Any], rows: Sequence[Row], arms: Sequence[tuple[str, str]]
) -> list[Table]:
    tables: list[Table] = []
    for arm in arms:
        found = curves.curve(rows, *arm)
        if found is None:
            continue
        lines = [
            (str(n), *(f"{value:.3f}" for value in (p.head, p.chosen, p.oracle, p.proposals)))
            for n, p in enumerate(found.points)
        ]
        share = "none in total" if found.first_share is None else f"{found.first_share:.0%}"
        notes = [
            f"mean over {found.families} task(s) and {found.chains} chain(s), on the evaluation set, "
            f"{grade_of(manifest)} grades; the oracle is chosen on the evaluation set itself",
            f"share of the head's total gain that round 1 took: {share}",
            f"the chains took {_cost(found.spent)}",
        ]
        alone = curves.independent(rows, *arm)
        if alone is not None:
            best, count, cost = alone
            notes.append(f"oracle best of {count} independent proposals: {best:.3f}; they took {_cost(cost)}")
        k = manifest["settings"]["proposals"]
        head = ("round", "head", "best so far, by scoring", "best so far, oracle", f"mean of {k}, failures 0")
        tables.append(Table(f"Chains, {arm_text(arm, arms)}", head, tuple(lines), (*notes, *told(manifest))))
    return tables


def _cost(spent: curves.Spent) -> str:
    text = f"{spent.calls:,} solver calls, {spent.tokens:,} tokens"
    return text + (f", {spent.proposer_tokens:,} proposer tokens" if spent.proposer_tokens else "")
