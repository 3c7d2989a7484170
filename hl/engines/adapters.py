"""LoRA adapters on disk: what one is, whether it fits a base, and the digest that says which one it was.

An adapter may come from anywhere, so its configuration is data that is checked: plain LoRA, weights in safetensors,
and none of the fields that make a loader import modules, read other files or change the base. Reads headers and hashes,
loads nothing.
"""

import hashlib
import json
import re
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hl.engines.weights import KNOWN, sha256_of
from hl.errors import EngineError

CONFIG = "adapter_config.json"
WEIGHTS = "adapter_model.safetensors"
_LARGEST = 1 << 20
_REFUSED = ("megatron_config", "auto_mapping", "corda_config", "eva_config", "lora_ga_config")
"""Fields by which peft imports modules or reads further files."""
_STARTS = (True, False, None, "gaussian", "orthogonal")
"""Ways of starting an adapter that leave the base's weights alone."""
_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")


@dataclass(frozen=True, slots=True)
class Adapter:
    """A LoRA adapter's folder, looked at."""

    path: Path
    """Absolute."""
    digest: str
    """Hex sha256 over `adapter_config.json` and `adapter_model.safetensors`."""
    base: str
    """The base it was trained on, as its configuration says; a folder, a hub id, or empty."""
    rank: int
    """The largest there is in it."""

    @property
    def label(self) -> str:
        """Its folder's name and the start of its digest, as names of engines and trailers of commits show it."""
        name = re.sub(r"[^\w.-]+", "-", self.path.name, flags=re.ASCII)[:32] or "adapter"
        return f"{name}:{self.digest[:16]}"


def read_adapter(folder: str | Path) -> Adapter:
    """Look at an adapter.

    Raises:
        EngineError: No such folder, no LoRA, weights that would have to be unpickled, or a refused field.
    """
    path = Path(folder).expanduser().resolve()
    if not (path / CONFIG).is_file():
        raise EngineError(
            f"{folder} is no LoRA adapter: it has no {CONFIG}", hint="name the folder that training wrote"
        )
    if not (path / WEIGHTS).is_file():
        raise EngineError(f"{folder} has no {WEIGHTS}, and other weights are not loaded")
    fields = _read_config(path / CONFIG, str(folder))
    if fields.get("peft_type") != "LORA":
        raise EngineError(f"{folder} is an adapter of type {str(fields.get('peft_type'))[:40]!r}, not LORA")
    if named := [name for name in _REFUSED if fields.get(name)]:
        raise EngineError(f"{folder}/{CONFIG} sets {', '.join(named)}, which loads more than weights")
    if fields.get("init_lora_weights") not in _STARTS:
        raise EngineError(f"{folder}/{CONFIG} sets init_lora_weights so that the base's weights would change")
    named_ranks: list[Any] = [fields.get("r"), *(fields.get("rank_pattern") or {}).values()]
    ranks = [rank for rank in named_ranks if isinstance(rank, int) and rank > 0]
    if len(ranks) < len(named_ranks):
        raise EngineError(f"{folder}/{CONFIG} gives no rank")
    total = hashlib.sha256()
    for name in (CONFIG, WEIGHTS):
        total.update(f"{name} {sha256_of(path / name)}\n".encode())
    return Adapter(path, total.hexdigest(), str(fields.get("base_model_name_or_path") or ""), max(ranks))


def refuse_other_base(adapter: Adapter, base: str) -> None:
    """Refuse an adapter that says it was trained on another model.

    Only names that mean the same everywhere are compared: hub ids, and known models. Where a base is a folder, the
    shapes of the weights decide when it is loaded.

    Raises:
        EngineError: The names differ.
    """
    trained, used = _public_name(adapter.base), _public_name(base)
    if trained and used and trained != used:
        raise EngineError(
            f"the adapter {adapter.path} was trained on {adapter.base}, not on {base}",
            hint=f'model = "{trained}"',
        )


def adapter_shapes(adapter: Adapter) -> Mapping[str, tuple[int, ...]]:
    """Names and shapes of its tensors, from the header of the safetensors file.

    Raises:
        EngineError: The header is none.
    """
    path = adapter.path / WEIGHTS
    try:
        with path.open("rb") as file:
            (length,) = struct.unpack("<Q", file.read(8))
            if length > 100 * _LARGEST:
                raise ValueError("too long")
            head: dict[str, Any] = json.loads(file.read(length))
        return {name: tuple(entry["shape"]) for name, entry in head.items() if name != "__metadata__"}
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError, struct.error):
        raise EngineError(f"{path} is no safetensors file") from None


def _public_name(base: str) -> str:
    """A hub id or a known model's name; empty for a folder. A known model's folder bears its name."""
    if base in KNOWN:
        return base
    for name in KNOWN:
        if re.fullmatch(rf"{re.escape(name)}-[0-9a-f]{{12}}", Path(base).name):
            return name
    return base if _HUB_ID.fullmatch(base) and not Path(base).is_dir() else ""


def _read_config(path: Path, shown: str) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            data = file.read(_LARGEST + 1)
        fields = json.loads(data) if len(data) <= _LARGEST else None
    except (OSError, ValueError, RecursionError):
        fields = None
    if not isinstance(fields, dict) or not isinstance(fields.get("rank_pattern") or {}, dict):
        raise EngineError(f"{shown}/{CONFIG} is not the configuration of an adapter")
    return fields
