"""Model folders and what they are known by; the known model's weights are made once, and made again if broken."""

import hashlib
import shutil

import pytest

from hl.engines import weights
from hl.engines.base import EngineSpec
from hl.engines.bases import base_digest, model_folder, named_base
from hl.errors import EngineError, UsageError


def folder_at(path, weight=b"\0" * 8, config="{}"):
    path.mkdir()
    (path / "config.json").write_text(config)
    (path / "model.safetensors").write_bytes(weight)
    return str(path)


def test_the_digest_follows_the_content_and_not_the_place(tmp_path):
    one = base_digest(folder_at(tmp_path / "a"))
    assert base_digest(folder_at(tmp_path / "b")) == one
    assert base_digest(folder_at(tmp_path / "c", weight=b"\1" * 8)) != one
    assert base_digest(folder_at(tmp_path / "d", config='{"a": 1}')) != one
    (tmp_path / "a" / "notes.txt").write_text("nothing that decides")
    assert base_digest(str(tmp_path / "a")) == one


@pytest.mark.parametrize("name", ["/nowhere/model", "./model", "~/no/model", "some.gguf", "a/b/c"])
def test_what_is_no_folder_and_no_hub_id_is_refused(name):
    with pytest.raises(EngineError, match="there is no model folder"):
        model_folder(name)


def test_an_engine_names_a_folder_by_path_alone(tmp_path, monkeypatch):
    folder_at(tmp_path / "base")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match="is a folder") as caught:
        named_base(EngineSpec("hf", model="base"))
    assert caught.value.hint == 'path = "base", relative to the repository'
    for spec in (EngineSpec("hf", path="base"), EngineSpec("hf", model=str(tmp_path / "base"))):
        assert named_base(spec) == (spec.path or spec.model)
    with pytest.raises(UsageError, match="the vllm engine needs a model"):
        named_base(EngineSpec("vllm"))


def test_a_hub_id_is_passed_on():
    assert model_folder("org/model-1.5B") == "org/model-1.5B"


@pytest.mark.model
def test_the_known_model_is_made_once_checked_and_made_again_if_broken(tmp_path, monkeypatch):
    source = weights.locate("smollm2")
    monkeypatch.setenv("HL_CACHE_DIR", str(tmp_path))
    with pytest.raises(EngineError, match="not on this machine"):
        model_folder("smollm2")
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / source.name).symlink_to(source)
    folder = tmp_path / "models" / f"smollm2-{weights.KNOWN['smollm2'].dense_sha256[:12]}"
    assert model_folder("smollm2") == str(folder)
    made = (folder / "model.safetensors").stat()
    model_folder("smollm2")
    assert (folder / "model.safetensors").stat().st_ino == made.st_ino
    (folder / "config.json").write_text("{}")
    model_folder("smollm2")
    assert (
        hashlib.sha256((folder / "config.json").read_bytes()).hexdigest() != hashlib.sha256(b"{}").hexdigest()
    )
    assert sorted(p.name for p in (tmp_path / "models").iterdir()) == sorted([source.name, folder.name])
    shutil.rmtree(folder)  # half a gigabyte, and pytest keeps the folders of three runs
