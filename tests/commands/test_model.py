"""`hl model`, as typed. Nothing is downloaded here: what `pull` checks is tested with the engines."""

import json
import sys
from pathlib import Path

import pytest

from hl.engines.weights import KNOWN


def test_list_says_what_is_here(hl, tmp_path: Path) -> None:
    empty = {"HL_CACHE_DIR": str(tmp_path / "none")}
    done = hl("model", "list", env=empty)
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("smollm2  ") and "not here: hl model pull smollm2" in done.out
    line = json.loads(hl("model", "list", "--json", env=empty).out.splitlines()[0])
    assert (line["kind"], line["name"], line["path"]) == ("model", "smollm2", None)
    assert line["sha256"] == KNOWN["smollm2"].gguf_sha256


def test_pull_of_an_unknown_model(hl) -> None:
    done = hl("model", "pull", "smolm2")
    assert (done.code, done.out) == (2, "") and "smolm2" in done.err and "hint:" in done.err


def test_pull_from_a_file_that_is_not_the_model(hl, tmp_path: Path) -> None:
    (tmp_path / "fake.gguf").write_bytes(b"GGUF" + bytes(1000))
    cache = tmp_path / "cache"
    done = hl("model", "pull", "smollm2", "--from", "fake.gguf", env={"HL_CACHE_DIR": str(cache)})
    assert (done.code, done.out) == (7, "") and "fake.gguf" in done.err
    assert not list(cache.rglob("*.gguf"))


@pytest.mark.skipif(Path(sys.executable).with_name("vllm").exists(), reason="vLLM is installed")
def test_serving_without_vllm_says_what_to_install(hl) -> None:
    done = hl("model", "serve", "org/base", env={"PATH": "/nowhere"})
    assert (done.code, done.out) == (8, "")
    assert "hint: pip install 'harness-learning[vllm]'" in done.err
