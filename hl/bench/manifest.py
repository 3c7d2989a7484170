"""What a bench run is, on disk: everything needed to repeat it, and to refuse to go on with another one.

`command` and `started` tell how it began and are not part of its identity; all the rest is.
"""

import json
import platform
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, cast

import hl
from hl.bench.plan import BenchTask, Plan
from hl.codec import encode
from hl.config import load_config
from hl.config.trust import write_file
from hl.errors import RepositoryError
from hl.new import load_seed
from hl.tasks.base import selected_grade

FILE = "manifest.json"
SCHEMA = 2
"""2: rows hold both grades."""
STORY = ("command", "started")
"""Keys that tell how a run began; another call of the same run may differ in them."""
PACKAGES = ("reasoning-gym", "xllamacpp", "openai")


def describe(
    plan: Plan, questions: Mapping[str, Mapping[str, str]], command: str, now: str
) -> dict[str, Any]:
    """The manifest of a run.

    Args:
        plan: What is run.
        questions: Task -> file -> sha256 of its question sets.
        command: As typed.
        now: UTC, ISO 8601.
    """
    config = load_config(None, plan.overrides)
    return {
        "schema": SCHEMA,
        "command": command,
        "started": now,
        "benchmark": plan.benchmark,
        "versions": {"hl": hl.__version__, "python": platform.python_version(), **_packages()},
        "tasks": [vars_of(task) for task in plan.tasks],
        "settings": encode_all(plan.settings),
        # The user's own harness may change between two calls.
        "starting_harness": load_seed(plan.settings.seed).digest,
        "solvers": {m.label: _model(plan, m.overrides, "solver") for m in plan.solvers},
        "proposers": {m.label: _model(plan, m.overrides, "proposer") for m in plan.proposers},
        "attempt": encode_all(config.attempt),
        "report": encode_all(config.report),
        "grade": selected_grade(plan.tasks[0].name, config.task.grade),
        "questions": {task: dict(files) for task, files in questions.items()},
    }


def _packages() -> dict[str, str]:
    found: dict[str, str] = {}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def _model(plan: Plan, own: tuple[str, ...], section: str) -> dict[str, Any]:
    config = load_config(None, [*plan.overrides, *own])
    return encode_all(config.proposer if section == "proposer" else config.solver)


def encode_all(value: Any) -> dict[str, Any]:
    """A dataclass with every field, those at their default too: a default of today may be another tomorrow."""
    from dataclasses import fields

    return {f.name: encode(getattr(value, f.name)) for f in fields(value)}


def vars_of(task: BenchTask) -> dict[str, str]:
    """A task as the manifest names it."""
    return {"name": task.name, "family": task.family, "cluster": task.cluster, "role": task.role}


def save(run: Path, manifest: Mapping[str, Any]) -> None:
    """Write it."""
    write_file(run / FILE, json.dumps(manifest, indent=2, sort_keys=True, allow_nan=False) + "\n")


def load(run: Path) -> dict[str, Any]:
    """The manifest of a run.

    Raises:
        RepositoryError: There is none here, or it cannot be read.
    """
    path = run / FILE
    hint = "hl bench show DIR, where DIR is the --out of an `hl bench` run"
    try:
        data: Any = json.loads(path.read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        there = "is not a directory of a bench run" if run.exists() else "is not there"
        raise RepositoryError(f"{run} {there}: it has no {FILE}.", hint=hint) from None
    except (OSError, ValueError, RecursionError) as error:
        raise RepositoryError(f"{path} cannot be read: {error}.", hint=hint) from None
    if not isinstance(data, dict) or cast("dict[str, Any]", data).get("schema") != SCHEMA:
        raise RepositoryError(
            f"{path} holds a run of another hl: its schema is not {SCHEMA}.",
            hint="run it again: another --out",
        )
    manifest = cast("dict[str, Any]", data)
    wanted = {
        "benchmark": str,
        "grade": str,
        "tasks": list,
        "settings": dict,
        "solvers": dict,
        "proposers": dict,
    }
    for key, kind in wanted.items():
        if not isinstance(manifest.get(key), kind):
            raise RepositoryError(f"{path} has no {key}.", hint=hint)
    return manifest


def difference(there: Mapping[str, Any], here: Mapping[str, Any]) -> str:
    """The first thing in which two runs differ, as `settings.evaluation is 32 there and 64 here`; empty if none.

    Questions are compared where both know them: they are made once, before the manifest.
    """
    return _difference(
        {k: v for k, v in there.items() if k not in (*STORY, "questions")},
        {k: v for k, v in here.items() if k not in (*STORY, "questions")},
        "",
    )


def _difference(there: Any, here: Any, where: str) -> str:
    if isinstance(there, Mapping) and isinstance(here, Mapping):
        a, b = cast("Mapping[str, Any]", there), cast("Mapping[str, Any]", here)
        for key in sorted({*a, *b}):
            found = _difference(a.get(key), b.get(key), f"{where}.{key}" if where else key)
            if found:
                return found
        return ""
    return "" if there == here else f"{where} is {_short(there)} there and {_short(here)} here"


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=True)
    return text if len(text) <= 80 else text[:77] + "..."
