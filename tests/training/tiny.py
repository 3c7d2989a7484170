"""A random two-layer Llama that writes edits: the words of its small vocabulary are whole replies.

So a model that has learnt nothing still meets every outcome, its replies cost a few tokens, and no vocabulary has to
come from anywhere. A prompt is a row of unknown words.
"""

from collections.abc import Sequence
from pathlib import Path

from tests.loop import GOOD, IDLE, LOST, NONE

CRASH = """\
Ask nobody

<<<<<<< SEARCH
    return model("guess: " + question)
=======
    return model.oracle(question)
>>>>>>> REPLACE
"""
REPLIES = (GOOD, IDLE, LOST, NONE, CRASH)
TEMPLATE = (
    "{% for message in messages %}<|{{ message['role'] }}|>{{ message['content'] }}<|end|>{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
SPECIAL = ("<|pad|>", "<|end|>", "<|system|>", "<|user|>", "<|assistant|>")


def write_tiny(
    folder: Path, replies: Sequence[str] = REPLIES, *, template: str = TEMPLATE, seed: int = 0
) -> Path:
    """Write model and tokenizer; returns the folder.

    Args:
        folder: Made here.
        replies: What it can say.
        template: Chat template; empty for none.
        seed: Of the weights.
    """
    import torch
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast
    from transformers.utils import logging

    inner = Tokenizer(models.WordLevel({"<|unk|>": 0}, unk_token="<|unk|>"))
    inner.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    inner.decoder = decoders.Fuse()
    inner.add_special_tokens([AddedToken(text, special=True, normalized=False) for text in SPECIAL])
    inner.add_tokens([AddedToken(text, normalized=False) for text in replies])
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=inner,
        eos_token="<|end|>",
        pad_token="<|pad|>",
        unk_token="<|unk|>",
        chat_template=template or None,
        clean_up_tokenization_spaces=False,
    )
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=2,
        max_position_embeddings=4096,
        tie_word_embeddings=False,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
        bos_token_id=None,
    )
    logging.disable_progress_bar()
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        LlamaForCausalLM(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder
