"""A small random language model on disk, for tests and `make gpu-check`: folder, tokenizer, chat template, adapter.

Its tokens are bytes, so it needs no vocabulary from anywhere. Needs the extra `train`. The weights depend on the seed
alone.
"""

import warnings
from pathlib import Path
from typing import Any

TEMPLATE = (
    "{% for message in messages %}<|{{ message['role'] }}|>{{ message['content'] }}<|end|>{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
SPECIAL = ("<|pad|>", "<|end|>", "<|system|>", "<|user|>", "<|assistant|>")


def write_tiny(
    folder: Path, *, layers: int = 2, width: int = 64, seed: int = 0, template: str = TEMPLATE
) -> Path:
    """Write a random Llama and its tokenizer; returns the folder.

    Args:
        folder: Made here.
        layers: How many.
        width: Of the hidden state; a multiple of 32.
        seed: Of the weights.
        template: Chat template; empty for none.
    """
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    tokenizer = tiny_tokenizer(template)
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=width,
        intermediate_size=width * 2,
        num_hidden_layers=layers,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=8192,
        tie_word_embeddings=True,
        initializer_range=0.3,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
        bos_token_id=None,
    )
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        LlamaForCausalLM(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def tiny_tokenizer(template: str = TEMPLATE) -> Any:
    """One token a byte, and the marks of a conversation."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    inner = Tokenizer(models.BPE(vocab={c: i for i, c in enumerate(alphabet)}, merges=[]))
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    inner.decoder = decoders.ByteLevel()
    inner.add_special_tokens([AddedToken(text, special=True, normalized=False) for text in SPECIAL])
    return PreTrainedTokenizerFast(
        tokenizer_object=inner,
        eos_token="<|end|>",
        pad_token="<|pad|>",
        chat_template=template or None,
        model_max_length=8192,
        clean_up_tokenization_spaces=False,
    )


def write_adapter(base: Path, folder: Path, *, rank: int = 4, seed: int = 1, scale: float = 0.5) -> Path:
    """Write a LoRA adapter for a base that changes what it says; returns the folder.

    Args:
        base: The model's folder.
        folder: Made here.
        rank: Of every matrix.
        seed: Of its weights.
        scale: Standard deviation of the half that training starts at zero.
    """
    import torch
    from peft import LoraConfig, get_peft_model
    from transformers import AutoModelForCausalLM

    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = AutoModelForCausalLM.from_pretrained(base, use_safetensors=True)
        config = LoraConfig(r=rank, lora_alpha=rank, target_modules="all-linear", task_type="CAUSAL_LM")
        with warnings.catch_warnings():
            warnings.simplefilter(
                "ignore", FutureWarning
            )  # peft asks transformers for what goes away in its v6
            tuned = get_peft_model(model, config)
        for name, value in tuned.named_parameters():
            if "lora_B" in name:
                torch.nn.init.normal_(value, std=scale)
        tuned.save_pretrained(str(folder))
    return folder
