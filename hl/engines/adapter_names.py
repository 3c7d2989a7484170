"""Under which names a server of a base looks for the weights of an adapter. Rewrites a header, loads nothing.

transformers loads the language model of a base that sees images on its own, as `model.layers`; vLLM loads the whole of
it, where the same is `model.language_model.layers`, and leaves out without a word what an adapter holds under other
names (vllm-project/vllm#48019). Qwen3.5 is such a base.
"""

import json
import re
import shutil
import struct
from collections.abc import Sequence
from pathlib import Path

from hl.engines.adapters import CONFIG, WEIGHTS, Adapter, adapter_shapes

_ALONE = re.compile(r"^(base_model\.model\.model\.)(?=layers\.)")
_CHUNK = 1 << 20


def is_mounted(architectures: Sequence[str]) -> bool:
    """Whether the language model of a base is a part of what a server loads.

    Args:
        architectures: As the base's `config.json` lists them.
    """
    return any(name.endswith("ForConditionalGeneration") for name in architectures)


def mount(adapter: Adapter, target: Path) -> Path:
    """Write an adapter of a language model alone as one of the same model inside a larger one.

    Args:
        adapter: As training writes it.
        target: A folder, made here.

    Returns:
        The target; the adapter's own folder if its names are those already.

    Raises:
        EngineError: Its weights are no safetensors file.
        OSError: The target cannot be written.
    """
    if not any(_ALONE.match(name) for name in adapter_shapes(adapter)):
        return adapter.path
    target.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(adapter.path / CONFIG, target / CONFIG)
    with (adapter.path / WEIGHTS).open("rb") as source, (target / WEIGHTS).open("wb") as copy:
        (length,) = struct.unpack("<Q", source.read(8))
        head = json.loads(source.read(length))
        renamed = {_ALONE.sub(r"\1language_model.", name): entry for name, entry in head.items()}
        data = json.dumps(renamed, separators=(",", ":")).encode()
        data += b" " * (-len(data) % 8)  # the format aligns what follows
        copy.write(struct.pack("<Q", len(data)) + data)
        shutil.copyfileobj(source, copy, _CHUNK)
    return target
