"""What is checked before a run spends anything: what would make its figures worthless without an error.

Promises to name what it refuses. It loads no model; what needs one is handed to it.
"""

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from hl.engines.hf import reply_log_probs
from hl.errors import EngineError, HlError
from training.contexts import Context
from training.models import Ask, Draw

LOG_PROB_TOLERANCE = 0.03
"""Mean difference of log-probabilities between trainer and serving engine beyond which nothing is trained (ours)."""
DRIFT_TOLERANCE = 0.1
"""Likewise over all replies of an update, at their own temperature and length (ours)."""
FIXED = 4
"""Contexts on whose prompts the two are compared (ours)."""
FIXED_TOKENS = 64
"""Tokens of their replies (ours)."""


@dataclass(frozen=True, slots=True)
class Lengths:
    """Tokens of many texts."""

    least: int
    median: float
    most: int


def lengths(counts: Sequence[int]) -> Lengths:
    """Of at least one text."""
    return Lengths(min(counts), statistics.median(counts), max(counts))


def check_prompts(
    contexts: Sequence[Context], count: Callable[[Context], int], *, reply_tokens: int, context_tokens: int
) -> Lengths:
    """Refuse prompts that leave no room for a reply: nothing is ever cut silently.

    Args:
        contexts: Of the run.
        count: Tokens of a context's prompt.
        reply_tokens: Longest reply.
        context_tokens: Prompt and reply together.

    Raises:
        HlError: A prompt is too long; the message counts them.
    """
    counts = [count(context) for context in contexts]
    room = context_tokens - reply_tokens
    over = [c for c, n in zip(contexts, counts, strict=True) if n > room]
    if over:
        families = ", ".join(sorted({c.family for c in over}))
        raise HlError(
            f"{len(over)} of {len(contexts)} prompts have more than the {room:,} tokens that a reply of "
            f"{reply_tokens:,} leaves of {context_tokens:,} ({families}; the longest {max(counts):,}).",
            hint="model.report_tokens=N, model.prompt=brief, or a larger model.context_tokens",
        )
    return lengths(counts)


def check_sampling(model: Any, draw: Draw, asks: Sequence[Ask]) -> float:
    """Refuse to learn from replies of another policy than the trainer's: draws some, and finds how likely each is.

    Args:
        model: The trainer's, as it is now.
        draw: What samples replies.
        asks: At temperature 1.

    Returns:
        The mean absolute difference of the log-probabilities of their tokens.

    Raises:
        EngineError: It is beyond the tolerance.
    """
    samples = dict(draw(asks))
    learnt = [reply_log_probs(model, ask.prompt, samples[at].ids) for at, ask in enumerate(asks)]
    return check_agreement(learnt, [samples[at].log_probs for at in range(len(asks))])


def check_agreement(trainer: Sequence[Sequence[float]], engine: Sequence[Sequence[float]]) -> float:
    """Refuse to train against an engine that computes something else.

    Args:
        trainer: Log-probabilities of the tokens of some replies, as the trainer finds them.
        engine: The same, as the engine that samples replies finds them.

    Returns:
        The mean absolute difference.

    Raises:
        EngineError: It is beyond the tolerance, or the engine scored other tokens.
    """
    if [len(row) for row in trainer] != [len(row) for row in engine]:
        raise EngineError("trainer and engine do not split the same replies into the same tokens.")
    pairs = [(a, b) for x, y in zip(trainer, engine, strict=True) for a, b in zip(x, y, strict=True)]
    mean = sum(abs(a - b) for a, b in pairs) / max(1, len(pairs))
    # Not `mean > tolerance`: that would let nan through.
    if not mean <= LOG_PROB_TOLERANCE:
        raise EngineError(
            f"trainer and engine differ by {mean:.3f} in the mean log-probability of a token; at most "
            f"{LOG_PROB_TOLERANCE} is trained with.",
            hint="serve the same weights in the same precision, and the adapter that training goes on from",
        )
    return mean


def check_drift(difference: float) -> None:
    """Stop a run whose servers no longer compute what the trainer does, before the update is kept.

    Args:
        difference: Mean absolute difference of log-probabilities over the replies of an update.

    Raises:
        EngineError: It is beyond the tolerance.
    """
    if not difference <= DRIFT_TOLERANCE:
        raise EngineError(
            f"over the replies of an update trainer and servers differ by {difference:.3f} in the mean "
            f"log-probability of a token; at most {DRIFT_TOLERANCE} is trained with.",
            hint="serve with --logprobs-mode processed_logprobs, as hl model serve does",
        )
