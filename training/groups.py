"""The judged replies of one update -> figures: what the groups were like, and whether the update can be trusted."""

import statistics
from collections import Counter
from collections.abc import Mapping, Sequence

from hl.errors import EngineError
from training.rewards import Judged

EQUAL = 1e-6
"""Rewards of a group closer than this give no signal."""


def check_lost(judged: Sequence[Judged], max_lost: float) -> None:
    """Stop a run whose rewards do not come.

    Args:
        judged: All replies of an update.
        max_lost: Share of them that may be without a reward.

    Raises:
        EngineError: More are; the message gives the commonest reason.
    """
    lost = [j.detail for j in judged if j.parts is None]
    if len(lost) > max_lost * len(judged):
        reason, _ = Counter(lost).most_common(1)[0]
        raise EngineError(
            f"{len(lost)} of {len(judged)} replies of an update have no reward: {reason or 'no reason given'}",
            hint="mend it, and the same command goes on from the last checkpoint",
        )


def figures(judged: Sequence[Judged], generations: int) -> dict[str, float]:
    """What an update's groups were like.

    Args:
        judged: All replies, group by group.
        generations: Replies a group.

    Returns:
        Shares of all replies, means over those that have a reward, sums of what the solver did; `outcome/<name>` is
        there where one occurred. TRL itself logs the reward and its parts.
    """
    scored = [j for j in judged if j.parts is not None]
    groups = [judged[i : i + generations] for i in range(0, len(judged), generations)]
    gains = [j.gain for j in judged if j.gain is not None]
    total = len(judged)
    found: dict[str, float] = {
        "lost": (total - len(scored)) / total,
        "cut": sum(j.cut for j in judged) / total,
        "duplicate": sum(_duplicates(g) for g in groups) / total,
        "zero_variance": sum(_flat(g) for g in groups) / len(groups),
        "parent": _mean([j.parent for j in judged]),
        "gain": _mean(gains),
        "win": sum(gain > 0 for gain in gains) / total,
        "strict": _mean([j.strict for j in scored]),
        "solver_calls": float(sum(j.calls for j in judged)),
        "solver_tokens": float(sum(j.tokens for j in judged)),
    }
    shares = Counter(j.outcome.value for j in judged)
    return found | {f"outcome/{name}": n / total for name, n in sorted(shares.items())}


def by_family(judged: Sequence[Judged], families: Mapping[str, str]) -> dict[str, float]:
    """Family -> mean J of its replies that have a reward.

    Args:
        judged: All replies.
        families: Context id -> family.
    """
    values: dict[str, list[float]] = {}
    for j in judged:
        if j.parts is not None:
            values.setdefault(families[j.context], []).append(j.parts.J)
    return {family: _mean(js) for family, js in sorted(values.items())}


def _flat(group: Sequence[Judged]) -> bool:
    """Whether a group gives no signal: all rewards there are equal, or fewer than two are there."""
    rewards = [j.reward for j in group if j.reward is not None]
    return not rewards or max(rewards) - min(rewards) < EQUAL


def _duplicates(group: Sequence[Judged]) -> int:
    candidates = [j.candidate for j in group if j.candidate]
    return len(candidates) - len(set(candidates))


def _mean(values: Sequence[float]) -> float:
    return statistics.fmean(values) if values else 0.0
