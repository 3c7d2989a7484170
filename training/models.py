"""Weights, tokenizer and LoRA of the proposer that is trained; sampling from it, and how likely it finds a reply.

Promises: prompts are rendered by the same function as at use; a reply's tokens are the same whether it is sampled,
scored or learnt from; each reply draws from a generator of its own, so that what a reply is does not depend on which
others it is computed with, on how many processes share the work, or on whether the run was interrupted. Weights are
safetensors, and no code that comes with a model is run.
"""

import re
import shutil
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hl.engines.base import need_extra
from hl.engines.chat_template import ChatTemplate
from hl.engines.hf import end_tokens, load_model, reply_log_probs
from hl.errors import HlError, UsageError
from hl.proposer.prompt import split_context
from hl.types import Message, Reply
from training.contexts import Context
from training.prompts import chat_messages
from training.quiet import quiet
from training.settings import ModelSettings

SHIFT = 0.3
"""By how much `shaken` moves the log-probability of a token in the mean at least: ten times what is let pass between
servers and trainer (ours)."""


def need_torch() -> None:
    """Refuse to go on without the packages of training.

    Raises:
        MissingExtraError: One is not installed.
    """
    need_extra("train", "torch", "transformers", "peft", "trl", "accelerate", "datasets")


@dataclass(frozen=True, slots=True)
class Trainee:
    """A base with an adapter that is trained, and its tokenizer."""

    model: Any
    """`peft.PeftModel`."""
    tokenizer: Any
    settings: ModelSettings

    def prompt(self, context: Context) -> list[int]:
        """The token ids that the model continues, as at use.

        Raises:
            HlError: The chat template refuses the conversation.
        """
        messages = [Message(m["role"], m["content"]) for m in chat_messages(context, self.settings)]
        ids = self.template.render(messages)
        if ids is None:
            raise HlError(
                f"the chat template of {self.settings.base} refuses the prompt of {context.family}."
            )
        return ids

    @property
    def template(self) -> ChatTemplate:
        """The tokenizer's, with the run's arguments."""
        return ChatTemplate(self.tokenizer, self.settings.base, self.settings.chat_template_kwargs)

    def reply(self, text: str) -> list[int]:
        """The token ids of a reply that ends: what sampling would have given."""
        return [*self.tokenizer(text, add_special_tokens=False)["input_ids"], self.tokenizer.eos_token_id]

    @property
    def ends(self) -> tuple[int, ...]:
        """The token ids that end a reply."""
        return tuple(sorted(end_tokens(self.model, self.tokenizer)))

    @property
    def reply_tokens(self) -> int:
        """Longest reply, as at use: at most half of the context."""
        return split_context(self.settings.context_tokens, self.settings.reply_tokens)[1]

    def save(self, folder: Path) -> None:
        """Write the adapter, whole or not at all; it replaces what is there."""
        scratch = folder.with_name(f".{folder.name}.new")
        shutil.rmtree(scratch, ignore_errors=True)
        config = self.model.peft_config["default"]
        config.base_model_name_or_path = self.settings.base
        with quiet():
            # Without this argument peft asks the model hub for the base's configuration.
            self.model.save_pretrained(
                str(scratch), selected_adapters=["default"], save_embedding_layers=False
            )
        shutil.rmtree(folder, ignore_errors=True)
        scratch.rename(folder)


def load_trainee(settings: ModelSettings, *, seed: int = 0) -> Trainee:
    """The base with `settings.adapter`, to be trained on, or with a new one that changes nothing yet.

    Args:
        settings: `model` of a run.
        seed: Of a new adapter's weights.

    Raises:
        EngineError: No such model, no chat template, or an adapter that does not fit.
        UsageError: `lora_targets` matches nothing.
        MissingExtraError: torch and its company are not installed.
    """
    need_torch()
    import torch
    from peft import LoraConfig, get_peft_model

    with quiet():
        model, tokenizer = load_model(settings.base, settings.adapter, dtype=settings.dtype, trainable=True)
        if tokenizer.pad_token_id is None:
            tokenizer.pad_token = tokenizer.eos_token
        if settings.adapter:
            return Trainee(model, tokenizer, settings)
        config = LoraConfig(
            r=settings.lora_rank,
            lora_alpha=settings.lora_alpha,
            lora_dropout=0.0,
            target_modules=_targets(model, settings.lora_targets),
            task_type="CAUSAL_LM",
        )
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            return Trainee(get_peft_model(model, config), tokenizer, settings)


def _targets(model: Any, wanted: str) -> str:
    """What peft takes; never the head, which TRL and vLLM cannot adapt."""
    if wanted == "all-linear":
        return wanted
    try:
        found = [name for name, _ in model.named_modules() if re.fullmatch(wanted, name)]
    except re.error as error:
        raise UsageError(f"model.lora_targets {wanted!r} is not a regular expression: {error}.") from None
    if not found or any(name.endswith("lm_head") for name in found):
        what = "the head, which cannot be adapted" if found else "no module"
        raise UsageError(
            f"model.lora_targets {wanted!r} matches {what}.", hint="model.lora_targets=all-linear"
        )
    return wanted


def token_kl(second: Any, first: Any, prompt: Sequence[int], reply: Sequence[int]) -> list[float]:
    """KL(second || first) at each token of a reply: exact, over the whole vocabulary, in nats, at temperature 1.

    Args:
        second: A model as `load_model` gives it.
        first: Likewise, with the same vocabulary.
        prompt: Token ids; at least one.
        reply: Token ids.
    """
    import torch

    ids = torch.tensor([[*prompt, *reply]])
    with torch.inference_mode():
        here, there = (
            torch.log_softmax(
                model(input_ids=ids.to(model.device), use_cache=False)
                .logits[0, len(prompt) - 1 : -1]
                .float(),
                -1,
            )
            for model in (second, first)
        )
        return (here.exp() * (here - there.to(here.device))).sum(-1).tolist()


@contextmanager
def shaken(model: Any, tokens: Sequence[int], seed: int = 0) -> Generator[None, None, None]:
    """An adapter with random weights in the place of its own: one that says clearly other things.

    A new adapter changes nothing, and one update changes next to nothing; whoever ignores an adapter shows by this one.

    Args:
        model: `peft.PeftModel`.
        tokens: At least two, by whose log-probabilities the weights are made large enough.
        seed: Of the weights.
    """
    import torch

    def likely() -> list[float]:
        return reply_log_probs(model, tokens[:1], tokens[1:])

    parts = [p for name, p in model.named_parameters() if ".lora_B.default." in name]
    kept = [p.detach().clone() for p in parts]
    draw = torch.Generator().manual_seed(seed)
    noise = [torch.randn(p.shape, generator=draw) for p in parts]
    own = likely()
    with torch.no_grad():
        try:
            for doublings in range(12):
                for part, random in zip(parts, noise, strict=True):
                    part.copy_(random * 0.01 * 2**doublings)
                if sum(abs(a - b) for a, b in zip(likely(), own, strict=True)) >= SHIFT * len(own):
                    break
            yield
        finally:
            for part, weights in zip(parts, kept, strict=True):
                part.copy_(weights)


# --- sampling ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Sample:
    """One reply as it was sampled."""

    ids: tuple[int, ...]
    """Its tokens, the one that ended it included."""
    log_probs: tuple[float, ...]
    """Natural logarithms of their probabilities as they were found while sampling: at temperature 1 in this process,
    at the temperature of sampling on a server."""
    reply: Reply


@dataclass(frozen=True, slots=True)
class Ask:
    """One reply that is wanted."""

    prompt: tuple[int, ...]
    """Token ids."""
    seed: int
    """Its own; below 2**63."""
    max_tokens: int
    temperature: float


Draw = Callable[[Sequence[Ask]], Iterator[tuple[int, Sample]]]
"""Asks that share length and temperature -> replies as they are complete, each with its place among the asks."""


def drawing(trainee: "Trainee", model: Any, batch: int) -> Draw:
    """Sampling in this process.

    Args:
        trainee: Whose tokenizer it is.
        model: Its model, as it `generate`s.
        batch: Replies computed together.
    """

    def draw(asks: Sequence[Ask]) -> Iterator[tuple[int, Sample]]:
        for at in range(0, len(asks), batch):
            part = asks[at : at + batch]
            samples = sample(
                model,
                trainee.tokenizer,
                [a.prompt for a in part],
                [a.seed for a in part],
                max_tokens=part[0].max_tokens,
                temperature=part[0].temperature,
            )
            yield from enumerate(samples, at)

    return draw


def sample(
    model: Any,
    tokenizer: Any,
    prompts: Sequence[Sequence[int]],
    seeds: Sequence[int],
    *,
    max_tokens: int,
    temperature: float,
) -> list[Sample]:
    """One reply to each prompt, computed together.

    Args:
        model: Anything that `generate`s.
        tokenizer: Its tokenizer.
        prompts: Token ids.
        seeds: One a prompt.
        max_tokens: Longest reply.
        temperature: 0 takes the likeliest token every time.
    """
    import torch
    from transformers import GenerationConfig, LogitsProcessorList

    width = max(len(p) for p in prompts)
    pad = tokenizer.pad_token_id
    ids = torch.tensor([[pad] * (width - len(p)) + list(p) for p in prompts], device=model.device)
    mask = torch.tensor([[0] * (width - len(p)) + [1] * len(p) for p in prompts], device=model.device)
    ends = end_tokens(model, tokenizer)
    config = GenerationConfig(
        do_sample=False, max_new_tokens=max_tokens, eos_token_id=sorted(ends), pad_token_id=pad
    )
    race = _Race(seeds, temperature)
    with torch.no_grad():
        out = model.generate(
            input_ids=ids,
            attention_mask=mask,
            generation_config=config,
            logits_processor=LogitsProcessorList([race]),
        )
    found = torch.stack(race.log_probs, 1).tolist()
    rows = zip(out[:, width:].tolist(), found, prompts, strict=True)
    return [_sample(tokenizer, row, probs, ends, len(prompt)) for row, probs, prompt in rows]


def _sample(
    tokenizer: Any, row: list[int], probs: list[float], ends: frozenset[int], prompt_tokens: int
) -> Sample:
    at = next((i for i, token in enumerate(row) if token in ends), None)
    ids = tuple(row if at is None else row[: at + 1])
    return as_sample(tokenizer, ids, probs, prompt_tokens, stopped=at is not None)


def as_sample(
    tokenizer: Any, ids: Sequence[int], log_probs: Sequence[float], prompt_tokens: int, *, stopped: bool
) -> Sample:
    """Tokens of a reply -> the reply.

    Args:
        tokenizer: Of the model.
        ids: The reply's tokens.
        log_probs: Of the tokens; further ones are left out.
        prompt_tokens: How many the prompt has.
        stopped: Whether it ended by itself.
    """
    text = tokenizer.decode(list(ids), skip_special_tokens=True)
    reply = Reply(text, "stop" if stopped else "length", prompt_tokens, len(ids))
    return Sample(tuple(ids), tuple(log_probs[: len(ids)]), reply)


class _Race:
    """Scores whose largest is a sample: a race of exponential clocks, each row with clocks of its own."""

    def __init__(self, seeds: Sequence[int], temperature: float) -> None:
        self._seeds = seeds
        self._temperature = temperature
        self._generators: list[Any] = []
        self.log_probs: list[Any] = []
        """A tensor a step: of the token that each row took, at temperature 1."""

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        import torch

        scores = scores.float()
        raced = scores if self._temperature <= 0 else self._raced(scores)
        taken = raced.argmax(-1, keepdim=True)
        self.log_probs.append(torch.log_softmax(scores, -1).gather(-1, taken)[:, 0])
        return raced

    def _raced(self, scores: Any) -> Any:
        import torch

        if not self._generators:
            self._generators = [torch.Generator(device=scores.device).manual_seed(s) for s in self._seeds]
        rows: list[Any] = []
        for row, generator in zip(scores, self._generators, strict=True):
            clocks = torch.empty_like(row).exponential_(generator=generator)
            rows.append(torch.log_softmax(row / self._temperature, -1) - clocks.log())
        return torch.stack(rows)
