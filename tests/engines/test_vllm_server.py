"""`vllm serve` as we run it: arguments by hand, and the supervision of real processes that stand in for it."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import tomllib
import urllib.request
from dataclasses import replace
from pathlib import Path

import pytest

from hl.config.keys import KEYS
from hl.engines.adapters import read_adapter
from hl.engines.base import EngineSpec
from hl.engines.supervise import MAX_RESTARTS, Servers
from hl.engines.vllm import RANKS, engine_arguments, room_for_rank
from hl.engines.vllm_server import (
    ServerPlan,
    parse_adapters,
    render_config,
    server_arguments,
    server_environment,
    server_programs,
)
from hl.errors import EngineError, UsageError
from tests.engines.test_adapters import FIELDS, write

STAND_IN = Path(__file__).with_name("stand_in.py")


def free_port(count=1):
    """A port with free ones behind it."""
    for _ in range(100):
        with socket.socket() as first:
            first.bind(("127.0.0.1", 0))
            port = first.getsockname()[1]
        probes = [socket.socket() for _ in range(count)]
        try:
            for i, probe in enumerate(probes):
                probe.bind(("127.0.0.1", port + i))
        except OSError:
            continue
        finally:
            for probe in probes:
                probe.close()
        return port
    raise AssertionError("no free ports")


def started(log):
    return [json.loads(line) for line in log.read_text().splitlines()]


def alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.fixture
def log(tmp_path, monkeypatch):
    path = tmp_path / "started.jsonl"
    path.write_text("")
    monkeypatch.setenv("STAND_IN_LOG", str(path))
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    return path


# --- pure


def test_the_arguments_of_a_plain_server():
    assert server_arguments(ServerPlan("org/base"), "org/base", 0) == [
        *("serve", "org/base", "--served-model-name", "org/base", "--host", "127.0.0.1", "--port", "8000"),
        *("--tensor-parallel-size", "1", "--gpu-memory-utilization", "0.9", "--load-format", "safetensors"),
        *("--generation-config", "vllm", "--logprobs-mode", "processed_logprobs"),
    ]


def test_the_arguments_with_adapters_replicas_and_more(tmp_path):
    folder = write(tmp_path / "a b=c", FIELDS | {"r": 24})
    plan = ServerPlan(
        "smollm2",
        parse_adapters((f"sft={folder}",), str(tmp_path)),
        replicas=2,
        port=9000,
        gpus=2,
        gpu_memory=0.45,
        context_tokens=32_768,
        updates=True,
        rank=8,
        more=("--max-num-seqs", "64"),
    )
    arguments = server_arguments(plan, "/cache/smollm2-x", 1)
    assert arguments[:2] == ["serve", "/cache/smollm2-x"]
    for flag, value in (
        ("--served-model-name", "smollm2"),
        ("--port", "9001"),
        ("--tensor-parallel-size", "2"),
        ("--gpu-memory-utilization", "0.45"),
        ("--max-model-len", "32768"),
        ("--max-lora-rank", "32"),
        ("--max-loras", "3"),
        ("--lora-modules", json.dumps({"name": "sft", "path": str(folder.resolve())})),
        ("--max-num-seqs", "64"),
    ):
        assert arguments[arguments.index(flag) + 1] == value
    assert "--enable-lora" in arguments and "--trust-remote-code" not in arguments
    assert [server_environment(plan, i, "4,5,6,7,0")["CUDA_VISIBLE_DEVICES"] for i in (0, 1)] == [
        "4,5",
        "6,7",
    ]
    assert server_environment(plan, 1)["CUDA_VISIBLE_DEVICES"] == "2,3"
    assert server_environment(plan, 0)["VLLM_ALLOW_RUNTIME_LORA_UPDATING"] == "1"
    with pytest.raises(UsageError, match=r"need 4.*names 3"):
        server_environment(plan, 0, "0,1,2")


@pytest.mark.parametrize("texts", [("sft",), ("=x",), ("a b=x",), ("--x=y",), ("s=@", "s=@")])
def test_adapters_are_named_once_and_properly(tmp_path, texts):
    folder = str(write(tmp_path / "a"))
    with pytest.raises(UsageError, match="expected NAME=DIR"):
        parse_adapters(tuple(t.replace("@", folder) for t in texts), "org/base")
    with pytest.raises(EngineError, match="trained on org/base"):
        parse_adapters((f"sft={folder}",), "org/other")


def test_every_rank_has_room():
    assert [room_for_rank(r) for r in (1, 2, 8, 9, 32, 257, 512)] == [1, 8, 8, 16, 32, 320, 512]
    with pytest.raises(EngineError, match=f"up to rank {RANKS[-1]}"):
        room_for_rank(513)


def test_the_engine_in_process_takes_safetensors_only_and_runs_no_code(tmp_path):
    spec = EngineSpec("vllm", model="org/base", context_tokens=2048, concurrency=32)
    plain = engine_arguments(spec, None)
    assert (plain["load_format"], plain["trust_remote_code"]) == ("safetensors", False)
    assert (plain["max_model_len"], plain["max_num_seqs"], "enable_lora" in plain) == (2048, 32, False)
    adapter = read_adapter(write(tmp_path / "a", FIELDS | {"r": 20}))
    tuned = engine_arguments(replace(spec, deterministic=True), adapter)
    assert (tuned["enable_lora"], tuned["max_lora_rank"], tuned["max_num_seqs"]) == (True, 32, 1)
    assert tuned["enable_prefix_caching"] is False


def test_the_lines_for_hl_toml_are_configuration(tmp_path):
    folder = write(tmp_path / 'quo"te')
    plan = ServerPlan("org/base", parse_adapters((f"sft={folder}",), "org/base"))
    text = render_config(plan, ("http://127.0.0.1:8000/v1", "http://127.0.0.1:8001/v1"))
    data = tomllib.loads(text)
    assert data["solver"]["model"] == "org/base"
    assert data["proposer"] == {
        "engine": "openai",
        "model": "sft",
        "base_url": "http://127.0.0.1:8000/v1",
        "adapter": str(folder.resolve()),
    }
    assert all(f"{section}.{key}" in KEYS for section, keys in data.items() for key in keys)
    assert "# the same at http://127.0.0.1:8001/v1" in text


# --- real processes


def servers(tmp_path, plan, told):
    return Servers(server_programs(plan, str(STAND_IN), "org/base"), tmp_path / "logs", told.append)


def test_servers_get_ready_are_started_again_and_all_end(tmp_path, log):
    told = []
    adapters = parse_adapters((f"sft={write(tmp_path / 'sft')}",), "org/base")
    plan = ServerPlan("org/base", adapters, replicas=2, port=free_port(2))
    with servers(tmp_path, plan, told) as group:
        group.wait_ready(60)
        first = started(log)
        assert sorted(entry["env"]["CUDA_VISIBLE_DEVICES"] for entry in first) == ["0", "1"]
        with pytest.raises(OSError):
            urllib.request.urlopen(f"http://127.0.0.1:{plan.port + 1}/die", timeout=10)
        watcher = threading.Thread(target=group.watch, daemon=True)
        watcher.start()
        deadline = time.monotonic() + 60
        while len(started(log)) < 3 and time.monotonic() < deadline:
            time.sleep(0.1)
        group.wait_ready(60)
        again = started(log)[2]
        assert again["argv"][again["argv"].index("--port") + 1] == str(plan.port + 1)
        for one in group._running:  # the watcher must not start them again
            one.restarts = [time.monotonic()] * MAX_RESTARTS
    assert told and "started again" in told[0]
    assert not any(alive(entry["pid"]) for entry in started(log))


def test_a_server_that_ends_at_once_is_an_error_with_its_last_words(tmp_path, log):
    plan = ServerPlan("org/base", port=free_port(), more=("--die-at-start",))
    words = "ended with 1: ValueError: no GPU here"
    with pytest.raises(EngineError, match=words), servers(tmp_path, plan, []) as group:
        group.wait_ready(60)


def test_a_server_that_ends_again_and_again_is_given_up(tmp_path, log):
    plan = ServerPlan("org/base", port=free_port(), more=("--die-at-start",))
    told = []
    with pytest.raises(EngineError, match="no GPU here"), servers(tmp_path, plan, told) as group:
        group.watch()
    assert len(told) == MAX_RESTARTS and len(started(log)) == MAX_RESTARTS + 1


def test_a_used_port_is_refused_before_anything_starts(tmp_path, log):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(UsageError, match="cannot be used"):
            servers(tmp_path, ServerPlan("org/base", port=taken.getsockname()[1]), []).__enter__()
    assert started(log) == []


@pytest.mark.skipif(Path(sys.executable).with_name("vllm").exists(), reason="the real program would be taken")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_command_prints_the_configuration_and_stops_its_servers(tmp_path, log, number):
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "vllm").symlink_to(STAND_IN)
    folder = write(tmp_path / "sft")
    port = free_port()
    child = subprocess.Popen(
        [
            *(sys.executable, "-m", "hl.cli", "model", "serve", "org/base", "--adapter", f"sft={folder}"),
            *("--port", str(port), "--", "--max-num-seqs", "8"),
        ],
        env=os.environ | {"PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # A background job begins with Ctrl-C ignored, and so would its children.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    lines = []
    while len(lines) < 9:
        lines.append(child.stdout.readline())
        assert lines[-1], child.communicate()
    assert tomllib.loads("".join(lines))["proposer"]["model"] == "sft"
    child.send_signal(number)
    _, err = child.communicate(timeout=60)
    assert child.returncode == 130, err
    assert "ready; Ctrl-C stops" in err
    [entry] = started(log)
    assert entry["argv"][-2:] == ["--max-num-seqs", "8"] and not alive(entry["pid"])
