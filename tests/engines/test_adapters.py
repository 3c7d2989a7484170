"""Adapters on disk, without loading any: hostile ones are refused, and the digest follows the content."""

import json
import struct

import pytest

from hl.engines.adapters import CONFIG, WEIGHTS, adapter_shapes, read_adapter, refuse_other_base
from hl.engines.openai import EngineSpec, OpenAIEngine
from hl.errors import EngineError

FIELDS = {"peft_type": "LORA", "r": 8, "base_model_name_or_path": "org/base", "init_lora_weights": True}


def write(folder, fields=FIELDS, tensors=None):
    folder.mkdir(exist_ok=True)
    (folder / CONFIG).write_text(fields if isinstance(fields, str) else json.dumps(fields))
    head = json.dumps({"__metadata__": {}} | (tensors or {})).encode()
    (folder / WEIGHTS).write_bytes(struct.pack("<Q", len(head)) + head)
    return folder


def test_what_an_adapter_is(tmp_path):
    tensor = {"a": {"dtype": "F32", "shape": [8, 4], "data_offsets": [0, 128]}}
    adapter = read_adapter(write(tmp_path / "my adapter", FIELDS | {"rank_pattern": {"q": 32}}, tensor))
    assert (adapter.base, adapter.rank) == ("org/base", 32)
    assert adapter.label == f"my-adapter:{adapter.digest[:16]}" and len(adapter.digest) == 64
    assert adapter_shapes(adapter) == {"a": (8, 4)}


def test_the_digest_follows_both_files_and_not_the_place(tmp_path):
    one = read_adapter(write(tmp_path / "one"))
    assert read_adapter(write(tmp_path / "same")).digest == one.digest
    assert read_adapter(write(tmp_path / "c", FIELDS | {"lora_alpha": 9})).digest != one.digest
    tensor = {"a": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}
    assert read_adapter(write(tmp_path / "w", tensors=tensor)).digest != one.digest


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        (FIELDS | {"peft_type": "LOHA"}, "LOHA"),
        (FIELDS | {"megatron_config": {"x": 1}, "megatron_core": "os"}, "megatron_config"),
        (FIELDS | {"auto_mapping": {"parent_library": "evil"}}, "auto_mapping"),
        (FIELDS | {"corda_config": {"cache_file": "/tmp/x.pt"}}, "corda_config"),
        (FIELDS | {"init_lora_weights": "pissa"}, "init_lora_weights"),
        (FIELDS | {"r": "8"}, "rank"),
        (FIELDS | {"rank_pattern": [1]}, "not the configuration"),
        ("[]", "not the configuration"),
        ("{", "not the configuration"),
        ("[" * 100_000, "not the configuration"),
    ],
)
def test_other_configurations_are_refused(tmp_path, fields, reason):
    with pytest.raises(EngineError, match=reason):
        read_adapter(write(tmp_path / "a", fields))


def test_pickled_weights_and_other_folders_are_refused(tmp_path):
    folder = write(tmp_path / "a")
    (folder / WEIGHTS).rename(folder / "adapter_model.bin")
    with pytest.raises(EngineError, match=WEIGHTS):
        read_adapter(folder)
    with pytest.raises(EngineError, match="no LoRA adapter"):
        read_adapter(tmp_path)
    (write(tmp_path / "b") / WEIGHTS).write_bytes(b"\xff" * 20)
    with pytest.raises(EngineError, match="no safetensors"):
        adapter_shapes(read_adapter(tmp_path / "b"))


def test_public_names_of_bases_are_compared_and_folders_are_not(tmp_path):
    adapter = read_adapter(write(tmp_path / "a"))
    refuse_other_base(adapter, "org/base")
    refuse_other_base(adapter, str(tmp_path))
    with pytest.raises(EngineError, match="trained on org/base, not on smollm2"):
        refuse_other_base(adapter, "smollm2")
    folder = str(tmp_path / "models" / "smollm2-0123456789ab")
    small = read_adapter(write(tmp_path / "b", FIELDS | {"base_model_name_or_path": folder}))
    refuse_other_base(small, "smollm2")
    with pytest.raises(EngineError, match="not on org/base"):
        refuse_other_base(small, "org/base")


def test_a_served_adapter_is_named_by_its_digest(tmp_path):
    folder = write(tmp_path / "sft")
    plain = EngineSpec("openai", model="sft", base_url="http://127.0.0.1:1/v1")
    known = EngineSpec("openai", model="sft", base_url="http://127.0.0.1:1/v1", adapter=str(folder))
    assert OpenAIEngine(plain).name == "openai sft"
    assert OpenAIEngine(known).name == f"openai sft@{read_adapter(folder).label}"
    assert OpenAIEngine(known).digest != OpenAIEngine(plain).digest
