"""What a training run would need, before it spends anything: counts that are exact, and estimates that say so.

Imports no torch and opens no weights. Memory is for replies and prompts at their longest; hours are for the lengths and
rates of `ASSUMED`, which nobody has measured for this product: after one update a run's `metrics.jsonl` says better.
"""

from dataclasses import dataclass

from hl.bench.plan import GUESSED_TOKENS
from hl.config import load_config
from training.families import tasks_of
from training.pool import seed_blocks
from training.schedule import phase_ends
from training.settings import Settings
from training.shapes import Shape, shape_of

PROMPT_TOKENS, REPLY_TOKENS = 6000, 1000
"""Expected length of a prompt with its report, and of a reply (guessed)."""
TRAINED_TOKENS_S = 6230 * 4.02e9
"""Tokens a second times weights that one H100 trains a LoRA adapter with: 6,230 a second on Qwen3-4B at 16,384 tokens
(prime-rl's published benchmarks)."""
SERVED_TOKENS_S = 11_500 * 9e9
"""Likewise that one H100 serves, prompts included: 11,500 a second of Qwen3.5-9B with vLLM (GPUStack's benchmarks)."""
LORA_SPEED = 0.66
"""Of a server while it applies an adapter (vllm-project/vllm#11267)."""
MEMORY_BYTES_S = 3.35e12 / 2
"""What sampling in process reads of an H100's memory: half of its data sheet (guessed); every weight once a token."""
ACTIVATION_BYTES = 34 * 2
"""Bytes of activations a token, layer and hidden unit keeps for the backward pass (Korthikanti et al. 2022)."""
LOGIT_BYTES = 8
"""Bytes of a logit of a reply's token: the number in float32, and its gradient."""
ASSUMED = (
    f"{PROMPT_TOKENS:,} tokens a prompt and {REPLY_TOKENS:,} a reply (guessed)",
    f"one call of {GUESSED_TOKENS} tokens a harness run (guessed)",
    "an H100 trains 6,230 tokens/s of a 4B model (prime-rl), and other sizes in proportion",
    "an H100 serves 11,500 tokens/s of a 9B model (GPUStack), and other sizes in proportion",
    "a server with an adapter has two thirds of its speed (vLLM #11267)",
)
"""What hours rest on."""


@dataclass(frozen=True, slots=True)
class Hours:
    """Estimates, on one H100 for the process and one for each replica."""

    sampling: float
    """Replies of the policy, chains included."""
    solver: float
    """Harness runs, where the solver is the base on the same servers; while replies are sampled, or after that."""
    updates: float

    @property
    def total(self) -> float:
        """One after the other."""
        return self.sampling + self.solver + self.updates


@dataclass(frozen=True, slots=True)
class Estimate:
    """What a run would need. Only what is not named an estimate is exact."""

    updates: int
    rows: int
    """Replies sampled (GRPO), or rows read over all epochs (SFT)."""
    attempts: int
    """Harness runs at most: duplicates, replies that do not build, and parents met twice cost nothing."""
    solver_tokens: int
    """Estimate: one call of a guessed length an attempt."""
    model_tokens: int
    """Estimate: prompts and replies that the trained model reads, at their expected lengths."""
    memory_gb: float | None
    """Estimate for one process, upper bound; None for a base of unknown size."""
    hours: Hours | None
    """Likewise."""


def estimate_grpo(settings: Settings) -> Estimate:
    """Of `hl train grpo` in one process.

    Raises:
        UsageError: Settings that do not fit together.
    """
    g, t = settings.grpo, settings.tasks
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
    prompt, reply = expected_lengths(settings)
    return Estimate(
        updates=g.contexts // g.contexts_per_update,
        rows=replies,
        attempts=attempts,
        solver_tokens=attempts * GUESSED_TOKENS,
        model_tokens=(replies + rolled) * (prompt + reply),
        memory_gb=_memory(settings, g.micro_batch),
        hours=_grpo_hours(settings, replies, rolled, attempts * GUESSED_TOKENS),
    )


def estimate_sft(settings: Settings, rows: int) -> Estimate:
    """Of `hl train sft`.

    Args:
        settings: Of the run.
        rows: How many are learnt from.
    """
    s, shape = settings.sft, shape_of(settings.model.base)
    read = round(rows * (1 - s.validation) * s.epochs)
    tokens = read * sum(expected_lengths(settings))
    seconds = None if shape is None else tokens * shape.weights / TRAINED_TOKENS_S
    return Estimate(
        updates=-(-read // s.batch),
        rows=read,
        attempts=0,
        solver_tokens=0,
        model_tokens=tokens,
        memory_gb=_memory(settings, s.micro_batch),
        hours=None if seconds is None else Hours(0.0, 0.0, seconds / 3600),
    )


def expected_lengths(settings: Settings) -> tuple[int, int]:
    """Tokens of a prompt and of a reply, no more than there is room for."""
    m = settings.model
    reply = min(REPLY_TOKENS, m.reply_tokens)
    return min(PROMPT_TOKENS, max(1, m.context_tokens - reply)), reply


def _grpo_hours(settings: Settings, replies: int, rolled: int, solver_tokens: int) -> Hours | None:
    g, shape = settings.grpo, shape_of(settings.model.base)
    if shape is None:
        return None
    prompt, reply = expected_lengths(settings)
    replicas = max(1, len(g.server))
    serving = SERVED_TOKENS_S / shape.weights * replicas
    if g.server:
        sampling = (replies + rolled) * (prompt + reply) / (serving * LORA_SPEED)
    else:
        # A token of all replies of a batch costs one reading of the weights.
        steps = (replies + rolled) * reply / g.micro_batch
        sampling = steps * 2 * shape.weights / MEMORY_BYTES_S
    # A forward and a backward pass are three forward passes; a KL term and a server's correction are one more each.
    passes = 1 + (1 if g.beta or g.log_kl else 0) / 3 + (1 if g.server else 0) / 3
    updates = replies * (prompt + reply) * passes * shape.weights / TRAINED_TOKENS_S
    return Hours(sampling / 3600, solver_tokens / serving / 3600, updates / 3600)


def _memory(settings: Settings, micro_batch: int) -> float | None:
    shape = shape_of(settings.model.base)
    if shape is None:
        return None
    bytes_each = {"auto": 2, "bfloat16": 2, "float32": 4}[settings.model.dtype]
    # Checkpointed: the inputs of all blocks and the inside of one.
    tokens = micro_batch * settings.model.context_tokens
    activations = tokens * shape.width * (2 * shape.layers + ACTIVATION_BYTES)
    logits = micro_batch * settings.model.reply_tokens * shape.vocabulary * LOGIT_BYTES
    return (shape.weights * bytes_each + _adapter(settings, shape) + activations + logits) / 1e9


def _adapter(settings: Settings, shape: Shape) -> int:
    """Bytes of weights, gradient and two moments in float32: two matrices for each of seven linear layers a block."""
    return 16 * settings.model.lora_rank * shape.layers * 7 * 3 * shape.width
