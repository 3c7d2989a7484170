"""GRPO end to end: a tiny random model writes edits, candidates run in the real sandbox, a scripted model solves."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("trl")

from hl.engines.hf import load_model, reply_log_probs
from hl.errors import EngineError, StoppedEarly, UsageError
from hl.solver import RunLimits
from tests.loop import GOOD, IDLE, NONE
from tests.training.kit import as_toml, small_run
from tests.training.tiny import write_tiny
from training import record
from training.contexts import load_contexts
from training.grpo import Trained, reply_seed, train
from training.models import load_trainee
from training.settings import Settings

CLOCK = ("seconds", "step_time")
EARNS = {"scored": (1.0, 1.0), "crash": (1.0, 0.0), "not_found": (1.0, 0.0), "overlap": (1.0, 0.0)}
"""Outcome -> (parse, build); all others earn nothing here."""


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny(tmp_path_factory.mktemp("model") / "tiny")


@pytest.fixture(scope="module")
def whole(model: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Settings, Path, Trained]:
    """A run that nothing interrupts."""
    place = tmp_path_factory.mktemp("whole")
    settings = small_run(place / "task", model)
    return settings, place / "run", train(settings, place / "run")


def figures(run: Path) -> list[Mapping[str, Any]]:
    """Of every update, without what a clock said."""
    return [{k: v for k, v in line.items() if k not in CLOCK} for line in record.load_metrics(run)]


def completions(run: Path, update: int) -> list[Mapping[str, Any]]:
    import pyarrow.parquet

    return pyarrow.parquet.read_table(run / f"completions/completions_{update:05d}.parquet").to_pylist()


def weights(run: Path) -> bytes:
    return (run / "adapter" / "adapter_model.safetensors").read_bytes()


def test_two_updates_leave_figures_completions_an_adapter_and_its_story(
    whole: tuple[Settings, Path, Trained],
) -> None:
    _, run, trained = whole
    lines = record.load_metrics(run)
    assert [line["step"] for line in lines] == [1, 2] and trained.updates == 2
    for line in lines:
        for part in ("J", "parse", "build", "complete"):
            assert 0.0 <= line[f"rewards/{part}/mean"] <= 1.0
        assert line["kl"] >= 0  # told with beta = 0 too
        assert line["entropy"] > 0 and line["completions/mean_length"] >= 1
        assert set(line["seconds"]) == {"contexts", "generation", "reward", "update"}
        assert sum(v for k, v in line.items() if k.startswith("hl/outcome/")) == pytest.approx(1.0)
    assert lines[0]["kl"] == pytest.approx(0, abs=1e-6) and lines[1]["kl"] > 1e-5
    contexts = load_contexts(run / "contexts.jsonl")
    assert len(contexts) == 4 and len({c.scoring for c in contexts}) == 4  # a block for each
    for update in (1, 2):
        rows = completions(run, update)
        assert len(rows) == 8
        for row in rows:
            parse, build = EARNS.get(row["outcome"], (0.0, 0.0))
            assert (row["parse"], row["build"]) == (parse, build), row
            assert row["context"] == contexts[int(row["prompt"])].id
            assert row["J"] == (1.0 if row["outcome"] == "scored" and GOOD in row["completion"] else 0.0)
        for place in {row["prompt"] for row in rows}:
            group = [row for row in rows if row["prompt"] == place]
            assert len(group) == 4 and sum(row["advantage"] for row in group) == pytest.approx(0, abs=1e-3)
    story = (trained.adapter / "README.md").read_text()
    assert "GRPO on the execution score" in story and '"contexts_per_update": 2' in story
    assert (run / "curves.png").stat().st_size > 0 and (run / "curves.svg").stat().st_size > 0
    manifest = record.load_manifest(run)
    assert manifest["versions"]["trl"] and manifest["settings"]["grpo"]["generations"] == 4


def test_the_adapter_changes_what_the_model_says_and_the_base_stays_as_it_was(
    whole: tuple[Settings, Path, Trained],
) -> None:
    from dataclasses import replace

    settings, _, trained = whole
    base, _ = load_model(settings.model.base)
    tuned = load_trainee(replace(settings.model, adapter=str(trained.adapter)))
    prompt = tuned.prompt(load_contexts(trained.adapter.parent / "contexts.jsonl")[0])
    reply = tuned.reply(GOOD)
    alone = reply_log_probs(base, prompt, reply)
    with tuned.model.disable_adapter():
        assert reply_log_probs(tuned.model, prompt, reply) == pytest.approx(alone, abs=1e-6)
    assert (
        max(abs(a - b) for a, b in zip(reply_log_probs(tuned.model, prompt, reply), alone, strict=True))
        > 1e-4
    )


def test_an_interrupted_run_goes_on_as_if_it_had_not_been(
    whole: tuple[Settings, Path, Trained], model: Path, tmp_path: Path
) -> None:
    settings, run, _ = whole

    def stop(what: str, done: int, total: int) -> None:
        if what == "rewards" and (tmp_path / "run" / "checkpoint-1").exists():
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(settings, tmp_path / "run", tell=stop)
    assert len(record.load_metrics(tmp_path / "run")) == 1
    train(settings, tmp_path / "run")
    assert figures(tmp_path / "run") == figures(run)
    assert weights(tmp_path / "run") == weights(run)
    order = [[c.scoring for c in load_contexts(r / "contexts.jsonl")] for r in (run, tmp_path / "run")]
    assert order[0] == order[1]
    # Once more, and there is nothing left to do.
    train(settings, tmp_path / "run")
    assert weights(tmp_path / "run") == weights(run) and len(figures(tmp_path / "run")) == 2


def test_a_limit_stops_the_run_and_the_same_command_goes_on(model: Path, tmp_path: Path) -> None:
    settings = small_run(tmp_path / "task", write_tiny(tmp_path / "good", [GOOD, IDLE]))
    with pytest.raises(StoppedEarly):
        train(settings, tmp_path / "run", limits=RunLimits(calls=30))  # 24 measure the parents
    with pytest.raises(StoppedEarly):  # a limit is for the whole run
        train(settings, tmp_path / "run", limits=RunLimits(calls=30))
    assert train(settings, tmp_path / "run").updates == 2
    with pytest.raises(UsageError, match=r"grpo.generations is 4, not 8"):
        train(small_run(tmp_path / "task", tmp_path / "good", "grpo.generations=8"), tmp_path / "run")


def test_later_phases_of_a_multi_step_run_begin_at_states_that_the_policy_reached(tmp_path: Path) -> None:
    settings = small_run(
        tmp_path / "task",
        write_tiny(tmp_path / "good", [GOOD, GOOD + "\n"]),
        "grpo.mode=multi",
        "grpo.phases=2",
        "grpo.chain_rounds=2",
        "grpo.generations=8",
    )
    train(settings, tmp_path / "run")
    contexts = load_contexts(tmp_path / "run" / "contexts.jsonl")
    first, second = contexts[:2], contexts[2:]
    assert {c.round for c in first} == {1} and {c.parent.mean for c in first} == {0.0}
    reached = [c for c in second if c.round > 1]
    assert len(reached) == 1 and reached[0].parent.mean == 1.0
    assert "carefully" in reached[0].harness.text("harness.py")
    assert any(entry.accepted for entry in reached[0].report.history)
    assert len({c.scoring for c in contexts}) == 4
    assert figures(tmp_path / "run")[1]["hl/parent"] == 0.5
    # The chain is a repository that hl reads.
    (chain,) = (tmp_path / "run/chains/1").iterdir()
    log = subprocess.run(
        [sys.executable, "-m", "hl.cli", "log"], cwd=chain, capture_output=True, text=True, check=True
    )
    assert "accepted" in log.stdout


def test_rewards_that_do_not_come_stop_the_run_and_never_count_as_zero(tmp_path: Path) -> None:
    model = write_tiny(tmp_path / "good", [GOOD])
    settings = small_run(tmp_path / "task", model)
    script = tmp_path / "task" / "solver.json"
    rules = json.loads(script.read_text())
    rules["rules"].insert(0, {"when": {"last": "carefully"}, "fail": "no route to host"})
    script.write_text(json.dumps(rules))
    with pytest.raises(EngineError, match=r"replies of an update have no reward: .*no route to host"):
        train(settings, tmp_path / "run")
    assert record.load_metrics(tmp_path / "run") == ()
    # Told to bear it, training leaves those replies out.
    tolerant = small_run(tmp_path / "task2", model, "grpo.max_lost=1.0")
    (tmp_path / "task2" / "solver.json").write_text(json.dumps(rules))
    train(tolerant, tmp_path / "run2")
    lost = [
        row for update in (1, 2) for row in completions(tmp_path / "run2", update) if row["outcome"] == "lost"
    ]
    assert lost and all(row["advantage"] == 0 for row in lost)
    assert all(row["J"] is None or row["J"] != row["J"] for row in lost)


def test_groups_without_a_difference_move_nothing(tmp_path: Path) -> None:
    model = write_tiny(tmp_path / "idle", [NONE])
    settings = small_run(tmp_path / "task", model)
    train(settings, tmp_path / "run")
    assert [line["hl/zero_variance"] for line in record.load_metrics(tmp_path / "run")] == [1.0, 1.0]
    before = load_trainee(settings.model, seed=settings.grpo.seed)
    (tmp_path / "before").mkdir()
    before.save(tmp_path / "before" / "adapter")
    assert weights(tmp_path / "run") == weights(tmp_path / "before")


@pytest.mark.slow
def test_two_processes_give_the_rewards_of_one(whole: tuple[Settings, Path, Trained], tmp_path: Path) -> None:
    settings, run, _ = whole
    (tmp_path / "run.toml").write_text(as_toml(settings))
    done = subprocess.run(
        [
            *(sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "--standalone"),
            *("-m", "training.grpo", str(tmp_path / "run.toml"), str(tmp_path / "run")),
        ],
        env=os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(Path.cwd())},
        capture_output=True,
        text=True,
        timeout=150,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    names = ("prompt", "completion", "outcome", "candidate", "J", "parse", "build", "complete")
    for update in (1, 2):
        one, two = (
            [[row[n] for n in names] for row in completions(r, update)] for r in (run, tmp_path / "run")
        )
        assert sorted(map(str, one)) == sorted(map(str, two))
    assert [line["reward"] for line in figures(tmp_path / "run")] == pytest.approx(
        [line["reward"] for line in figures(run)]
    )


def test_a_reply_draws_from_a_seed_of_its_own_place() -> None:
    seeds = {reply_seed(s, place, i) for s in (0, 1) for place in range(20) for i in range(8)}
    assert len(seeds) == 2 * 20 * 8 and all(0 <= s < 2**63 for s in seeds)


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ("grpo.contexts=5", "is no multiple of grpo.contexts_per_update"),
        ("grpo.micro_batch=3", "no multiple of grpo.micro_batch x processes = 3"),
        ("tasks.rl=['gcd']", "is in tasks.rl"),
    ],
)
def test_settings_that_do_not_fit_together_are_refused_before_anything_is_made(
    model: Path, tmp_path: Path, more: str, told: str
) -> None:
    with pytest.raises(UsageError, match=told):
        train(small_run(tmp_path / "task", model, "tasks.track=tiny", more), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_model_without_a_chat_template_and_prompts_without_room_are_refused(
    model: Path, tmp_path: Path
) -> None:
    from hl.errors import HlError

    bare = write_tiny(tmp_path / "bare", template="")
    with pytest.raises(EngineError, match="has no chat template"):
        train(small_run(tmp_path / "task", bare), tmp_path / "run")
    tight = small_run(tmp_path / "task", model, "model.context_tokens=128", "model.reply_tokens=64")
    with pytest.raises(HlError, match="4 of 4 prompts have more than the 64 tokens"):
        train(tight, tmp_path / "tight")
