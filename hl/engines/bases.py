"""Model folders: what the engines hf and vllm and the training load weights from. Imports no torch.

A base is named by a folder, by a known model (`hl model pull`), whose GGUF is dequantised once into the cache, or by
an id on the model hub, which transformers fetches into its own cache. Weights are safetensors or nothing: files that
have to be unpickled are refused, and no code of a model's is ever run.
"""

import contextlib
import hashlib
import json
import shutil
import tempfile
import time
from pathlib import Path

from hl.engines.base import EngineSpec
from hl.engines.weights import KNOWN, KnownModel, cache_dir, locate, sha256_of
from hl.errors import EngineError, UsageError

_FILES = ("config.json", "generation_config.json", "tokenizer*.json", "chat_template*", "*.safetensors")
"""What decides a reply."""
_STALE_S = 86_400.0


def model_folder(base: str) -> str:
    """The folder of a base as transformers and vLLM take it; a hub id is returned as it is.

    A known model is dequantised on the first call, which takes a second or two and half a gigabyte of disk.

    Args:
        base: A folder, a known model's name, or a hub id.

    Raises:
        EngineError: A known model is not on this machine, or a folder is no model with safetensors.
    """
    if base in KNOWN:
        return str(_dense_folder(KNOWN[base]))
    path = Path(base).expanduser()
    if path.is_dir():
        if not (path / "config.json").is_file():
            raise EngineError(
                f"{base} is no model folder: it has no config.json", hint="name the base, not its adapter"
            )
        if not any(path.glob("*.safetensors")):
            raise EngineError(f"{base} has no *.safetensors, and other weights are not loaded")
        return str(path.resolve())
    if path.is_absolute() or base.endswith(".gguf") or base.startswith((".", "~")) or base.count("/") > 1:
        raise EngineError(f"there is no model folder {base}", hint='model = "smollm2", a folder or a hub id')
    return base


def named_base(spec: EngineSpec) -> str:
    """The base that an engine's description names: a folder by `path`, anything else by `model`.

    Raises:
        UsageError: None is named, or `model` is a folder relative to who knows where.
        EngineError: There is no such base.
    """
    base = spec.path or spec.model
    if not base:
        raise UsageError(
            f"the {spec.engine} engine needs a model", hint='model = "smollm2", or path = FOLDER'
        )
    if not spec.path and base not in KNOWN and not Path(base).is_absolute() and Path(base).is_dir():
        raise UsageError(f"model = {base!r} is a folder", hint=f'path = "{base}", relative to the repository')
    if base in KNOWN:
        locate(base)  # dequantised when it is loaded
    else:
        model_folder(base)
    return base


def base_digest(base: str) -> str:
    """Hex sha256 over a base's configuration, tokenizer and weights; of a hub id, over id and commit.

    Reads a folder's weights once: some seconds for ten gigabytes.

    Raises:
        EngineError: As `model_folder`; or the hub has no such model.
    """
    if base in KNOWN:
        return KNOWN[base].dense_sha256
    folder = model_folder(base)
    if Path(folder).is_dir():
        return _folder_digest(Path(folder))
    from hl.engines.hf import hub_commit

    return hashlib.sha256(f"{base}@{hub_commit(base)}".encode()).hexdigest()


def architectures(base: str) -> tuple[str, ...]:
    """The classes that a base declares itself to be, in its `config.json`.

    Raises:
        EngineError: As `model_folder`; or the hub has no such model, or its configuration is none.
    """
    folder = model_folder(base)
    if Path(folder).is_dir():
        path = Path(folder) / "config.json"
    else:
        from hl.engines.hf import hub_config

        path = Path(hub_config(base))
    try:
        return tuple(str(name) for name in json.loads(path.read_bytes()).get("architectures") or ())
    except (OSError, ValueError, AttributeError, TypeError, RecursionError):
        raise EngineError(f"{path} is not the configuration of a model") from None


def _folder_digest(folder: Path) -> str:
    total = hashlib.sha256()
    for path in sorted({path for pattern in _FILES for path in folder.glob(pattern)}):
        total.update(f"{path.name} {sha256_of(path)}\n".encode())
    return total.hexdigest()


def _dense_folder(model: KnownModel) -> Path:
    """The dequantised weights of a known model, made where they are missing and checked where they lie."""
    from hl.engines.gguf import read_gguf, write_folder

    source = locate(model.name)
    target = cache_dir() / f"{model.name}-{model.dense_sha256[:12]}"
    if target.is_dir():
        if _folder_digest(target) == model.dense_sha256:
            return target
        shutil.rmtree(target, ignore_errors=True)
    if sha256_of(source) != model.gguf_sha256:
        raise EngineError(
            f"{source} is not the published {model.title}: its sha256 differs",
            hint=f"hl model pull {model.name}",
        )
    scratch = Path(tempfile.mkdtemp(prefix=f".{model.name}-", dir=target.parent))
    try:
        _sweep(target.parent, model.name)
        write_folder(read_gguf(source), scratch)
        made = _folder_digest(scratch)
        if made != model.dense_sha256:
            raise EngineError(f"{model.title} came out with the wrong sha256 {made}")
        scratch.chmod(0o755)
        with contextlib.suppress(OSError):  # somebody else was faster: the same files
            scratch.rename(target)
    except OSError as error:
        raise EngineError(f"cannot write {target}: {error.strerror or error}") from error
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return target


def _sweep(directory: Path, name: str) -> None:
    """Remove what killed conversions left behind; a day old, so that no running one is hit."""
    for scratch in directory.glob(f".{name}-*"):
        with contextlib.suppress(OSError):
            if time.time() - scratch.stat().st_mtime > _STALE_S:
                shutil.rmtree(scratch, ignore_errors=True)
