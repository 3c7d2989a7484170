"""How far an adapter has moved: nothing from itself, something after an update, and by hand on two tokens."""

import json
from math import exp, log
from pathlib import Path

import pytest

pytest.importorskip("peft")

from hl.errors import EngineError, UsageError
from tests.commands.test_train_run import train
from tests.loop import GOOD
from tests.training.kit import as_toml
from tests.training.test_sft import context, small
from tests.training.tiny import write_tiny
from training.contexts import save_contexts
from training.distance import REPLIES, measure
from training.models import load_trainee, token_kl
from training.settings import Settings

CONTEXTS = tuple(context("sums", n) for n in range(3))


@pytest.fixture(scope="module")
def moved(tmp_path_factory: pytest.TempPathFactory) -> tuple[Settings, Path, Path]:
    """Settings, an adapter that changes nothing yet, and the same after one small update."""
    import torch

    folder = tmp_path_factory.mktemp("distance")
    settings = small(write_tiny(folder / "tiny"), "model.reply_tokens=16")
    trainee = load_trainee(settings.model)
    trainee.save(folder / "first")
    prompt, reply = trainee.prompt(CONTEXTS[0]), trainee.reply(GOOD)
    steps = torch.optim.SGD([p for p in trainee.model.parameters() if p.requires_grad], lr=1.0)
    ids = torch.tensor([prompt + reply])
    labels = torch.tensor([[-100] * len(prompt) + reply])
    trainee.model(input_ids=ids, labels=labels).loss.backward()
    steps.step()
    trainee.save(folder / "second")
    return settings, folder / "first", folder / "second"


def test_nothing_lies_between_an_adapter_and_itself(moved: tuple[Settings, Path, Path]) -> None:
    settings, first, second = moved
    same = measure(settings, second, second, CONTEXTS)
    assert (same.kl.mean, same.kl.se, same.agreement.mean) == (0.0, 0.0, 1.0)
    assert same.first == same.second and same.first.startswith("second:")
    # A new adapter is the base.
    assert measure(settings, None, first, CONTEXTS).kl.mean == pytest.approx(0.0, abs=1e-6)


def test_an_update_is_some_way_and_measured_again_the_same_way(moved: tuple[Settings, Path, Path]) -> None:
    settings, first, second = moved
    found = measure(settings, first, second, CONTEXTS)
    assert found.kl.mean > 1e-6 and found.kl.n == found.agreement.n == 3
    assert found.replies == 3 * REPLIES and found.replies <= found.tokens <= found.replies * 16
    assert measure(settings, first, second, CONTEXTS) == found
    assert measure(settings, second, first, CONTEXTS).kl.mean > 1e-6


def test_two_tokens_by_hand() -> None:
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        vocab_size=2,
        hidden_size=8,
        intermediate_size=8,
        num_hidden_layers=1,
        num_attention_heads=1,
        bos_token_id=None,
        eos_token_id=1,
    )
    with torch.random.fork_rng():
        torch.manual_seed(0)
        even, leaning = LlamaForCausalLM(config).eval(), LlamaForCausalLM(config).eval()
        torch.nn.init.zeros_(even.lm_head.weight)  # both tokens are equally likely
        torch.nn.init.normal_(leaning.lm_head.weight)
    prompt, reply = [0, 1, 1], [1, 0]
    with torch.inference_mode():
        rows = leaning(input_ids=torch.tensor([prompt + reply])).logits[0].tolist()
    expected: list[float] = []
    for a, b in rows[2:4]:  # after the prompt, and after the first token of the reply
        p = 1 / (1 + exp(b - a))
        expected.append(p * log(p / 0.5) + (1 - p) * log((1 - p) / 0.5))
    assert min(expected) > 1e-4
    assert token_kl(leaning, even, prompt, reply) == pytest.approx(expected, abs=1e-6)


def test_what_cannot_be_measured_is_refused(moved: tuple[Settings, Path, Path]) -> None:
    settings, first, second = moved
    with pytest.raises(UsageError, match="no context"):
        measure(settings, first, second, ())
    with pytest.raises(EngineError, match="is no LoRA adapter"):
        measure(settings, first.parent, second, CONTEXTS)


def test_the_command_says_it_in_three_lines_or_in_one_of_json(
    moved: tuple[Settings, Path, Path], tmp_path: Path
) -> None:
    settings, first, second = moved
    (tmp_path / "run.toml").write_text(as_toml(settings))
    save_contexts(tmp_path / "held.jsonl", CONTEXTS)
    asked = ("distance", "run.toml", "--from", str(first), "--to", str(second), "--contexts", "held.jsonl")
    told = train(tmp_path, *asked)
    assert told.code == 0, told.err
    assert told.out.splitlines()[0].startswith("from first:") and "on 3 contexts" in told.out
    assert "KL a token: " in told.out and "greedy replies that agree: " in told.out
    record = json.loads(train(tmp_path, *asked, "--json").out)
    assert record["kind"] == "distance" and record["kl"]["mean"] > 0 and record["kl"]["n"] == 3
    assert "--to is missing" in train(tmp_path, "distance").err
    assert "--contexts is missing" in train(tmp_path, "distance", "--to", str(second)).err
    (tmp_path / "held.jsonl").write_text("{}\n")
    assert train(tmp_path, *asked).code == 4
