"""GRPO whose replies come from servers: a stand-in of vLLM in a process of its own, with a real model behind it."""

import contextlib
import itertools
import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("trl")

from hl.engines.adapters import adapter_shapes, read_adapter
from hl.engines.vllm_server import ServerPlan, server_arguments, server_environment
from hl.errors import EngineError, UsageError
from tests.training.kit import as_toml, small_run
from tests.training.tiny import write_tiny
from training import record
from training.contexts import load_contexts
from training.grpo import train
from training.models import load_trainee, shaken
from training.served import Served, attach, check_urls

SERVER = Path(__file__).with_name("stand_in.py")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny(tmp_path_factory.mktemp("model") / "tiny")


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


@contextlib.contextmanager
def serving(model: Path, log: Path, *modes: str) -> Iterator[list[str]]:
    """Replicas that answer; their addresses."""
    ports = [free_port() for _ in modes]
    env = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(Path.cwd())}
    running = [
        subprocess.Popen([sys.executable, str(SERVER), str(model), str(port), mode, str(log)], env=env)
        for port, mode in zip(ports, modes, strict=True)
    ]
    try:
        for port, one in zip(ports, running, strict=True):
            until = time.monotonic() + 60
            while True:
                with contextlib.suppress(OSError):
                    urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5).close()
                    break
                assert one.poll() is None and time.monotonic() < until
                time.sleep(0.1)
        yield [f"http://127.0.0.1:{port}" for port in ports]
    finally:
        for one in running:
            one.terminate()
            one.wait()


def requests(log: Path) -> list[Mapping[str, Any]]:
    return [json.loads(line) for line in log.read_text().splitlines()]


def listed(urls: list[str]) -> str:
    return "grpo.server=" + json.dumps(urls)


def test_replies_come_from_replicas_that_follow_every_update(model: Path, tmp_path: Path) -> None:
    told: list[str] = []
    with serving(model, tmp_path / "log", "ok", "ok") as urls:
        settings = small_run(tmp_path / "task", model, listed([urls[0], urls[1] + "/v1/"]))
        trained = train(settings, tmp_path / "run", tell=lambda what, done, total: told.append(what))
        for url in urls:  # nothing is left behind
            with urllib.request.urlopen(url + "/v1/models") as answer:
                assert [row["id"] for row in json.load(answer)["data"]] == ["base"]
    assert trained.updates == 2
    lines = record.load_metrics(tmp_path / "run")
    for line in lines:
        # TRL corrects by the servers' log-probabilities, and they are the trainer's.
        assert line["sampling/sampling_logp_difference/mean"] < 1e-4
        assert line["sampling/importance_sampling_ratio/mean"] == pytest.approx(1.0, abs=1e-3)
    assert lines[0]["reward"] != lines[1]["reward"] or lines[0]["entropy"] != lines[1]["entropy"]
    log = requests(tmp_path / "log")
    loads = [r["lora_name"] for r in log if r.get("path") == "/v1/load_lora_adapter"]
    for tag in ("start", "probe", "v0", "v1"):
        names = {name for name in loads if name.startswith(f"hl-policy-{tag}-")}
        assert len(names) == 1 and sum(name in names for name in loads) == 2, loads  # each replica is told
    replies = [r["model"] for r in log if r.get("path") == "/v1/completions"]
    assert sum("-v0-" in name for name in replies) == sum("-v1-" in name for name in replies) == 4 + 8
    assert sum(what.startswith("trainer and servers") for what in told) == 3
    assert not any(p.name.startswith("v0") for p in (tmp_path / "run/served").iterdir())


@pytest.mark.slow
def test_the_replies_are_those_of_one_process(model: Path, tmp_path: Path) -> None:
    import pyarrow.parquet

    with serving(model, tmp_path / "log", "ok") as urls:
        train(small_run(tmp_path / "task", model, listed(urls)), tmp_path / "served")
    train(small_run(tmp_path / "task", model), tmp_path / "local")
    served, local = (
        pyarrow.parquet.read_table(tmp_path / run / "completions/completions_00001.parquet").to_pylist()
        for run in ("served", "local")
    )
    for name in ("prompt", "completion", "outcome", "J", "advantage"):
        assert [row[name] for row in served] == [row[name] for row in local]


@pytest.mark.slow
def test_a_replica_that_fails_or_forgets_is_asked_again(model: Path, tmp_path: Path) -> None:
    with serving(model, tmp_path / "log", "flaky") as urls:
        assert train(small_run(tmp_path / "task", model, listed(urls)), tmp_path / "run").updates == 2
    loads = [r["lora_name"] for r in requests(tmp_path / "log") if r.get("path") == "/v1/load_lora_adapter"]
    assert len(loads) > len(set(loads))


@pytest.mark.parametrize(
    ("mode", "told"),
    [
        ("wrong", r"trainer and engine differ by 0\.2"),
        ("deaf", r"trainer and engine differ by"),
        ("stale", r"trainer and engine differ by"),
        ("fixed", r"loads no adapters: it runs without VLLM_ALLOW_RUNTIME_LORA_UPDATING=1"),
    ],
)
def test_a_server_that_serves_something_else_is_refused(
    model: Path, tmp_path: Path, mode: str, told: str
) -> None:
    with (
        serving(model, tmp_path / "log", mode) as urls,
        pytest.raises(EngineError, match=told) as refused,
    ):
        train(small_run(tmp_path / "task", model, listed(urls), "grpo.learning_rate=1.0"), tmp_path / "run")
    assert refused.value.exit_code == 7
    # `stale` shows only once the policy has moved.
    assert len(record.load_metrics(tmp_path / "run")) == (1 if mode == "stale" else 0)
    if mode == "fixed":
        assert refused.value.hint == f"hl model serve {model} --updates --rank 8"
        assert not (tmp_path / "run/contexts.jsonl").exists()  # nothing was spent


@pytest.mark.slow
def test_log_probabilities_are_those_at_the_temperature_of_sampling(model: Path, tmp_path: Path) -> None:
    with serving(model, tmp_path / "log", "ok", "raw") as (good, raw):
        more = ("grpo.temperature=0.3", "grpo.learning_rate=0.0001")
        train(small_run(tmp_path / "task", model, listed([good]), *more), tmp_path / "good")
        for line in record.load_metrics(tmp_path / "good"):
            assert line["sampling/sampling_logp_difference/mean"] < 1e-4
        with pytest.raises(EngineError, match="over the replies of an update trainer and servers differ"):
            train(small_run(tmp_path / "task2", model, listed([raw]), *more), tmp_path / "raw")
    assert record.load_metrics(tmp_path / "raw") == () and not list((tmp_path / "raw").glob("checkpoint-*"))


def test_a_server_that_is_down_stops_the_run_before_anything_is_spent(model: Path, tmp_path: Path) -> None:
    settings = small_run(tmp_path / "task", model, listed([f"http://127.0.0.1:{free_port()}"]))
    with pytest.raises(EngineError, match=r"the server at .* gave no answer"):
        train(settings, tmp_path / "run")
    assert not (tmp_path / "run/contexts.jsonl").exists()


@pytest.mark.slow
def test_chains_are_rolled_by_the_servers_too(tmp_path: Path) -> None:
    from tests.loop import GOOD

    good = write_tiny(tmp_path / "good", [GOOD, GOOD + "\n"])
    more = ("grpo.mode=multi", "grpo.phases=2", "grpo.chain_rounds=2", "grpo.generations=8")
    with serving(good, tmp_path / "log", "ok") as urls:
        train(small_run(tmp_path / "task", good, listed(urls), *more), tmp_path / "run")
    assert [c.round > 1 for c in load_contexts(tmp_path / "run/contexts.jsonl")].count(True) == 1
    replies = [r["model"] for r in requests(tmp_path / "log") if r.get("path") == "/v1/completions"]
    assert (
        sum("-v1-" in name for name in replies) > 4 + 16
    )  # those of the update and the check, and the chain's


@pytest.mark.slow
def test_two_processes_share_the_servers(model: Path, tmp_path: Path) -> None:
    with serving(model, tmp_path / "log", "ok") as urls:
        settings = small_run(tmp_path / "task", model)
        (tmp_path / "run.toml").write_text(as_toml(settings))
        done = subprocess.run(
            [
                *(sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "--standalone"),
                *("-m", "training.grpo", str(tmp_path / "run.toml"), str(tmp_path / "run")),
                listed(urls),
            ],
            env=os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(Path.cwd())},
            capture_output=True,
            text=True,
            timeout=200,
        )
        assert done.returncode == 0, done.stderr[-3000:]
    lines = record.load_metrics(tmp_path / "run")
    assert len(lines) == 2 and all(x["sampling/sampling_logp_difference/mean"] < 1e-4 for x in lines)
    loads = [r["lora_name"] for r in requests(tmp_path / "log") if r.get("path") == "/v1/load_lora_adapter"]
    assert len(loads) == len(set(loads)) == 4  # one process tells the servers


def test_trl_has_the_names_that_are_relied_on() -> None:
    import inspect

    from trl import GRPOTrainer

    source = inspect.getsource(GRPOTrainer._generate)
    assert "if self.use_vllm and self.state.global_step != self._last_loaded_step:" in source
    assert "self.vllm_generation.sync_weights()" in source
    assert "self._last_loaded_step = self.state.global_step" in source
    whole = inspect.getsource(GRPOTrainer)
    assert 'per_token_loss * inputs["importance_sampling_ratio"]' in whole
    # Whatever else reads the backend is of ways that are not taken here: made by TRL itself, or asked by it.
    uses = [line.strip() for line in whole.splitlines() if "self.vllm_generation" in line]
    assert [u for u in uses if not u.startswith(("self.vllm_generation = ", "logprobs_mode = "))] == [
        "self.vllm_generation.sync_weights()",
        "_, completion_ids, logprobs, _ = self.vllm_generation.generate(",
        "max_model_len = self.vllm_generation.llm.llm_engine.model_config.max_model_len",
        "self.vllm_generation.sync_weights()",
    ]

    class Bare:
        pass

    trainer, calls = Bare(), []
    attach(trainer, lambda: calls.append(1))
    trainer.vllm_generation.sync_weights()  # pyright: ignore[reportAttributeAccessIssue]
    assert calls == [1]


def test_a_random_adapter_is_put_on_and_taken_off(model: Path, tmp_path: Path) -> None:
    from hl.engines.hf import reply_log_probs

    trainee = load_trainee(small_run(tmp_path / "task", model).model)
    prompt, reply = [5, 6, 7], [6, 8, 1]
    before = reply_log_probs(trainee.model, prompt, reply)
    with shaken(trainee.model, [*prompt, *reply]):
        moved = reply_log_probs(trainee.model, prompt, reply)
        assert sum(abs(a - b) for a, b in zip(moved, before, strict=True)) / 3 > 0.03
    assert reply_log_probs(trainee.model, prompt, reply) == before


def test_servers_of_a_base_that_sees_get_the_names_that_they_know(model: Path, tmp_path: Path) -> None:
    import shutil

    from training.background import Background

    seeing = tmp_path / "seeing"
    shutil.copytree(model, seeing)
    config = json.loads((seeing / "config.json").read_text())
    (seeing / "config.json").write_text(
        json.dumps({**config, "architectures": ["TinyForConditionalGeneration"]})
    )
    trainee = load_trainee(small_run(tmp_path / "task", seeing).model)
    with Background() as background:
        Served(["http://127.0.0.1:9"], trainee, tmp_path, background)._save(tmp_path / "v1")
    names = adapter_shapes(read_adapter(tmp_path / "v1"))
    assert names and all(name.startswith("base_model.model.model.language_model.layers.") for name in names)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["seeing", "task", "v1"]


def test_addresses_and_the_flags_of_hl_model_serve() -> None:
    check_urls(["http://10.0.0.1:8000", "https://one.example/v1"])
    for wrong in ("10.0.0.1:8000", "http://me:secret@host", "ftp://host", ""):
        with pytest.raises(UsageError, match="is no address of a server"):
            check_urls([wrong])
    with pytest.raises(UsageError, match="each named once"):
        check_urls(["http://a:1", "http://a:1"])
    plan = ServerPlan("models/base", updates=True, rank=32)
    arguments = server_arguments(plan, "models/base", 0)
    pairs = dict(itertools.pairwise(arguments))
    assert pairs["--max-lora-rank"] == "32" and int(pairs["--max-loras"]) >= 2
    assert pairs["--logprobs-mode"] == "processed_logprobs" and pairs["--generation-config"] == "vllm"
    assert server_environment(plan, 0)["VLLM_ALLOW_RUNTIME_LORA_UPDATING"] == "1"
