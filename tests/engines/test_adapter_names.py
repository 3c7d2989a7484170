"""Adapters of a language model that a server loads as a part of something larger."""

import json
import struct
from pathlib import Path

import pytest

from hl.engines.adapter_names import is_mounted, mount
from hl.engines.adapters import adapter_shapes, read_adapter
from hl.engines.bases import architectures
from hl.engines.vllm_server import ServerPlan, mounted, server_arguments
from hl.errors import EngineError

NAMES = [
    f"base_model.model.model.layers.{n}.linear_attn.out_proj.lora_{x}.weight" for n in (0, 1) for x in "AB"
]


def write_adapter(folder: Path, names: list[str]) -> Path:
    """Four numbers a tensor, all different."""
    folder.mkdir()
    config = {"peft_type": "LORA", "r": 2, "init_lora_weights": True, "target_modules": ["out_proj"]}
    (folder / "adapter_config.json").write_text(json.dumps(config))
    head = {
        n: {"dtype": "F32", "shape": [2, 2], "data_offsets": [16 * i, 16 * i + 16]}
        for i, n in enumerate(names)
    }
    data = json.dumps({"__metadata__": {"format": "pt"}, **head}).encode()
    body = struct.pack(f"<{4 * len(names)}f", *range(4 * len(names)))
    (folder / "adapter_model.safetensors").write_bytes(struct.pack("<Q", len(data)) + data + body)
    return folder


def write_base(folder: Path, *classes: str) -> Path:
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps({"architectures": list(classes)}))
    (folder / "model.safetensors").write_bytes(b"")
    return folder


def test_weights_are_renamed_and_stay_the_same(tmp_path: Path) -> None:
    adapter = read_adapter(write_adapter(tmp_path / "a", NAMES))
    there = read_adapter(mount(adapter, tmp_path / "b"))
    assert there.path == tmp_path / "b" and there.rank == 2
    want = [name.replace("model.layers", "model.language_model.layers") for name in NAMES]
    assert list(adapter_shapes(there)) == want
    raw = (there.path / "adapter_model.safetensors").read_bytes()
    (length,) = struct.unpack("<Q", raw[:8])
    assert length % 8 == 0 and struct.unpack("<16f", raw[8 + length :]) == tuple(range(16))
    # Those names are right already.
    assert mount(there, tmp_path / "c") == there.path and not (tmp_path / "c").exists()


def test_the_real_library_reads_what_was_written(tmp_path: Path) -> None:
    numpy = pytest.importorskip("safetensors.numpy")
    adapter = read_adapter(write_adapter(tmp_path / "a", NAMES))
    moved = numpy.load_file(mount(adapter, tmp_path / "b") / "adapter_model.safetensors")
    assert moved[NAMES[1].replace("model.layers", "model.language_model.layers")].tolist() == [[4, 5], [6, 7]]


def test_hl_model_serve_renames_where_the_base_is_mounted(tmp_path: Path) -> None:
    adapter = read_adapter(write_adapter(tmp_path / "a", NAMES))
    seeing = write_base(tmp_path / "seeing", "Qwen3_5ForConditionalGeneration")
    plain = write_base(tmp_path / "plain", "Qwen3ForCausalLM")
    assert is_mounted(architectures(str(seeing))) and not is_mounted(architectures(str(plain)))
    plan = ServerPlan(str(seeing), adapters=(("rl", adapter),))
    served = mounted(plan, tmp_path / "logs")
    (module,) = [a for a in server_arguments(served, "x", 0) if a.startswith("{")]
    assert json.loads(module) == {"name": "rl", "path": str(tmp_path / "logs/rl")}
    assert served.adapters[0][1].digest == adapter.digest  # what is recorded is the adapter as it was trained
    other = ServerPlan(str(plain), adapters=(("rl", adapter),))
    assert mounted(other, tmp_path / "logs") is other
    (plain / "config.json").write_text("[]")
    with pytest.raises(EngineError, match="is not the configuration of a model"):
        architectures(str(plain))
