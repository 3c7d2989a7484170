"""How far an adapter has moved from another: mean KL a token on held-out contexts, and whether greedy replies agree.

Replies are sampled from the second adapter at temperature 1; at each of their tokens the divergence of its whole
distribution from the first one's is exact, so that only which replies were drawn is left to chance. A context is one
value, and standard errors are over contexts. It runs no candidate.
"""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from hl.engines.adapters import read_adapter
from hl.errors import UsageError
from hl.stats import mean_se
from hl.types import Score
from training.contexts import Context
from training.gate import check_prompts
from training.models import Trainee, load_trainee, need_torch, sample, token_kl
from training.settings import Settings

REPLIES = 4
"""Sampled for each context (ours)."""
BASE = "base"
"""What the base without an adapter is called."""

Tell = Callable[[str, int, int], None]


@dataclass(frozen=True, slots=True)
class Distance:
    """From a first adapter to a second one."""

    first: str
    """Name and start of the digest of its folder, or `base`."""
    second: str
    """Of its folder."""
    kl: Score
    """KL(second || first), nats a token: the mean over all reply tokens of a context, then over contexts."""
    agreement: Score
    """Share of contexts whose greedy replies are the same to the last token."""
    replies: int
    """Sampled from the second one."""
    tokens: int
    """Of those replies."""


def measure(
    settings: Settings,
    first: Path | None,
    second: Path,
    contexts: Sequence[Context],
    tell: Tell = lambda what, done, total: None,
) -> Distance:
    """Measure how far `second` is from `first`, both on `model.base`.

    Args:
        settings: Of the run; `model.adapter` is left out.
        first: An adapter's folder; None for the base alone.
        second: An adapter's folder.
        contexts: That neither has learnt from.
        tell: Told of progress.

    Raises:
        UsageError: There is no context.
        EngineError: No such model, or an adapter that does not fit.
        HlError: A prompt leaves no room for a reply.
        MissingExtraError: torch and its company are not installed.
    """
    if not contexts:
        raise UsageError("there is no context to measure on.", hint="hl train distance --help")
    need_torch()
    names = BASE if first is None else read_adapter(first).label, read_adapter(second).label
    one, other = (
        load_trainee(replace(settings.model, adapter="" if adapter is None else str(adapter)))
        for adapter in (first, second)
    )
    check_prompts(
        contexts,
        lambda context: len(one.prompt(context)),
        reply_tokens=one.reply_tokens,
        context_tokens=settings.model.context_tokens,
    )
    kls: list[float] = []
    agreed: list[float] = []
    tokens = 0
    for context in contexts:
        prompt = one.prompt(context)
        seeds = [_seed(context, i) for i in range(REPLIES)]
        drawn = _replies(other, prompt, seeds, 1.0)
        found = [kl for ids in drawn for kl in token_kl(other.model, one.model, prompt, ids)]
        kls.append(sum(found) / len(found))
        tokens += len(found)
        likeliest = [_replies(trainee, prompt, seeds[:1], 0.0) for trainee in (one, other)]
        agreed.append(float(likeliest[0] == likeliest[1]))
        tell("contexts", len(kls), len(contexts))
    return Distance(*names, mean_se(kls), mean_se(agreed), REPLIES * len(contexts), tokens)


def _replies(
    trainee: Trainee, prompt: Sequence[int], seeds: Sequence[int], temperature: float
) -> list[tuple[int, ...]]:
    """Token ids of one reply a seed."""
    found = sample(
        trainee.model,
        trainee.tokenizer,
        [prompt] * len(seeds),
        seeds,
        max_tokens=trainee.reply_tokens,
        temperature=temperature,
    )
    return [reply.ids for reply in found]


def _seed(context: Context, index: int) -> int:
    """A function of the context and the reply's number alone: measured again, the same replies."""
    return int.from_bytes(hashlib.sha256(f"distance {context.id}/{index}".encode()).digest()[:8], "big") >> 1
