"""Too few questions, shared out over the four sets. Pure.

Evaluation gets its proportion or a third of all, whichever is more, since it is what is reported; the others keep the
proportions that were asked for, and every set its minimum. What is left over goes to evaluation, then scoring, feedback
and confirmation. Sets never overlap, whatever that costs.
"""

import hashlib
from collections.abc import Mapping, Sequence

from hl.errors import HlError
from hl.types import Gold, Question, QuestionSet, QuestionSets, Role

Item = tuple[Question, Gold]

PRIORITY = (Role.EVALUATION, Role.SCORING, Role.FEEDBACK, Role.CONFIRMATION)
"""Who is served first."""
MINIMUM: Mapping[Role, int] = {Role.EVALUATION: 4, Role.SCORING: 4, Role.FEEDBACK: 2, Role.CONFIRMATION: 2}
"""Smaller sets measure nothing; a size asked for below these is itself the minimum."""


WIDER = "choose wider parameters or another task"


def share_out(
    pool: Sequence[Item], sizes: Mapping[Role, int], source: str, hint: str = WIDER
) -> dict[Role, list[Item]]:
    """Divide too few questions over the sets.

    Args:
        pool: Distinct questions, fewer than the sizes sum to; dealt in order of their ids: no order of difficulty.
        sizes: What was asked for.
        source: What has too few, for the message.
        hint: How to have more.

    Raises:
        HlError: Not even the minimal sets can be filled.
    """
    least = {role: min(MINIMUM[role], sizes[role]) for role in PRIORITY}
    if len(pool) < sum(least.values()):
        raise HlError(
            f"{source} has only {len(pool)} distinct questions; at least {sum(least.values())} are needed",
            hint=hint,
        )
    total = max(1, sum(sizes.values()))
    reported = min(sizes[Role.EVALUATION], max(len(pool) * sizes[Role.EVALUATION] // total, len(pool) // 3))
    rest, others = len(pool) - reported, max(1, total - sizes[Role.EVALUATION])
    counts = {role: max(least[role], rest * sizes[role] // others) for role in PRIORITY}
    counts[Role.EVALUATION] = max(least[Role.EVALUATION], reported)
    while sum(counts.values()) > len(
        pool
    ):  # minima took more than their proportion: the set with most to spare gives
        counts[max(PRIORITY, key=lambda role: counts[role] - least[role])] -= 1
    while sum(counts.values()) < len(pool):
        for role in PRIORITY:
            if sum(counts.values()) < len(pool):
                counts[role] += 1
    ordered = iter(sorted(pool, key=lambda item: item[0].id))
    return {role: [next(ordered) for _ in range(counts[role])] for role in PRIORITY}


def deal(
    pool: Sequence[Item], sizes: Mapping[Role, int], source: str, hint: str = WIDER
) -> tuple[dict[Role, list[Item]], str]:
    """The four sets from a pool: dealt in order of the ids' hashes, evaluation first.

    Args:
        pool: Distinct questions.
        sizes: What was asked for.
        source: Where they come from, for messages.
        hint: How to have more, should there be too few.

    Returns:
        The sets, and one sentence where they became smaller; else an empty text.

    Raises:
        HlError: Not even the minimal sets can be filled.
    """
    ordered = sorted(pool, key=lambda item: hashlib.sha256(item[0].id.encode()).digest())
    if len(ordered) < sum(sizes.values()):
        items = share_out(ordered, sizes, source, hint)
        return items, shortage(source, len(ordered), sizes, items)
    rest = iter(ordered)
    return {role: [next(rest) for _ in range(sizes[role])] for role in PRIORITY}, ""


def as_sets(items: Mapping[Role, Sequence[Item]]) -> QuestionSets:
    """The four sets of these questions."""

    def of(role: Role) -> QuestionSet:
        return QuestionSet(role, tuple(q for q, _ in items[role]), tuple(g for _, g in items[role]))

    return QuestionSets(of(Role.FEEDBACK), of(Role.SCORING), of(Role.CONFIRMATION), of(Role.EVALUATION))


def shortage(source: str, found: int, sizes: Mapping[Role, int], items: Mapping[Role, Sequence[Item]]) -> str:
    """One sentence that says how small the sets became."""
    counts = ", ".join(f"{role} {len(items[role])}" for role in PRIORITY)
    wanted = sum(sizes.values())
    return f"{source} has only {found:,} distinct questions of {wanted:,} asked for, so its sets are smaller: {counts}"
