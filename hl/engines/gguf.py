"""A small GGUF file -> a model folder as transformers and vLLM read it: config, tokenizer and float32 safetensors.

Reads what `hl model pull` fetches: a Llama with a byte-level BPE tokenizer, its tensors in F32, Q4_1 or Q8_0.
Dequantising is exact in float32, so both engines compute with the same numbers. Needs numpy alone. The format is
described in ggml's docs/gguf.md, that of safetensors in its README.
"""

import json
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from hl.errors import EngineError

_SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_TEXT, _LIST = 8, 9
_F32, _Q4_1, _Q8_0 = 0, 3, 8
_CONTROL = 3
_NAMES = {
    "attn_norm": "input_layernorm",
    "ffn_norm": "post_attention_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}


@dataclass(frozen=True, slots=True)
class Tensor:
    """One tensor of the file."""

    name: str
    """As GGUF calls it."""
    shape: tuple[int, ...]
    """Outermost first, as numpy has it."""
    kind: int
    """Its number in ggml's list of types."""
    offset: int
    """From the beginning of the file."""


@dataclass(frozen=True, slots=True)
class Gguf:
    """What a file says before its numbers begin."""

    path: Path
    metadata: Mapping[str, Any]
    tensors: tuple[Tensor, ...]


def read_gguf(path: Path) -> Gguf:
    """Read metadata and the list of tensors.

    Raises:
        EngineError: It is no GGUF of version 2 or 3.
    """
    with path.open("rb") as file:
        magic, version, tensors, pairs = struct.unpack("<4sIQQ", file.read(24))
        if magic != b"GGUF" or version not in (2, 3):
            raise EngineError(f"{path} is not a GGUF model file")
        metadata: dict[str, Any] = {}
        for _ in range(pairs):
            name = _text(file)
            metadata[name] = _value(file, _number(file, "I"))
        heads: list[tuple[str, tuple[int, ...], int, int]] = []
        for _ in range(tensors):
            name = _text(file)
            shape = tuple(_number(file, "Q") for _ in range(_number(file, "I")))[::-1]
            heads.append((name, shape, _number(file, "I"), _number(file, "Q")))
        alignment = int(metadata.get("general.alignment", 32))
        start = -(-file.tell() // alignment) * alignment
    return Gguf(path, metadata, tuple(Tensor(n, s, k, start + at) for n, s, k, at in heads))


def write_folder(gguf: Gguf, folder: Path) -> None:
    """Write the model as `config.json`, `tokenizer.json`, `tokenizer_config.json`, and `model.safetensors`.

    Args:
        gguf: A Llama.
        folder: Exists, and is empty.

    Raises:
        EngineError: Another architecture, tokenizer or kind of tensor.
    """
    meta = gguf.metadata
    if meta.get("general.architecture") != "llama" or meta.get("tokenizer.ggml.pre") != "smollm":
        raise EngineError(f"{gguf.path} holds a kind of model that cannot be turned into safetensors")
    for name, value in (
        ("config.json", _config(meta)),
        ("tokenizer.json", _tokenizer(meta)),
        ("tokenizer_config.json", _tokenizer_config(meta)),
    ):
        (folder / name).write_text(json.dumps(value, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    _write_safetensors(gguf, folder / "model.safetensors")


def _write_safetensors(gguf: Gguf, path: Path) -> None:
    at = 0
    head: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    for tensor in gguf.tensors:
        size = 4
        for length in tensor.shape:
            size *= length
        head[_name(tensor.name)] = {
            "dtype": "F32",
            "shape": tensor.shape,
            "data_offsets": (at, at + size),
        }
        at += size
    text = json.dumps(head).encode()
    text += b" " * (-len(text) % 8)
    with path.open("wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for values in _dense(gguf):
            file.write(values)


def _dense(gguf: Gguf) -> Iterator[bytes]:
    """The tensors' float32 bytes, in order."""
    import numpy as np

    heads = {"attn_q": "llama.attention.head_count", "attn_k": "llama.attention.head_count_kv"}
    for tensor in gguf.tensors:
        count = int(np.prod(tensor.shape))
        if tensor.kind == _F32:
            flat = np.fromfile(gguf.path, "<f4", count, offset=tensor.offset)
        elif tensor.kind == _Q8_0:
            kind = np.dtype([("scale", "<f2"), ("q", "i1", 32)])
            blocks = np.fromfile(gguf.path, kind, count // 32, offset=tensor.offset)
            flat = blocks["scale"].astype("<f4")[:, None] * blocks["q"].astype("<f4")
        elif tensor.kind == _Q4_1:
            kind = np.dtype([("scale", "<f2"), ("least", "<f2"), ("q", "u1", 16)])
            blocks = np.fromfile(gguf.path, kind, count // 32, offset=tensor.offset)
            nibbles = np.concatenate([blocks["q"] & 15, blocks["q"] >> 4], axis=1)
            scale, least = (blocks[name].astype("<f4")[:, None] for name in ("scale", "least"))
            flat = scale * nibbles.astype("<f4") + least
        else:
            raise EngineError(f"{gguf.path} holds {tensor.name} in a form that is not read here")
        values = flat.reshape(tensor.shape)
        if key := heads.get(tensor.name.split(".")[-2]):
            # GGUF interleaves the halves that rotary embeddings turn; transformers keeps them apart.
            rows, columns = tensor.shape
            paired = values.reshape(gguf.metadata[key], -1, 2, columns)
            values = paired.swapaxes(1, 2).reshape(rows, columns)
        yield np.ascontiguousarray(values, "<f4").tobytes()


def _name(name: str) -> str:
    """A tensor's name in transformers."""
    parts = name.split(".")
    if parts[0] == "blk":
        return f"model.layers.{parts[1]}.{_NAMES[parts[2]]}.{parts[3]}"
    whole = {"token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head"}
    return f"{whole[parts[0]]}.{parts[1]}"


def _config(meta: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "dtype": "float32",
        "hidden_act": "silu",
        "hidden_size": meta["llama.embedding_length"],
        "intermediate_size": meta["llama.feed_forward_length"],
        "num_hidden_layers": meta["llama.block_count"],
        "num_attention_heads": meta["llama.attention.head_count"],
        "num_key_value_heads": meta["llama.attention.head_count_kv"],
        "max_position_embeddings": meta["llama.context_length"],
        "rms_norm_eps": round(meta["llama.attention.layer_norm_rms_epsilon"], 12),
        "rope_theta": meta["llama.rope.freq_base"],
        "vocab_size": meta["llama.vocab_size"],
        "tie_word_embeddings": True,
        "attention_bias": False,
        "mlp_bias": False,
        "bos_token_id": meta["tokenizer.ggml.bos_token_id"],
        "eos_token_id": meta["tokenizer.ggml.eos_token_id"],
        "pad_token_id": meta["tokenizer.ggml.padding_token_id"],
    }


def _tokenizer(meta: Mapping[str, Any]) -> dict[str, Any]:
    tokens = meta["tokenizer.ggml.tokens"]
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    controls = [
        {"id": index, "content": token, **flags}
        for index, token in enumerate(tokens)
        if meta["tokenizer.ggml.token_type"][index] == _CONTROL
    ]
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": controls,
        "normalizer": None,
        "pre_tokenizer": {
            "type": "Sequence",
            "pretokenizers": [{"type": "Digits", "individual_digits": True}, byte_level],
        },
        "post_processor": None,
        "decoder": byte_level,
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "vocab": {token: index for index, token in enumerate(tokens)},
            "merges": meta["tokenizer.ggml.merges"],
        },
    }


def _tokenizer_config(meta: Mapping[str, Any]) -> dict[str, Any]:
    tokens = meta["tokenizer.ggml.tokens"]
    return {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": meta["llama.context_length"],
        "clean_up_tokenization_spaces": False,
        "bos_token": tokens[meta["tokenizer.ggml.bos_token_id"]],
        "eos_token": tokens[meta["tokenizer.ggml.eos_token_id"]],
        "pad_token": tokens[meta["tokenizer.ggml.padding_token_id"]],
        "chat_template": meta["tokenizer.chat_template"],
    }


def _number(file: BinaryIO, kind: str) -> Any:
    return struct.unpack("<" + kind, file.read(struct.calcsize("<" + kind)))[0]


def _text(file: BinaryIO) -> str:
    return file.read(_number(file, "Q")).decode("utf-8")


def _value(file: BinaryIO, kind: int) -> Any:
    if kind == _TEXT:
        return _text(file)
    if kind == _LIST:
        inner, count = _number(file, "I"), _number(file, "Q")
        return [_value(file, inner) for _ in range(count)]
    return _number(file, _SCALARS[kind])
