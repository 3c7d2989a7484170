"""Weights, tokenizer and LoRA of the proposer that is trained; sampling from it, and how likely it finds a reply.

Promises: prompts are rendered by the same function as at use; a reply's tokens are the same whether it is sampled,
scored or learnt from; each reply draws from a generator of its own, so that what a reply is does not depend on which
others it is computed with, on how many processes share the work, or on whether the run was interrupted. Weights are
safetensors, and no code that comes with a model is run.
"""

import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hl.errors import EngineError, MissingExtraError, UsageError
from hl.proposer.prompt import split_context
from hl.types import Reply
from training.contexts import Context
from training.prompts import chat_messages
from training.quiet import quiet
from training.settings import ModelSettings

HINT = "pip install 'harness-learning[train]'"


def need_torch() -> None:
    """Refuse to go on without the packages of training.

    Raises:
        MissingExtraError: One is not installed.
    """
    from importlib.util import find_spec

    for name in ("torch", "transformers", "peft", "trl", "datasets"):
        if find_spec(name) is None:
            raise MissingExtraError(f"hl train needs {name}, which is not installed.", hint=HINT)


@dataclass(frozen=True, slots=True)
class Trainee:
    """A base with an adapter that is trained, and its tokenizer."""

    model: Any
    """`peft.PeftModel`."""
    tokenizer: Any
    settings: ModelSettings

    def prompt(self, context: Context) -> list[int]:
        """The token ids that the model continues, as at use."""
        return prompt_ids(
            self.tokenizer, chat_messages(context, self.settings), self.settings.chat_template_kwargs
        )

    def reply(self, text: str) -> list[int]:
        """The token ids of a reply that ends: what sampling would have given."""
        return [*self.tokenizer(text, add_special_tokens=False)["input_ids"], self.tokenizer.eos_token_id]

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
            self.model.save_pretrained(str(scratch), selected_adapters=["default"])
        shutil.rmtree(folder, ignore_errors=True)
        scratch.rename(folder)


def prompt_ids(
    tokenizer: Any, messages: Sequence[Mapping[str, str]], template: Mapping[str, Any]
) -> list[int]:
    """A conversation as the token ids that a model continues, by its own chat template."""
    rendered = tokenizer.apply_chat_template(
        list(messages), add_generation_prompt=True, return_dict=True, **template
    )
    return list(rendered["input_ids"])


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
    from peft import LoraConfig, PeftModel, get_peft_model

    model, tokenizer = load_base(settings.base, settings.dtype)
    if settings.adapter:
        try:
            with quiet():
                tuned = PeftModel.from_pretrained(
                    model, settings.adapter, is_trainable=True, use_safetensors=True
                )
        except (RuntimeError, ValueError, KeyError, TypeError, OSError) as error:
            raise EngineError(
                f"the adapter {settings.adapter} does not fit {settings.base}: {_first_line(error)}"
            ) from None
        return Trainee(tuned, tokenizer, settings)
    config = LoraConfig(
        r=settings.lora_rank,
        lora_alpha=settings.lora_alpha,
        lora_dropout=0.0,
        target_modules=_targets(model, settings.lora_targets),
        task_type="CAUSAL_LM",
    )
    with torch.random.fork_rng(), quiet():
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


def load_base(base: str, dtype: str = "auto") -> tuple[Any, Any]:
    """A base and its tokenizer, on the GPU where there is one.

    Args:
        base: A folder, a known model's name, or a hub id.
        dtype: `auto`: as stored on a GPU, float32 on a CPU, where less is slower.

    Raises:
        EngineError: No such model, other weights than safetensors, or no chat template.
    """
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer
    from transformers.utils import logging

    logging.disable_progress_bar()
    logging.set_verbosity_error()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    if dtype == "auto" and device == "cpu":
        dtype = "float32"
    try:
        tokenizer = AutoTokenizer.from_pretrained(base, trust_remote_code=False)
        model = AutoModelForCausalLM.from_pretrained(
            base, dtype=dtype, use_safetensors=True, trust_remote_code=False
        )
    except (OSError, ValueError, KeyError, RuntimeError, ImportError) as error:
        raise EngineError(f"the model {base} cannot be loaded: {_first_line(error)}") from None
    if not tokenizer.chat_template:
        raise EngineError(
            f"the tokenizer of {base} has no chat template", hint="take a model made for chat (-Instruct)"
        )
    if tokenizer.pad_token_id is None:
        tokenizer.pad_token = tokenizer.eos_token
    return model.to(device), tokenizer


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0][:300]


# --- sampling ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Sample:
    """One reply as it was sampled."""

    ids: tuple[int, ...]
    """Its tokens, the one that ended it included."""
    reply: Reply


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
    ends = _ends(model, tokenizer)
    config = GenerationConfig(
        do_sample=False, max_new_tokens=max_tokens, eos_token_id=sorted(ends), pad_token_id=pad
    )
    race = LogitsProcessorList([_Race(seeds, temperature)])
    with torch.no_grad():
        out = model.generate(
            input_ids=ids, attention_mask=mask, generation_config=config, logits_processor=race
        )
    return [
        _sample(tokenizer, row[width:].tolist(), ends, len(p)) for row, p in zip(out, prompts, strict=True)
    ]


def _sample(tokenizer: Any, row: list[int], ends: frozenset[int], prompt_tokens: int) -> Sample:
    at = next((i for i, token in enumerate(row) if token in ends), None)
    ids = tuple(row if at is None else row[: at + 1])
    text = tokenizer.decode(ids, skip_special_tokens=True)
    reply = Reply(text, "length" if at is None else "stop", prompt_tokens, len(ids))
    return Sample(ids, reply)


def _ends(model: Any, tokenizer: Any) -> frozenset[int]:
    """Every token that ends a reply."""
    declared = getattr(model, "generation_config", None)
    ids = getattr(declared, "eos_token_id", None)
    found = ids if isinstance(ids, list) else [ids]
    return frozenset([tokenizer.eos_token_id, *(i for i in found if i is not None)])


class _Race:
    """Scores whose largest is a sample: a race of exponential clocks, each row with clocks of its own."""

    def __init__(self, seeds: Sequence[int], temperature: float) -> None:
        self._seeds = seeds
        self._temperature = temperature
        self._generators: list[Any] = []

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        import torch

        if self._temperature <= 0:
            return scores
        if not self._generators:
            self._generators = [torch.Generator(device=scores.device).manual_seed(s) for s in self._seeds]
        rows = []
        for row, generator in zip(scores.float(), self._generators, strict=True):
            clocks = torch.empty_like(row).exponential_(generator=generator)
            rows.append(torch.log_softmax(row / self._temperature, -1) - clocks.log())
        return torch.stack(rows)


def log_probs(model: Any, prompt: Sequence[int], reply: Sequence[int]) -> list[float]:
    """Natural logarithms of the probabilities of a reply's tokens after a prompt, at temperature 1.

    Args:
        model: Anything with logits.
        prompt: Token ids; at least one.
        reply: Token ids.
    """
    import torch

    ids = torch.tensor([[*prompt, *reply]], device=model.device)
    with torch.no_grad():
        logits = model(input_ids=ids, use_cache=False).logits[0, len(prompt) - 1 : -1].float()
    chosen = torch.tensor(list(reply), device=logits.device)[:, None]
    return torch.log_softmax(logits, -1).gather(1, chosen)[:, 0].tolist()
