"""vLLM in this process: a base model, on its own or with a LoRA adapter, for machines with a GPU.

Written for vLLM 0.30. Promises what the other engines promise: the model is loaded on the first call, a cancelled call
is aborted, and a prompt longer than the context, or a conversation that the chat template refuses, is an empty reply.
Loading blocks the event loop, as vLLM's own server does: nothing else can be answered before. Weights are safetensors;
no code of a model's is run. `extra_body` holds further sampling parameters, such as `{"top_k": 20}`.

An engine takes most of a GPU's memory. Where solver and proposer share one, or share a base, serve them together with
`hl model serve` and use the engine `openai`. Batches move logits a little; `deterministic` computes one request at a
time without a prefix cache.
"""

# These packages are an extra: the types are checked where they are installed and where they are not.
# pyright: reportMissingImports=false, reportAttributeAccessIssue=false

import asyncio
import os
import tempfile
import time
from pathlib import Path
from typing import Any

from hl.engines.adapter_names import is_mounted, mount
from hl.engines.adapters import Adapter, read_adapter, refuse_other_base
from hl.engines.base import EngineSpec, clean_text, digest_of, need_extra, short_name
from hl.engines.bases import architectures, base_digest, model_folder, named_base
from hl.engines.chat_template import ChatTemplate
from hl.errors import EngineError, UsageError
from hl.types import ChatReply, ChatRequest

RANKS = (1, 8, 16, 32, 64, 128, 256, 320, 512)
"""What `max_lora_rank` may be."""
_QUIET = {
    "VLLM_LOGGING_LEVEL": "ERROR",
    "VLLM_NO_USAGE_STATS": "1",
    "VLLM_WORKER_MULTIPROC_METHOD": "spawn",
}
"""Set where the user has not: nothing is printed or reported, and workers do not inherit threads."""


def room_for_rank(rank: int) -> int:
    """The smallest `max_lora_rank` that vLLM takes and that holds an adapter.

    Raises:
        EngineError: There is none.
    """
    for allowed in RANKS:
        if rank <= allowed:
            return allowed
    raise EngineError(f"vLLM serves LoRA adapters up to rank {RANKS[-1]}, not {rank}")


def engine_arguments(spec: EngineSpec, adapter: Adapter | None) -> dict[str, Any]:
    """What goes into vLLM's `AsyncEngineArgs` besides the model. Pure."""
    arguments: dict[str, Any] = {
        "max_model_len": spec.context_tokens,
        "max_num_seqs": 1 if spec.deterministic else spec.concurrency,
        "load_format": "safetensors",
        "trust_remote_code": False,
        "generation_config": "vllm",
        "enable_prefix_caching": not spec.deterministic,
        "disable_log_stats": True,
    }
    if adapter is not None:
        arguments |= {"enable_lora": True, "max_lora_rank": room_for_rank(adapter.rank), "max_loras": 1}
    return arguments


class VllmEngine:
    """One model, loaded on the first call."""

    def __init__(self, spec: EngineSpec) -> None:
        """Find the model and look at the adapter, without loading them.

        Raises:
            UsageError: The spec names no model, or a number in it is out of range.
            EngineError: The model or the adapter is not there, or the adapter is for another model.
            MissingExtraError: vLLM is not installed.
        """
        if min(spec.concurrency, spec.context_tokens) < 1:
            raise UsageError("one of concurrency and context_tokens is not a positive number")
        self._base = named_base(spec)
        need_extra("vllm", "vllm")
        self._adapter = read_adapter(spec.adapter) if spec.adapter else None
        if self._adapter is not None:
            refuse_other_base(self._adapter, self._base)
            room_for_rank(self._adapter.rank)
        self._spec = spec
        self._loaded: tuple[Any, ChatTemplate] | None = None
        self._slots = asyncio.Semaphore(self.concurrency)
        self._calls = 0
        self._adapter_folder: Path | None = None
        self._scratch: tempfile.TemporaryDirectory[str] | None = None
        self._closed = False

    @classmethod
    def from_spec(cls, spec: EngineSpec) -> "VllmEngine":
        """Open the model that a spec names."""
        return cls(spec)

    @property
    def name(self) -> str:
        """Readable identity, with the adapter's name and digest: `vllm Qwen3.5-4B@sft:0123456789abcdef`."""
        return f"vllm {short_name(self._base)}" + (f"@{self._adapter.label}" if self._adapter else "")

    @property
    def concurrency(self) -> int:
        """As configured; one where texts repeat."""
        return 1 if self._spec.deterministic else self._spec.concurrency

    @property
    def digest(self) -> str:
        """Over weights, adapter, version and what goes with every call."""
        from importlib.metadata import version

        spec = self._spec
        return digest_of(
            engine="vllm",
            version=version("vllm"),
            weights=base_digest(self._base),
            adapter=self._adapter.digest if self._adapter else "",
            context_tokens=spec.context_tokens,
            extra_body=spec.extra_body,
            chat_template_kwargs=spec.chat_template_kwargs,
            deterministic=spec.deterministic,
        )

    async def chat(self, request: ChatRequest) -> ChatReply:
        """Complete one conversation; see `Engine.chat`."""
        async with self._slots:
            engine, template = self._load()
            prompt = template.render(request.messages)
            if prompt is None:
                return ChatReply("", "stop", 0, 0, 0.0)
            room = engine.model_config.max_model_len - len(prompt)
            if room < 1 or not prompt:
                return ChatReply("", "length", len(prompt), 0, 0.0)
            return await self._complete(engine, request, prompt, min(request.max_tokens, room))

    async def aclose(self) -> None:
        """Stop all calls and free the model; idempotent."""
        self._closed = True
        loaded, self._loaded = self._loaded, None
        if loaded is not None:
            await asyncio.to_thread(loaded[0].shutdown)
        if self._scratch is not None:
            self._scratch.cleanup()

    async def _complete(self, engine: Any, request: ChatRequest, prompt: list[int], limit: int) -> ChatReply:
        from vllm import SamplingParams, TokensPrompt
        from vllm.lora.request import LoRARequest
        from vllm.sampling_params import RequestOutputKind

        lora = None
        if self._adapter is not None:
            path = str(self._adapter_folder)
            lora = LoRARequest(lora_name=self._adapter.label, lora_int_id=1, lora_path=path)
        try:
            # A model's own top_k and the like are not taken: what is not asked for is vLLM's neutral default.
            params = SamplingParams(
                **{
                    **self._spec.extra_body,
                    "temperature": request.temperature,
                    "max_tokens": limit,
                    "stop": [clean_text(text) for text in request.stop if text],
                    "seed": request.seed % 2**31,
                    "output_kind": RequestOutputKind.FINAL_ONLY,
                }
            )
        except (TypeError, ValueError) as error:
            raise EngineError(
                f"{self.name} refuses extra_body: {error}", hint="hl config list --origin"
            ) from None
        self._calls += 1
        start, final = time.perf_counter(), None
        try:
            outputs = engine.generate(
                TokensPrompt(prompt_token_ids=prompt), params, f"hl-{self._calls}", lora_request=lora
            )
            async for output in outputs:  # one: the final
                final = output
        except asyncio.CancelledError:
            raise  # vLLM has aborted the request
        except Exception as error:
            raise EngineError(f"{self.name} failed: {type(error).__name__} {error}".strip()) from error
        if final is None:
            raise EngineError(f"{self.name} was closed during a call")
        done = final.outputs[0]
        counts = len(prompt), len(done.token_ids)
        finish = "length" if done.finish_reason == "length" else "stop"
        return ChatReply(
            done.text, finish, *counts, seconds=time.perf_counter() - start, cost=self._spec.price(*counts)
        )

    def _load(self) -> tuple[Any, ChatTemplate]:
        if self._closed:
            raise EngineError(f"the engine {self.name} is closed")
        if self._loaded is None:
            for name, value in _QUIET.items():
                os.environ.setdefault(name, value)
            from transformers import AutoTokenizer
            from vllm import AsyncEngineArgs
            from vllm.v1.engine.async_llm import AsyncLLM

            folder = model_folder(self._base)
            arguments = engine_arguments(self._spec, self._adapter)
            self._adapter_folder = self._mount()
            try:
                tokenizer = AutoTokenizer.from_pretrained(folder, trust_remote_code=False)
                template = ChatTemplate(tokenizer, self._base, self._spec.chat_template_kwargs)
                engine = AsyncLLM.from_engine_args(AsyncEngineArgs(model=folder, **arguments))
            except (OSError, ValueError, RuntimeError) as error:
                raise EngineError(f"vLLM cannot load {self._base}: {error}") from error
            self._loaded = engine, template
        return self._loaded

    def _mount(self) -> Path | None:
        """The adapter's folder, under the names that vLLM knows its weights by."""
        if self._adapter is None:
            return None
        if not is_mounted(architectures(self._base)):
            return self._adapter.path
        self._scratch = tempfile.TemporaryDirectory(prefix="hl-adapter-")  # gone with the engine
        return mount(self._adapter, Path(self._scratch.name))
