"""transformers and peft in this process: a base model, on its own or with a LoRA adapter, on a CPU or one GPU.

Promises that the event loop is never blocked (one thread computes), that what waits together is computed together
(eight replies to one prompt are one batch), that a cancelled call stops at its next token, and that a prompt longer
than the context, or a conversation that the chat template refuses, is an empty reply. Weights are safetensors; no code
of a model's is run.

What repeats. Every request draws from a generator of its own, seeded by the request, so a reply does not depend on the
seeds or the order of its neighbours. Prompts are padded on the left and the padding is masked, so in exact arithmetic
it would not depend on them at all; in floating point the sums are taken in another order, which moves the last digits
of the logits, and where two tokens are that close, the reply. `deterministic` computes one request at a time and is
exact on one machine. Sampling is from the whole distribution at the temperature, with no top-k or top-p.
"""

# These packages are an extra: the types are checked where they are installed and where they are not.
# pyright: reportMissingImports=false

import asyncio
import time
import warnings
from collections.abc import Sequence
from typing import Any

from hl.engines.adapters import Adapter, adapter_shapes, read_adapter, refuse_other_base
from hl.engines.base import EngineSpec, digest_of, need_extra, short_name
from hl.engines.bases import base_digest, model_folder, named_base
from hl.engines.batches import Batches
from hl.engines.call import Call
from hl.engines.chat_template import ChatTemplate
from hl.errors import EngineError, UsageError
from hl.types import ChatReply, ChatRequest

_TAIL_TOKENS = 8
"""Tokens of look-back beyond a stop text's own length: one character may take several."""


def load_model(
    base: str, adapter: str = "", *, dtype: str = "auto", device: str = "", trainable: bool = False
) -> tuple[Any, Any]:
    """Load a base and its tokenizer, and put an adapter on it.

    Args:
        base: A folder, a known model's name, or a hub id.
        adapter: A LoRA adapter's folder; empty for the base alone.
        dtype: Of the base's weights. `auto`: as stored on a GPU, float32 on a CPU, where less is slower.
        device: `cpu` or `cuda`; empty takes the GPU where there is one.
        trainable: Whether the adapter is to be trained on; it is frozen otherwise.

    Returns:
        The model, in evaluation mode (`peft.PeftModel` with an adapter), and the tokenizer.

    Raises:
        EngineError: No such model, other weights than safetensors, no chat template, or an adapter that does not fit.
        MissingExtraError: torch, transformers or peft is not installed.
    """
    need_extra("train", "torch", "transformers", "peft")
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer
    from transformers.utils import logging

    logging.disable_progress_bar()
    logging.set_verbosity_error()
    found = read_adapter(adapter) if adapter else None
    if found is not None:
        refuse_other_base(found, base)
    folder = model_folder(base)
    device = device or ("cuda" if torch.cuda.is_available() else "cpu")
    if dtype == "auto" and device == "cpu":
        dtype = "float32"
    try:
        tokenizer = AutoTokenizer.from_pretrained(folder, trust_remote_code=False)
        model: Any = AutoModelForCausalLM.from_pretrained(
            folder, dtype=dtype, use_safetensors=True, trust_remote_code=False
        )
        model = model.to(device)
    except (OSError, ValueError, KeyError, RuntimeError, ImportError) as error:
        raise EngineError(f"the model {base} cannot be loaded: {_first_line(error)}") from error
    ChatTemplate(tokenizer, base)
    if found is not None:
        model = _with_adapter(model, found, base, trainable)
    return model.eval(), tokenizer


def _with_adapter(model: Any, adapter: Adapter, base: str, trainable: bool) -> Any:
    from peft import PeftModel, get_peft_model_state_dict

    hint = f"it was trained on {adapter.base or 'a model that it does not name'}"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter(
                "ignore", FutureWarning
            )  # peft asks transformers for what goes away in its v6
            model = PeftModel.from_pretrained(model, str(adapter.path), is_trainable=trainable)
    except (RuntimeError, ValueError, KeyError, TypeError, OSError) as error:
        raise EngineError(
            f"the adapter {adapter.path} does not fit {base}: {_first_line(error)}",
            hint=hint,
        ) from error
    wanted = {name: tuple(value.shape) for name, value in get_peft_model_state_dict(model).items()}
    if wanted != dict(adapter_shapes(adapter)):
        raise EngineError(
            f"the adapter {adapter.path} does not fit {base}: its weights are for other modules",
            hint=hint,
        )
    return model


def hub_commit(base: str) -> str:
    """The model hub's commit of what lies in transformers' cache; fetched into it first where nothing does.

    Raises:
        EngineError: The hub has no such model, or cannot be reached.
    """
    from transformers.utils.hub import extract_commit_hash

    return extract_commit_hash(hub_config(base), None) or ""


def hub_config(base: str) -> str:
    """The `config.json` of a model of the hub in transformers' cache; fetched into it first where it is not.

    Raises:
        EngineError: The hub has no such model, or cannot be reached.
    """
    from transformers.utils.hub import cached_file

    try:
        return str(cached_file(base, "config.json"))
    except (OSError, ValueError) as error:
        raise EngineError(f"the model hub gives no model {base}: {_first_line(error)}") from None


def reply_log_probs(model: Any, prompt: Sequence[int], reply: Sequence[int]) -> list[float]:
    """Natural logarithms of the probabilities of a reply's tokens after a prompt, at temperature 1.

    Args:
        model: As `load_model` gives it.
        prompt: Token ids; at least one.
        reply: Token ids.
    """
    import torch

    ids = torch.tensor([[*prompt, *reply]], device=model.device)
    with torch.inference_mode():
        logits = model(input_ids=ids, use_cache=False).logits[0, len(prompt) - 1 : -1].float()
    chosen = torch.tensor(list(reply), device=logits.device)[:, None]
    return torch.log_softmax(logits, -1).gather(1, chosen)[:, 0].tolist()


class _Rows:
    """The rows of one batch while they are generated: who draws what, and who is done where.

    transformers calls `sample` for the scores of the next token and `stop` after it was appended, once a token.
    """

    def __init__(
        self, calls: Sequence[Call], room: Sequence[int], tokenizer: Any, ends: frozenset[int]
    ) -> None:
        self.calls = calls
        self.lengths = [0] * len(calls)
        """Tokens of each reply so far; final where it is done."""
        self.finish = [""] * len(calls)
        """Why each is done; empty while it is not."""
        self.limits = [min(call.request.max_tokens, most) for call, most in zip(calls, room, strict=True)]
        self._tokenizer = tokenizer
        self._ends = ends
        self._generators: dict[int, Any] = {}

    def sample(self, input_ids: Any, scores: Any) -> Any:
        """Scores whose largest is a sample (the exponential race; Gumbel's trick), or the likeliest at 0."""
        import torch

        for row, call in enumerate(self.calls):
            temperature = call.request.temperature
            if temperature <= 0 or self.finish[row]:
                continue
            generator = self._generators.get(row)
            if generator is None:
                generator = torch.Generator(device=scores.device)
                generator.manual_seed(call.request.seed % 2**63)
                self._generators[row] = generator
            race = torch.empty_like(scores[row]).exponential_(generator=generator)
            scores[row] = torch.log_softmax(scores[row] / temperature, -1) - race.log()
        return scores

    def stop(self, input_ids: Any, scores: Any, **unused: Any) -> Any:
        """Which rows are done, as a tensor of booleans."""
        import torch

        last = input_ids[:, -1].tolist()
        for row, call in enumerate(self.calls):
            if self.finish[row]:
                continue
            self.lengths[row] += 1
            if call.cancelled.is_set() or last[row] in self._ends or self._met_stop(row, input_ids):
                self.finish[row] = "stop"
            elif self.lengths[row] >= self.limits[row]:
                self.finish[row] = "length"
        return torch.tensor([bool(reason) for reason in self.finish], device=input_ids.device)

    def _met_stop(self, row: int, input_ids: Any) -> bool:
        stops = [text for text in self.calls[row].request.stop if text]
        if not stops:
            return False
        count = min(self.lengths[row], max(len(text.encode()) for text in stops) + _TAIL_TOKENS)
        tail = self._tokenizer.decode(input_ids[row, -count:], skip_special_tokens=True)
        return any(text in tail for text in stops)


class HfEngine:
    """One model, loaded on the first call."""

    def __init__(self, spec: EngineSpec) -> None:
        """Find the model and look at the adapter, without loading them.

        Raises:
            UsageError: The spec names no model, has extra_body, or a number in it is out of range.
            EngineError: The model or the adapter is not there, or the adapter is for another model.
            MissingExtraError: torch, transformers or peft is not installed.
        """
        if spec.extra_body:
            raise UsageError("the hf engine takes no extra_body", hint="hl config list --origin")
        if min(spec.threads, spec.slots, spec.context_tokens) < 1:
            raise UsageError("one of threads, slots and context_tokens is not a positive number")
        self._base = named_base(spec)
        need_extra("train", "torch", "transformers", "peft")
        self._adapter = read_adapter(spec.adapter) if spec.adapter else None
        if self._adapter is not None:
            refuse_other_base(self._adapter, self._base)
        self._spec = spec
        self._batch = 1 if spec.deterministic else spec.slots
        self._batches = Batches(self._run, size=self._batch, name=self.name, end=self._free)
        self._loaded: tuple[Any, Any, ChatTemplate] | None = None
        self._ends: frozenset[int] = frozenset()

    @classmethod
    def from_spec(cls, spec: EngineSpec) -> "HfEngine":
        """Open the model that a spec names."""
        return cls(spec)

    @property
    def name(self) -> str:
        """Readable identity, with the adapter's name and digest: `hf smollm2@sft:0123456789abcdef`."""
        return f"hf {short_name(self._base)}" + (f"@{self._adapter.label}" if self._adapter else "")

    @property
    def concurrency(self) -> int:
        """Two batches: one computed, one ready."""
        return self._batch * 2 if self._batch > 1 else 1

    @property
    def digest(self) -> str:
        """Over weights, adapter, versions, kind of device and what goes with every call."""
        from importlib.metadata import version

        import torch

        spec = self._spec
        return digest_of(
            engine="hf",
            versions=[version("torch"), version("transformers")],
            cuda=torch.cuda.is_available(),
            weights=base_digest(self._base),
            adapter=self._adapter.digest if self._adapter else "",
            context_tokens=spec.context_tokens,
            chat_template_kwargs=spec.chat_template_kwargs,
            deterministic=spec.threads if spec.deterministic else False,
        )

    async def chat(self, request: ChatRequest) -> ChatReply:
        """Complete one conversation; see `Engine.chat`."""
        return await self._batches.chat(request)

    async def aclose(self) -> None:
        """Stop all calls and free the model; idempotent."""
        await asyncio.to_thread(self.close)

    def close(self) -> None:
        """`aclose` for callers without an event loop."""
        self._batches.close()

    def _free(self) -> None:
        self._loaded = None

    def _run(self, calls: list[Call]) -> None:
        try:
            self._answer(calls)
        except EngineError:
            raise
        except Exception as error:
            hint = "lower slots or context_tokens" if "out of memory" in str(error).lower() else None
            said = f"{type(error).__name__} {_first_line(error)}"
            raise EngineError(f"{self.name} failed: {said}", hint=hint) from error

    def _load(self) -> tuple[Any, Any, ChatTemplate]:
        if self._loaded is None:
            import torch
            from transformers import GenerationConfig

            torch.set_num_threads(self._spec.threads)
            model, tokenizer = load_model(self._base, str(self._adapter.path) if self._adapter else "")
            # A model's own sampling settings (top_k, repetition_penalty, ...) would mix with a request's.
            self._ends = end_tokens(model, tokenizer)
            model.generation_config = GenerationConfig()
            template = ChatTemplate(tokenizer, self._base, self._spec.chat_template_kwargs)
            self._loaded = model, tokenizer, template
        return self._loaded

    def _answer(self, calls: list[Call]) -> None:
        """Compute one batch and hand out its replies."""
        model, tokenizer, template = self._load()
        context = min(self._spec.context_tokens, getattr(model.config, "max_position_embeddings", 1 << 30))
        prompts: list[list[int]] = []
        taken: list[Call] = []
        for call in calls:
            prompt = template.render(call.request.messages)
            if prompt is None:
                call.finish(ChatReply("", "stop", 0, 0, 0.0))
                continue
            if len(prompt) >= context or not prompt:
                call.finish(ChatReply("", "length", len(prompt), 0, 0.0))
                continue
            prompts.append(prompt)
            taken.append(call)
        if not taken:
            return
        start = time.perf_counter()
        rows = _Rows(taken, [context - len(prompt) for prompt in prompts], tokenizer, self._ends)
        generated = self._generate(model, prompts, rows)
        share = (time.perf_counter() - start) / len(taken)
        for row, call in enumerate(taken):
            kept = generated[row][: rows.lengths[row]]
            text = tokenizer.decode(kept, skip_special_tokens=True)
            cuts = [at for at in (text.find(stop) for stop in call.request.stop if stop) if at >= 0]
            text = text[: min(cuts)] if cuts else text
            cost = self._spec.price(len(prompts[row]), len(kept))
            finish = rows.finish[row] or "length"
            call.finish(ChatReply(text, finish, len(prompts[row]), len(kept), share, cost=cost))

    def _generate(self, model: Any, prompts: list[list[int]], rows: _Rows) -> list[list[int]]:
        """Token ids of the replies; rows go on past their own end until all are done."""
        import torch

        width = max(map(len, prompts))
        padding = min(self._ends, default=0)
        ids = [[padding] * (width - len(prompt)) + prompt for prompt in prompts]
        mask = [[0] * (width - len(prompt)) + [1] * len(prompt) for prompt in prompts]
        with torch.inference_mode():
            out = model.generate(
                input_ids=torch.tensor(ids, device=model.device),
                attention_mask=torch.tensor(mask, device=model.device),
                do_sample=False,
                max_new_tokens=max(rows.limits),
                pad_token_id=padding,
                logits_processor=[rows.sample],
                stopping_criteria=[rows.stop],
            )
        return out[:, width:].tolist()


def end_tokens(model: Any, tokenizer: Any) -> frozenset[int]:
    """Token ids that end a reply: the model's own list, and the tokenizer's end of text."""
    listed = model.generation_config.eos_token_id
    ids = listed if isinstance(listed, list) else [listed]
    return frozenset(i for i in (*ids, tokenizer.eos_token_id) if i is not None)


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return lines[0][:300] if lines else type(error).__name__
