"""What a training run would need, before it spends anything: counts that are exact, and estimates that say so.

Imports no torch and opens no weights: a base's size is read from the headers of its files.
"""

import json
import struct
from dataclasses import dataclass
from pathlib import Path

from hl.bench.plan import GUESSED_TOKENS
from hl.config import load_config
from hl.engines.weights import KNOWN
from training.families import tasks_of
from training.pool import seed_blocks
from training.schedule import phase_ends
from training.settings import Settings

GPU_FLOPS = 990e12 * 0.2
"""What one H100 does of the 990 TFLOPS of its data sheet while a LoRA adapter is trained (prime-rl measured 21.7 % on
Qwen3-4B)."""
ACTIVATION_BYTES = 34 * 2
"""Bytes of activations a token, layer and hidden unit keeps for the backward pass (Korthikanti et al. 2022)."""
LOGIT_BYTES = 8
"""Bytes of a logit of a reply's token: the number in float32, and its gradient."""
KNOWN_SHAPES = {"smollm2": (134_515_008, 30, 576, 49_152)}
"""Weights, layers, width and vocabulary of models that hl fetches."""


@dataclass(frozen=True, slots=True)
class Shape:
    """A base's size."""

    weights: int
    layers: int
    width: int
    vocabulary: int


@dataclass(frozen=True, slots=True)
class Estimate:
    """What a run would need. Only what is not named an estimate is exact; all are upper bounds."""

    updates: int
    rows: int
    """Replies sampled (GRPO), or rows read over all epochs (SFT)."""
    attempts: int
    """Harness runs at most: duplicates, replies that do not build, and parents met twice cost nothing."""
    solver_tokens: int
    """Estimate: one call of a guessed length an attempt."""
    model_tokens: int
    """Estimate: prompts and replies that the trained model reads, each at its longest."""
    memory_gb: float | None
    """Estimate for one process; None where the base is not on this machine."""
    hours: float | None
    """Estimate of one H100 computing updates and replies, solver left out; likewise."""


def estimate_grpo(settings: Settings) -> Estimate:
    """Of `hl train grpo`.

    Raises:
        UsageError: Settings that do not fit together.
    """
    g, m, t = settings.grpo, settings.model, settings.tasks
    phase_ends(g)
    tasks = tasks_of(t, "rl")
    trials = load_config(None, settings.hl).solver.trials
    parents = seed_blocks(g, len(tasks)) * len(tasks) if g.mode == "single" else g.contexts
    replies = g.contexts * g.generations
    attempts = parents * (t.feedback + t.scoring * trials) + replies * t.scoring * trials
    rolled = 0
    if g.mode == "multi":
        rolled = (len(phase_ends(g)) - 1) * len(tasks) * g.chain_rounds * g.generations
        attempts += rolled * t.scoring * trials
        attempts += rolled // g.generations * (t.feedback + t.scoring * trials)
    tokens = (replies + rolled) * m.context_tokens
    # Twice to sample (a forward pass), six times to learn; beta needs another forward pass.
    passes = 2 + 6 + (2 if g.beta else 0)
    return Estimate(
        updates=g.contexts // g.contexts_per_update,
        rows=replies,
        attempts=attempts,
        solver_tokens=attempts * GUESSED_TOKENS,
        model_tokens=tokens,
        memory_gb=_memory(settings, g.micro_batch),
        hours=_hours(settings, tokens, passes),
    )


def estimate_sft(settings: Settings, rows: int) -> Estimate:
    """Of `hl train sft`."""
    s = settings.sft
    read = round(rows * (1 - s.validation) * s.epochs)
    tokens = read * settings.model.context_tokens
    return Estimate(
        updates=-(-read // s.batch),
        rows=read,
        attempts=0,
        solver_tokens=0,
        model_tokens=tokens,
        memory_gb=_memory(settings, s.micro_batch),
        hours=_hours(settings, tokens, 6),
    )


def _memory(settings: Settings, micro_batch: int) -> float | None:
    shape = shape_of(settings.model.base)
    if shape is None:
        return None
    bytes_each = {"auto": 2, "bfloat16": 2, "float32": 4}[settings.model.dtype]
    # Weights, gradient and two moments in float32, of two matrices for each of seven linear layers a block.
    adapter = 16 * settings.model.lora_rank * shape.layers * 7 * 3 * shape.width
    # Checkpointed: the inputs of all blocks and the inside of one.
    tokens = micro_batch * settings.model.context_tokens
    activations = tokens * shape.width * (2 * shape.layers + ACTIVATION_BYTES)
    logits = micro_batch * settings.model.reply_tokens * shape.vocabulary * LOGIT_BYTES
    return (shape.weights * bytes_each + adapter + activations + logits) / 1e9


def _hours(settings: Settings, tokens: int, passes: int) -> float | None:
    shape = shape_of(settings.model.base)
    return None if shape is None else passes * shape.weights * tokens / GPU_FLOPS / 3600


def shape_of(base: str) -> Shape | None:
    """A base's size; None for what is not on this machine or cannot be read."""
    if base in KNOWN and base in KNOWN_SHAPES:
        return Shape(*KNOWN_SHAPES[base])
    folder = Path(base).expanduser()
    try:
        config = json.loads((folder / "config.json").read_bytes())
        config = config.get("text_config", config)
        weights = sum(_weights(path) for path in folder.glob("*.safetensors"))
        return (
            Shape(weights, int(config["num_hidden_layers"]), int(config["hidden_size"])) if weights else None
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError, struct.error):
        return None


def _weights(path: Path) -> int:
    """Numbers in a safetensors file, from its header."""
    with path.open("rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        head = json.loads(file.read(min(length, 100 << 20)))
    total = 0
    for name, entry in head.items():
        if name != "__metadata__":
            count = 1
            for side in entry["shape"]:
                count *= side
            total += count
    return total
