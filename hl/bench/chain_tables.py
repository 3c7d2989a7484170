"""Rows of chains -> their tables: curves by round, proposers against each other, and what it all took."""

from collections.abc import Mapping, Sequence
from typing import Any

from hl.bench import estimates
from hl.bench.costs import Spent, spent
from hl.bench.curves import Arm, Chain, Curve, curve, difference, last_chosen, last_head, read_chains
from hl.bench.estimates import estimate, parts, read_cells
from hl.bench.rows import CHAIN, INDEPENDENT, Row
from hl.bench.table import Table
from hl.bench.text import (
    arm_text,
    clusters_text,
    fixed_text,
    floor_text,
    gain_text,
    grade_of,
    mean_text,
    told,
)

FIXED, CLUSTERS = "95 %, families fixed", "95 %, over clusters"


def chain_tables(manifest: Mapping[str, Any], rows: Sequence[Row], arms: Sequence[Arm]) -> list[Table]:
    """The tables of one group of families; none where no chain is finished."""
    kept, left_out = in_all_arms(rows, arms, CHAIN)
    by_arm = {arm: found for arm in arms if (found := read_chains(kept, arm))}
    if not by_arm:
        return []
    return [
        _curves(manifest, rows, by_arm, arms, left_out),
        *_comparison(by_arm, arms),
        _costs(rows, kept, by_arm, arms),
    ]


def in_all_arms(rows: Sequence[Row], arms: Sequence[Arm], protocol: str) -> tuple[list[Row], int]:
    """The rows of the cells that every arm has finished, and how many finished cells that leaves out."""
    mine = [r for r in rows if r.protocol == protocol]
    blocks = [{(r.task, r.block) for r in mine if (r.solver, r.proposer) == arm} for arm in arms]
    shared = set.intersection(*blocks) if blocks and all(blocks) else set.union(set(), *blocks)
    kept = [r for r in mine if (r.task, r.block) in shared]
    return kept, len({r.cell for r in mine}) - len({r.cell for r in kept})


def _curves(
    manifest: Mapping[str, Any],
    rows: Sequence[Row],
    by_arm: Mapping[Arm, tuple[Chain, ...]],
    arms: Sequence[Arm],
    left_out: int,
) -> Table:
    k = manifest["settings"]["proposals"]
    lines: list[tuple[str, ...]] = []
    notes: list[str] = []
    for arm, chains in by_arm.items():
        found = curve(chains)
        assert found is not None  # there are chains
        name = arm_text(arm, arms)
        for n, p in enumerate(found.points):
            gain = p.gain if n else None
            lines.append(
                (
                    name,
                    str(n),
                    mean_text(p.head),
                    gain_text(gain),
                    fixed_text(gain),
                    clusters_text(gain),
                    mean_text(p.chosen),
                    mean_text(p.oracle),
                    mean_text(p.proposals),
                )
            )
        alone = read_cells(rows, *arm, INDEPENDENT)
        if alone:
            columns = (estimates.chosen, estimates.oracle, estimates.failures_zero)
            count = max(len(c.proposals) for c in alone)
            best = (mean_text(estimate(parts(alone, column))) for column in columns)
            lines.append((name, f"{count} independent", "-", "-", "-", "-", *best))
        notes.append(_told_of(name, chains, found))
    head = (
        "proposer",
        "round",
        "head",
        "gain on the seed",
        FIXED,
        CLUSTERS,
        "best so far, by scoring",
        "best so far, oracle",
        f"mean of {k}, failures 0",
    )
    first = next(iter(by_arm.values()))
    families = len({c.family for c in first})
    return Table(
        "Chains",
        head,
        tuple(lines),
        (
            f"mean over {_number(families, 'task')}, {_number(len(first), 'chain')} in all, "
            f"{len(first[0].steps[0].head)} evaluation questions each, {grade_of(manifest)} grades",
            "± is the standard error with families fixed: chains and questions resampled",
            *(
                ("one chain a task: the spread between chains is not measured",)
                if len(first) == families
                else ()
            ),
            *(
                (f"{_number(left_out, 'finished chain')} left out: not every proposer has them",)
                if left_out
                else ()
            ),
            *notes,
            *told(manifest),
        ),
    )


def _told_of(name: str, chains: Sequence[Chain], found: Curve) -> str:
    share = "there was none in total" if found.first_share is None else f"{found.first_share:.0%}"
    words = f"{name}: share of the head's total gain that round 1 took: {share}"
    if found.floor is not None:
        words += f"; A/A noise floor of the gain: {floor_text(found.floor)}"
    short = {c.family: c for c in chains if c.blocks < len(c.steps) - 1}
    if short:
        few = ", ".join(f"{f} {c.blocks}" for f, c in short.items())
        words += f"; rounds met their questions again, for want of more: different scoring blocks of {few}"
    return words


def _comparison(by_arm: Mapping[Arm, tuple[Chain, ...]], arms: Sequence[Arm]) -> list[Table]:
    """Proposers against the first one of the same solver, paired by chain and question."""
    lines: list[tuple[str, ...]] = []
    several = len({solver for solver, _ in arms}) > 1
    for solver in dict.fromkeys(solver for solver, _ in by_arm):
        (first, base), *others = [(p, chains) for (s, p), chains in by_arm.items() if s == solver]
        for name, chains in others:
            label = f"{name} - {first}" + (f" on {solver}" if several else "")
            for what, column in (("head", last_head), ("best so far, by scoring", last_chosen)):
                found = difference(chains, base, column)
                lines.append((label, what, gain_text(found), fixed_text(found), clusters_text(found)))
    if not lines:
        return []
    head = ("proposers", "after the last round", "paired difference", FIXED, CLUSTERS)
    return [Table("Paired comparison of proposers on chains", head, tuple(lines))]


def _costs(
    rows: Sequence[Row], kept: Sequence[Row], by_arm: Mapping[Arm, Sequence[Chain]], arms: Sequence[Arm]
) -> Table:
    lines: list[tuple[str, ...]] = []
    for arm in by_arm:
        for what, took in (
            ("a chain", spent(kept, arm, CHAIN)),
            ("independent", spent(rows, arm, INDEPENDENT)),
        ):
            if took is not None:
                lines.append((arm_text(arm, arms), what, *_cost(took)))
    head = (
        "proposer",
        "of",
        "proposals",
        "solver calls",
        "solver tokens",
        "proposer tokens",
        "paid calls",
        "paid tokens",
        "evaluation calls",
        "evaluation tokens",
    )
    return Table(
        "What a chain took",
        head,
        tuple(lines),
        (
            "means over the chains, or over the tasks of the independent proposals",
            "solver calls and tokens, proposer tokens: feedback, scoring of parent and candidates; "
            "replies that came from the cache are counted, so these compare",
            "paid: solver and proposer together, replies from the cache not counted: less for what ran later and found "
            "more there, and for a round that was interrupted, the part after that",
            "evaluation, apart: the seed and every candidate on the evaluation set, cached replies counted",
        ),
    )


def _cost(took: Spent) -> tuple[str, ...]:
    values = (
        took.proposals,
        took.calls,
        took.tokens,
        took.proposer_tokens,
        took.paid_calls,
        took.paid_tokens,
        took.evaluation_calls,
        took.evaluation_tokens,
    )
    return tuple(f"{value:,.0f}" for value in values)


def _number(n: int, noun: str) -> str:
    return f"{n:,} {noun}" + ("" if n == 1 else "s")
