"""The seam to language models: a description of an engine, and the function that opens one.

Promises that importing this module loads no model library, and that opening an engine loads only its own.
Does not start servers, load weights or make calls: engines do that on their first chat, so that a run that is
answered from the cache never pays for it.
"""

import difflib
import hashlib
import importlib
import importlib.util
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from hl.errors import MissingExtraError, UsageError
from hl.types import Engine, Message

_ENGINES: Mapping[str, str] = {
    "hf": "hl.engines.hf:HfEngine",
    "llamacpp": "hl.engines.llamacpp:LlamaCppEngine",
    "openai": "hl.engines.openai:OpenAIEngine",
    "scripted": "hl.engines.scripted:ScriptedEngine",
    "vllm": "hl.engines.vllm:VllmEngine",
}
"""Dotted paths, imported on demand; each class has `from_spec`."""


@dataclass(frozen=True, slots=True)
class EngineSpec:
    """What it takes to open an engine. Fields that an engine does not use are ignored by it."""

    engine: str
    """A registered name: `llamacpp`, `openai`, `scripted`, `hf` or `vllm`."""
    model: str = ""
    """A known model (`smollm2`); or a .gguf file for llamacpp, a folder or hub id for hf and vllm, the served model's
    name for openai."""
    adapter: str = ""
    """A LoRA adapter's folder. hf, vllm: goes onto the model. openai: what the server serves as `model`; recorded."""
    base_url: str = ""
    """openai: the server's URL, up to and including `/v1`."""
    api_key_env: str = ""
    """openai: the *name* of the environment variable that holds the key; empty for a server without keys."""
    path: str = ""
    """A .gguf file (llamacpp), a model folder (hf, vllm) or a rules file (scripted); wins over `model`."""
    threads: int = 2
    """llamacpp, hf: threads that compute."""
    slots: int = 8
    """llamacpp, hf: requests that are computed together; 1 when `deterministic`."""
    context_tokens: int = 4096
    """llamacpp, hf, vllm: prompt and reply of one request, in tokens."""
    deterministic: bool = False
    """llamacpp, hf, vllm: one request at a time, no prompt cache, so that the same request gives the same text."""
    concurrency: int = 16
    """openai, vllm: requests in flight at most."""
    timeout_s: float = 120.0
    """openai: of one try, from sending to the last byte."""
    retries: int = 6
    """openai: further tries after the first."""
    price_in: float = 0.0
    """Money for a million prompt tokens."""
    price_out: float = 0.0
    """Money for a million completion tokens."""
    extra_body: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Further fields of the request body, such as `{"top_k": 20}`; part of the digest."""
    chat_template_kwargs: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Arguments of the chat template, such as `{"enable_thinking": false}`."""

    def price(self, prompt_tokens: int, completion_tokens: int) -> float:
        """Money for one call."""
        return (self.price_in * prompt_tokens + self.price_out * completion_tokens) / 1e6


def open_engine(spec: EngineSpec) -> Engine:
    """Open the engine that a spec names, without loading weights or connecting.

    Raises:
        UsageError: No such engine, or a value of the spec is wrong.
        MissingExtraError: The packages that it needs are not installed.
        EngineError: Its weights are not here.
    """
    if spec.engine == "catalog":
        raise UsageError(
            "'catalog' is a proposer and cannot answer a solver's calls", hint='use engine = "llamacpp"'
        )
    dotted = _ENGINES.get(spec.engine)
    if dotted is None:
        near = difflib.get_close_matches(spec.engine, _ENGINES, n=1)
        hint = f"did you mean {near[0]!r}?" if near else None
        raise UsageError(
            f"unknown engine {spec.engine!r}; there are {', '.join(sorted(_ENGINES))}", hint=hint
        )
    module, _, attribute = dotted.partition(":")
    return cast(Engine, getattr(importlib.import_module(module), attribute).from_spec(spec))


def need_extra(extra: str, *packages: str) -> None:
    """Check that an extra's packages are installed, without importing them.

    Args:
        extra: Its name in `pip install 'harness-learning[EXTRA]'`.
        packages: Top-level modules.

    Raises:
        MissingExtraError: One is not there.
    """
    missing = [name for name in packages if importlib.util.find_spec(name) is None]
    if missing:
        raise MissingExtraError(
            f"{', '.join(missing)} is not installed", hint=f"pip install 'harness-learning[{extra}]'"
        )


def short_name(model: str) -> str:
    """A model's name for one line: the last part of a path or hub id, at most 40 characters."""
    return model.rstrip("/").rpartition("/")[2][:40] or model[:40]


def digest_of(**parts: Any) -> str:
    """Hex sha256 over keyword values, for `Engine.digest`: what can change a reply goes in, nothing else."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()


def clean_text(text: str) -> str:
    """The text with lone surrogates replaced, which neither JSON parsers nor UTF-8 accept.

    A harness can build such strings, so it is data and no engine failure.
    """
    return text.encode("utf-8", "replace").decode("utf-8")


def wire_messages(messages: tuple[Message, ...]) -> list[dict[str, str]]:
    """Messages as the chat-completions format wants them."""
    return [{"role": m.role, "content": clean_text(m.content)} for m in messages]
