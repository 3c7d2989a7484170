"""How large a base is: from a table, or from the headers of its files. Opens no weights."""

import json
import struct
from dataclasses import dataclass
from pathlib import Path

KNOWN_SHAPES = {
    "smollm2": (134_515_008, 30, 576, 49_152),
    "Qwen/Qwen3-4B": (4_022_468_096, 36, 2560, 151_936),
    "Qwen/Qwen3-8B": (8_190_735_360, 36, 4096, 151_936),
    # The language model alone, which is what is trained.
    "Qwen/Qwen3.5-4B": (4_205_751_296, 32, 2560, 248_320),
}
"""Weights, layers, width and vocabulary, as the published `config.json` makes them."""


@dataclass(frozen=True, slots=True)
class Shape:
    """A base's size."""

    weights: int
    layers: int
    width: int
    vocabulary: int


def shape_of(base: str) -> Shape | None:
    """A base's size; None for what is neither in the table nor a folder that can be read."""
    if base in KNOWN_SHAPES:
        return Shape(*KNOWN_SHAPES[base])
    folder = Path(base).expanduser()
    try:
        config = json.loads((folder / "config.json").read_bytes())
        config = config.get("text_config", config)
        sizes = [int(config[name]) for name in ("num_hidden_layers", "hidden_size", "vocab_size")]
        weights = sum(_weights(path) for path in folder.glob("*.safetensors"))
    except (OSError, ValueError, KeyError, TypeError, AttributeError, struct.error):
        return None
    return Shape(weights, *sizes) if weights else None


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
