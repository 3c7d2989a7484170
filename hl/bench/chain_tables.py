"""Rows of chains -> their tables: curves by round, proposers against each other, and what it all took."""

from collections.abc import Mapping, Sequence
from typing import Any

from hl.bench import estimates
from hl.bench.arms import Arm, left_out, shared_cells
from hl.bench.costs import Spent, spent
from hl.bench.curves import Chain, Curve, curve, difference, read_chains
from hl.bench.estimates import FEW_CLUSTERS, estimate, parts, read_cells
from hl.bench.rows import CHAIN, INDEPENDENT, Row
from hl.bench.table import Entry, Table
from hl.bench.text import (
    NONE,
    arm_text,
    difference_texts,
    mean_text,
    span_text,
    told,
)

COSTS_TABLE = "chain_costs"
"""Name of the one table that has no grade."""
INTERVALS = {"fixed": "95 %, families fixed", "over_clusters": "95 %, over clusters"}
FLOOR = {"floor": "A/A floor", "above": "above 0 and it"}
COSTS = {
    "proposals": "proposals",
    "calls": "solver calls",
    "tokens": "solver tokens",
    "proposer_tokens": "proposer tokens",
    "paid_calls": "paid calls",
    "paid_tokens": "paid tokens",
    "evaluation_calls": "evaluation calls",
    "evaluation_tokens": "evaluation tokens",
}
"""Stable name -> head of a column; of the costs they are the fields of `Spent`."""


def chain_tables(manifest: Mapping[str, Any], rows: Sequence[Row], arms: Sequence[Arm]) -> list[Table]:
    """The tables of one group of families; none where no chain is finished by every proposer that has begun."""
    everything = {arm: found for arm in arms if (found := read_chains(rows, arm))}
    by_arm = shared_cells(everything)
    if not any(by_arm.values()):
        return []
    notes = (*_averaged(by_arm), *left_out(everything, by_arm, arms, "chain"), *told(manifest))
    return [
        _by_round(manifest["settings"]["proposals"], rows, by_arm, arms, notes),
        *_comparison(by_arm, arms),
        _costs(rows, by_arm, arms),
    ]


def _by_round(
    k: int,
    rows: Sequence[Row],
    by_arm: Mapping[Arm, Sequence[Chain]],
    arms: Sequence[Arm],
    notes: Sequence[str],
) -> Table:
    """One line a proposer and round."""
    lines: list[tuple[str | Entry, ...]] = []
    of_arms: list[str] = []
    for arm, chains in by_arm.items():
        found = curve(chains)
        assert found is not None  # there are chains
        name = arm_text(arm, arms)
        for n, p in enumerate(found.points):
            gain = p.gain if n else None
            lines.append(
                (
                    name,
                    Entry(str(n), n),
                    mean_text(p.head),
                    *difference_texts(gain, p.floor if n else None, warn=False),
                    mean_text(p.chosen),
                    mean_text(p.oracle),
                    mean_text(p.proposals),
                )
            )
        alone = read_cells(rows, *arm, INDEPENDENT)
        if alone:
            columns = (estimates.chosen, estimates.oracle, estimates.failures_zero)
            size = max(len(c.proposals) for c in alone)
            best = (mean_text(estimate(parts(alone, column))) for column in columns)
            lines.append((name, Entry(f"{size} independent", "independent"), *[NONE] * 6, *best))
        of_arms.append(_told_of(name, chains, found))
    head = {
        "proposer": "proposer",
        "round": "round",
        "head": "head",
        "gain": "gain on the seed",
        **INTERVALS,
        **FLOOR,
        "chosen": "best so far, by scoring",
        "oracle": "best so far, oracle",
        "failures_zero": f"mean of {k}, failures 0",
    }
    return Table("Chains", tuple(head.values()), tuple(lines), (*notes, *of_arms), "chains", tuple(head))


def _averaged(by_arm: Mapping[Arm, Sequence[Chain]]) -> list[str]:
    first = next(iter(by_arm.values()))
    families = len({c.family for c in first})
    notes = [
        f"mean over {_number(families, 'task')} ({_number(len(first), 'chain')}), "
        f"{span_text(len(c.steps[0].proposals) for c in first)} evaluation questions each",
        "± of the best so far takes the choice as made: no draw chooses anew",
    ]
    clusters = len({c.cluster for c in first})
    if 1 < clusters < FEW_CLUSTERS:
        notes.append(f"{clusters} clusters: too few for an interval over clusters")
    if len(first) == families:
        notes.append("one chain a task: the spread between chains is unmeasured")
    return notes


def _told_of(name: str, chains: Sequence[Chain], found: Curve) -> str:
    share = "there was none in total" if found.first_share is None else f"{found.first_share:.0%}"
    words = f"{name}: share of the head's total gain that round 1 took: {share}"
    few = {c.family: c.blocks for c in chains if c.blocks < len(c.steps) - 1}
    if few:
        counts = ", ".join(f"{family} {blocks}" for family, blocks in few.items())
        words += f"; too few questions for a new scoring block every round, different ones: {counts}"
    return words


def _comparison(by_arm: Mapping[Arm, Sequence[Chain]], arms: Sequence[Arm]) -> list[Table]:
    """Proposers against the first one of the same solver, paired by chain and question."""
    lines: list[tuple[str | Entry, ...]] = []
    several = len({solver for solver, _ in arms}) > 1
    for solver in dict.fromkeys(solver for solver, _ in by_arm):
        (first, base), *others = [(p, chains) for (s, p), chains in by_arm.items() if s == solver]
        for name, chains in others:
            label = f"{name} - {first}" + (f" on {solver}" if several else "")
            for what, (found, floor) in (
                (Entry("head", "head"), difference(chains, base, lambda s: s.head)),
                (Entry("best so far, by scoring", "chosen"), difference(chains, base, lambda s: s.chosen)),
            ):
                lines.append((label, what, *difference_texts(found, floor)))
    if not lines:
        return []
    head = {"proposers": "proposers", "of": "after the last round", "difference": "paired difference"}
    head |= INTERVALS | FLOOR
    title = "Paired comparison of proposers on chains"
    return [Table(title, tuple(head.values()), tuple(lines), (), "chain_proposers", tuple(head))]


def _costs(rows: Sequence[Row], by_arm: Mapping[Arm, Sequence[Chain]], arms: Sequence[Arm]) -> Table:
    """One line a proposer for its chains, and one for its independent proposals."""
    shared = {(c.family, c.block) for chains in by_arm.values() for c in chains}
    kept = [r for r in rows if (r.family, r.block) in shared]
    lines: list[tuple[str | Entry, ...]] = []
    for arm in by_arm:
        for what, took in (
            (Entry("a chain", "chain"), spent(kept, arm, CHAIN)),
            (Entry("independent", "independent"), spent(rows, arm, INDEPENDENT)),
        ):
            if took is not None:
                lines.append((arm_text(arm, arms), what, *_cost(took)))
    head = {"proposer": "proposer", "of": "of", **COSTS}
    notes = (
        "means over the chains, and over the tasks of the independent proposals",
        "solver calls and tokens, proposer tokens: feedback, scoring of parent and candidates, proposing; replies from "
        "the cache are counted, so these compare",
        "paid: solver and proposer together, replies from the cache not counted: less for what ran later and found "
        "more there, and for a round that was interrupted, the part after that",
        "evaluation, apart: the seed and every candidate on the evaluation set, replies from the cache counted",
    )
    return Table("What a chain took", tuple(head.values()), tuple(lines), notes, COSTS_TABLE, tuple(head))


def _cost(took: Spent) -> list[Entry]:
    values: list[float] = [getattr(took, name) for name in COSTS]
    return [Entry(f"{value:,.0f}", round(value, 6)) for value in values]


def _number(n: int, noun: str) -> str:
    return f"{n:,} {noun}" + ("" if n == 1 else "s")
