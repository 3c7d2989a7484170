"""A training run on disk: what it is (`manifest.json`), and a line of figures an update (`metrics.jsonl`).

Promises: another run's directory is refused; after an interruption the figures go on from the checkpoint, without a
line twice. It knows nothing of models.
"""

import hashlib
import json
import math
import platform
import time
from collections.abc import Mapping, Sequence
from dataclasses import fields
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import hl
from hl.codec import encode
from hl.config.trust import write_file
from hl.errors import RepositoryError, UsageError
from training.settings import SECTIONS, Settings

MANIFEST = "manifest.json"
METRICS = "metrics.jsonl"
STORY = ("command", "started")
"""Keys that tell how a run began; another call of the same run may differ in them."""
PACKAGES = ("torch", "transformers", "trl", "peft", "accelerate", "datasets", "reasoning-gym")


def describe(kind: str, settings: Settings, command: str, **more: Any) -> dict[str, Any]:
    """What a run is: every setting, those at their default too, and the versions that carry it out.

    Args:
        kind: `sft` or `grpo`.
        settings: Of the run.
        command: As typed.
        more: Digests of data, processes and the like.
    """
    sections = {
        name: {f.name: encode(getattr(getattr(settings, name), f.name)) for f in fields(cls)}
        for name, cls in SECTIONS.items()
    }
    return {
        "schema": 1,
        "kind": kind,
        "command": command,
        "started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "versions": {"hl": hl.__version__, "python": platform.python_version(), **versions()},
        "settings": {**sections, "hl": list(settings.hl)},
        **more,
    }


def versions() -> dict[str, str]:
    """Of the packages that decide a run, those that are installed."""
    found: dict[str, str] = {}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def adapter_digest(adapter: Path) -> str:
    """Hex sha256 of the adapter that a run goes on from.

    Raises:
        UsageError: It is none.
    """
    total = hashlib.sha256()
    for name in ("adapter_config.json", "adapter_model.safetensors"):
        try:
            total.update((adapter / name).read_bytes())
        except OSError as error:
            raise UsageError(f"--adapter {adapter}: {name} cannot be read: {error.strerror}.") from None
    return total.hexdigest()


def begin(out: Path, manifest: Mapping[str, Any]) -> None:
    """Make the run's directory, or see that it holds this very run.

    Raises:
        UsageError: It holds another run.
        RepositoryError: It holds something else.
    """
    path = out / MANIFEST
    if path.exists():
        there = load_manifest(out)
        differs = _difference(there, json.loads(json.dumps(manifest)))
        if differs:
            raise UsageError(f"--out {out} holds another run: {differs}.", hint="choose another --out")
        return
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise RepositoryError(
            f"--out {out} is not empty and holds no training run.", hint="choose another --out"
        )
    out.mkdir(parents=True, exist_ok=True)
    write_file(path, json.dumps(manifest, indent=2, sort_keys=True, allow_nan=False) + "\n")


def load_manifest(out: Path) -> dict[str, Any]:
    """What the run in a directory is.

    Raises:
        RepositoryError: There is none, or it cannot be read.
    """
    path = out / MANIFEST
    try:
        data: Any = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise RepositoryError(f"{path} cannot be read: {error}.") from None
    if not isinstance(data, dict):
        raise RepositoryError(f"{path} is no manifest.")
    return data


def _difference(there: Any, here: Any, at: str = "") -> str:
    """The first place where two manifests differ, as `settings.grpo.contexts is 16, not 4`; empty if none."""
    if isinstance(there, dict) and isinstance(here, dict):
        names = sorted(there.keys() | here.keys())
        for name in names if at else [n for n in names if n not in STORY]:
            if found := _difference(there.get(name), here.get(name), f"{at}.{name}" if at else name):
                return found
        return ""
    return "" if there == here else f"{at} is {json.dumps(there)}, not {json.dumps(here)}"


def append_metrics(out: Path, line: Mapping[str, Any]) -> None:
    """One update's figures; what is not a number is null."""
    clean = {k: None if isinstance(v, float) and not math.isfinite(v) else v for k, v in line.items()}
    with (out / METRICS).open("a", encoding="utf-8") as file:
        file.write(json.dumps(clean, sort_keys=True, allow_nan=False) + "\n")


def load_metrics(out: Path) -> tuple[Mapping[str, Any], ...]:
    """All lines so far; a line that a kill cut off is left out."""
    found: list[Mapping[str, Any]] = []
    try:
        lines = (out / METRICS).read_bytes().splitlines()
    except FileNotFoundError:
        return ()
    for line in lines:
        try:
            data: Any = json.loads(line)
        except ValueError:
            continue
        if isinstance(data, dict) and isinstance(data.get("step"), int):
            found.append(data)
    return tuple(found)


def rewind_metrics(out: Path, step: int) -> None:
    """Forget the lines after an update: the run goes on from there."""
    kept: Sequence[Mapping[str, Any]] = [m for m in load_metrics(out) if m["step"] <= step]
    if (out / METRICS).exists():
        write_file(out / METRICS, "".join(json.dumps(m, sort_keys=True) + "\n" for m in kept))


def last_checkpoint(out: Path) -> tuple[Path | None, int]:
    """The newest checkpoint that was written to its end, and its update; (None, 0) if there is none."""
    found: list[tuple[int, Path]] = []
    for path in out.glob("checkpoint-*"):
        number = path.name.rpartition("-")[2]
        # The trainer writes its state last.
        if number.isdecimal() and (path / "trainer_state.json").is_file():
            found.append((int(number), path))
    step, path = max(found, default=(0, None))
    return path, step
