"""Sampling and saving: replies that depend on nothing but their own seed, and adapters that name their base."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("peft")

from hl.engines.hf import reply_log_probs
from hl.errors import UsageError
from tests.loop import GOOD
from tests.training.test_sft import context, small
from tests.training.tiny import write_tiny
from training.models import Trainee, load_trainee, sample


@pytest.fixture(scope="module")
def trainee(tmp_path_factory: pytest.TempPathFactory) -> Trainee:
    return load_trainee(small(write_tiny(tmp_path_factory.mktemp("model") / "tiny")).model)


def test_a_reply_depends_on_its_own_seed_and_not_on_what_it_is_computed_with(trainee: Trainee) -> None:
    long, short = trainee.prompt(context("sums", 1)), trainee.prompt(context("sums", 1))[-20:]
    prompts, seeds = [long, short, long, short], [11, 12, 13, 12]
    options = {"max_tokens": 6, "temperature": 1.0}
    together = sample(trainee.model, trainee.tokenizer, prompts, seeds, **options)
    alone = [
        sample(trainee.model, trainee.tokenizer, [p], [s], **options)[0]
        for p, s in zip(prompts, seeds, strict=True)
    ]
    assert [s.ids for s in together] == [s.ids for s in alone]
    assert together[1].ids == together[3].ids and together[0].ids != together[2].ids
    for prompt, found in zip(prompts, together, strict=True):
        assert list(found.log_probs) == pytest.approx(
            reply_log_probs(trainee.model, prompt, found.ids), abs=1e-5
        )
        assert found.reply.completion_tokens == len(found.ids) and found.reply.prompt_tokens == len(prompt)
        ended = found.ids[-1] == trainee.tokenizer.eos_token_id
        assert found.reply.finish_reason == ("stop" if ended else "length")


def test_at_temperature_0_the_likeliest_token_is_taken_whatever_the_seed(trainee: Trainee) -> None:
    prompt = trainee.prompt(context("sums", 1))
    found = sample(trainee.model, trainee.tokenizer, [prompt] * 2, [1, 2], max_tokens=4, temperature=0.0)
    assert found[0].ids == found[1].ids


def test_samples_come_with_the_models_own_frequencies(trainee: Trainee) -> None:
    from math import exp

    prompt = trainee.prompt(context("sums", 1))
    found = sample(
        trainee.model, trainee.tokenizer, [prompt] * 2000, list(range(2000)), max_tokens=1, temperature=1.0
    )
    (word,) = trainee.reply(GOOD)[:1]
    (expected,) = map(exp, reply_log_probs(trainee.model, prompt, [word]))
    share = sum(s.ids[0] == word for s in found) / len(found)
    assert abs(share - expected) < 4 * (expected * (1 - expected) / len(found)) ** 0.5


def test_a_saved_adapter_names_its_base_and_replaces_the_one_before(trainee: Trainee, tmp_path: Path) -> None:
    # A known model's name, which nothing looks up on a hub.
    named = replace(trainee, settings=replace(trainee.settings, base="smollm2"))
    (tmp_path / "adapter").mkdir()
    (tmp_path / "adapter" / "old").touch()
    named.save(tmp_path / "adapter")
    config = json.loads((tmp_path / "adapter" / "adapter_config.json").read_text())
    assert (config["base_model_name_or_path"], config["r"]) == ("smollm2", 4)
    assert sorted(p.name for p in (tmp_path / "adapter").glob("*.safetensors")) == [
        "adapter_model.safetensors"
    ]
    assert not (tmp_path / "adapter" / "old").exists()


@pytest.mark.parametrize(
    ("targets", "told"),
    [("nothing", "matches no module"), ("lm_head", "matches the head"), ("(", "is not a regular expression")],
)
def test_targets_that_adapt_nothing_or_the_head_are_refused(
    trainee: Trainee, targets: str, told: str
) -> None:
    with pytest.raises(UsageError, match=told):
        load_trainee(replace(trainee.settings, lora_targets=targets))
