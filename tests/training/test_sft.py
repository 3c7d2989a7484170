"""Supervised fine-tuning end to end on a tiny random model: what is learnt, what is left alone, and going on."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("trl")

from hl.engines.hf import load_model, reply_log_probs
from hl.errors import HlError, UsageError
from hl.tasks.families import FAMILIES as FAMILIES_OF_GYM
from hl.types import Harness, Report, Score, TaskSpec
from tests.loop import GOOD, IDLE, SEED
from tests.training.tiny import write_tiny
from training import record
from training.contexts import Context
from training.models import load_trainee
from training.settings import Settings, load_settings
from training.sft import IGNORED, Pair, Trained, held_out, tokenize, train

FAMILIES = ("sums", "names", "dates")


def context(family: str, number: int) -> Context:
    harness = Harness((("harness.py", SEED + f"\n\n# {number}\n"),))
    report = Report(
        TaskSpec(family, "Add."), harness.digest, Score(0, 0, 2), {}, {}, {}, (), (), 1.0, 9.0, 0.1, 0.0
    )
    return Context(family, family, family, "sft", harness, report, 1, number, "f", "s", Score(0, 0, 4))


ROWS: tuple[Pair, ...] = tuple((context(f, n), GOOD if n % 2 else IDLE) for f in FAMILIES for n in range(4))


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny(tmp_path_factory.mktemp("model") / "tiny")


def small(model: Path, *more: str) -> Settings:
    return load_settings(
        None,
        [
            f"model.base={model}",
            "model.lora_rank=4",
            "model.prompt=brief",
            "model.context_tokens=1024",
            "model.reply_tokens=32",
            "sft.epochs=2",
            "sft.batch=4",
            "sft.micro_batch=2",
            "sft.learning_rate=0.03",
            "sft.save_steps=2",
            "sft.validation=0.3",
            *more,
        ],
    )


@pytest.fixture(scope="module")
def whole(model: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Settings, Path, Trained]:
    settings, out = small(model), tmp_path_factory.mktemp("whole") / "run"
    return settings, out, train(settings, ROWS, out)


def weights(run: Path) -> bytes:
    return (run / "adapter" / "adapter_model.safetensors").read_bytes()


def test_a_run_learns_the_replies_and_says_how_it_was_made(whole: tuple[Settings, Path, Trained]) -> None:
    settings, run, trained = whole
    assert (trained.updates, trained.train, len(trained.validation), trained.too_long) == (4, 8, 1, ())
    assert trained.reply.most == 2 and trained.prompt.least > 20
    assert trained.last["loss"] < trained.first["loss"] and trained.last["eval_loss"] > 0
    tuned = load_trainee(replace(settings.model, adapter=str(trained.adapter)))
    base, _ = load_model(settings.model.base)
    before, after = 0.0, 0.0
    for found, reply in ROWS:
        ids = tuned.prompt(found), tuned.reply(reply)
        with tuned.model.disable_adapter():
            alone = reply_log_probs(tuned.model, *ids)
        assert alone == pytest.approx(reply_log_probs(base, *ids), abs=1e-6)
        before, after = before + sum(alone), after + sum(reply_log_probs(tuned.model, *ids))
    assert after > before + 1.0
    card = (trained.adapter / "README.md").read_text()
    assert "Supervised fine-tuning" in card and "| loss |" in card
    assert record.load_manifest(run)["data"] in card and record.load_manifest(run)["rows"] == 12
    assert (run / "curves.svg").exists()


def test_an_interrupted_run_comes_to_the_same_weights(
    whole: tuple[Settings, Path, Trained], tmp_path: Path
) -> None:
    settings, run, _ = whole

    def stop(what: str, done: int, total: int) -> None:
        if what == "updates" and done == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(settings, ROWS, tmp_path / "run", tell=stop)
    train(settings, ROWS, tmp_path / "run")
    assert weights(tmp_path / "run") == weights(run)

    def losses(out: Path) -> list[Mapping[str, Any]]:
        return [{k: line.get(k) for k in ("step", "loss", "eval_loss")} for line in record.load_metrics(out)]

    assert losses(tmp_path / "run") == losses(run)
    with pytest.raises(UsageError, match="holds another run: data is"):
        train(settings, ROWS[:-1], tmp_path / "run")


def test_the_loss_is_over_the_reply_alone_and_what_does_not_fit_is_named(model: Path) -> None:
    trainee = load_trainee(small(model, "model.reply_tokens=16").model)
    long = (context("sums", 9), "word " * 40)
    (example,), too_long = tokenize(trainee, [ROWS[0], long])
    assert too_long == (long[0].id,)
    labels = example.columns["labels"]
    learnt = [x for x in labels if x != IGNORED]
    assert learnt == trainee.reply(IDLE) and learnt[-1] == trainee.tokenizer.eos_token_id
    assert labels[: len(example.prompt)] == [IGNORED] * len(example.prompt)
    assert list(example.prompt) == trainee.prompt(ROWS[0][0])


def test_rows_of_which_none_fits_are_refused(model: Path, tmp_path: Path) -> None:
    with pytest.raises(HlError, match=r"none of 1 rows fits into 1,024 tokens"):
        train(small(model), [(context("sums", 1), "word " * 40)], tmp_path / "run")
    with pytest.raises(HlError, match="no row to learn from"):
        train(small(model), [], tmp_path / "none")


def test_rows_of_a_cluster_that_is_kept_for_tests_are_refused(model: Path, tmp_path: Path) -> None:
    found = context("gcd", 1)
    rows = [(replace(found, cluster=FAMILIES_OF_GYM["gcd"].cluster), GOOD)]
    with pytest.raises(UsageError, match=r"rows of gcd cannot be learnt: its cluster .* the track's unseen"):
        train(small(model, "tasks.track=tiny"), rows, tmp_path / "run")


@pytest.mark.parametrize(
    ("families", "share", "held"),
    [
        (["a"], 0.5, 0),
        (["a", "b"], 0.05, 1),
        (["a", "b", "c", "d"], 0.5, 2),
        (["a", "b"], 0.0, 0),
        (["a", "b"], 0.9, 1),
    ],
)
def test_validation_is_on_whole_families_and_leaves_one_to_learn(
    families: list[str], share: float, held: int
) -> None:
    assert len(held_out(families * 3, share, 0)) == held
