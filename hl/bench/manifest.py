"""What a bench run is, on disk: everything needed to repeat it, and to refuse to go on with another one.

`command` and `started` tell how it began and are not part of its identity; all the rest is.
"""

import json
import platform
import time
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, cast

import hl
from hl.bench.models import identify
from hl.bench.plan import BenchTask, Plan, cells
from hl.bench.repositories import Questions, cell_sets, digests
from hl.codec import encode
from hl.config import load_config
from hl.config.trust import write_file
from hl.errors import RepositoryError
from hl.new import load_seed
from hl.rules import evaluator_identity
from hl.sandbox.host import TIER_UNSAFE
from hl.tasks.base import selected_grade

FILE = "manifest.json"
SCHEMA = 2
"""2: rows hold both grades."""
PACKAGES = ("reasoning-gym", "xllamacpp", "openai", "bm25s")


def asked(plan: Plan, tier: str) -> dict[str, Any]:
    """What a run was asked to be; no question of it is read.

    Args:
        plan: What is run.
        tier: How harnesses are confined here.

    Raises:
        UsageError: A model is none, or its file no rules file.
        EngineError: Its weights are not here.
    """
    config = load_config(None, plan.overrides)
    return {
        "schema": SCHEMA,
        "benchmark": plan.benchmark,
        "versions": {"hl": hl.__version__, "python": platform.python_version(), **_packages()},
        "sandbox": tier,
        "tasks": [vars_of(task) for task in plan.tasks],
        "settings": encode_all(plan.settings),
        # The user's own harness may change between two calls.
        "starting_harness": load_seed(plan.settings.seed).digest,
        **models(plan),
        "attempt": encode_all(config.attempt),
        "report": encode_all(config.report),
        "grade": selected_grade(plan.tasks[0].name, config.task.grade),
    }


def derived(plan: Plan, made: Mapping[str, Questions], given: Mapping[str, Any]) -> dict[str, Any]:
    """What follows for a run.

    Args:
        plan: What is run.
        made: Task -> its question sets.
        given: What `asked` gave.
    """
    return {
        "questions": {task: dict(manifest.hashes) for task, (manifest, _) in made.items()},
        "cells": {cell.name: digests(cell_sets(made[cell.task.name][1], plan, cell)) for cell in cells(plan)},
        # As scores name it: what those of one run share.
        "evaluators": {
            task: {
                m.label: evaluator_identity(
                    load_config(None, [*plan.overrides, *m.overrides, f"task.name={task}"]),
                    given["solvers"][m.label]["identity"]["digest"],
                    manifest,
                    unsafe=given["sandbox"] == TIER_UNSAFE,
                )
                for m in plan.solvers
            }
            for task, (manifest, _) in made.items()
        },
    }


def models(plan: Plan) -> dict[str, dict[str, Any]]:
    """`solvers` and `proposers` of a manifest: every key of each, and the identity of its engine.

    Raises:
        UsageError: A model is none, or its file no rules file.
        EngineError: Its weights are not here.
    """
    return {
        f"{section}s": {m.label: _model(plan, m.overrides, section) for m in given}
        for section, given in (("solver", plan.solvers), ("proposer", plan.proposers))
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
    keys = encode_all(config.proposer if section == "proposer" else config.solver)
    return {**keys, "identity": identify(config, section)}


def encode_all(value: Any) -> dict[str, Any]:
    """A dataclass with every field, those at their default too: a default of today may be another tomorrow."""
    from dataclasses import fields

    return {f.name: encode(getattr(value, f.name)) for f in fields(value)}


def vars_of(task: BenchTask) -> dict[str, str]:
    """A task as the manifest names it."""
    return {"name": task.name, "family": task.family, "cluster": task.cluster, "role": task.role}


def save(run: Path, manifest: Mapping[str, Any], command: str) -> None:
    """Write it, with how the run began.

    Args:
        run: The directory.
        manifest: All that `asked` and `derived` gave.
        command: As typed.
    """
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    manifest = {**manifest, "command": command, "started": now}
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
    if manifest["grade"] not in ("raw", "strict"):
        raise RepositoryError(f"{path}: its grade is neither raw nor strict.", hint=hint)
    return manifest


def difference(there: Mapping[str, Any], here: Mapping[str, Any]) -> str:
    """The first thing of `here` that differs, as `settings.evaluation is 32 there and 64 here`; empty if none."""
    return _difference({key: there.get(key) for key in here}, here, "")


def _difference(there: Any, here: Any, where: str) -> str:
    if isinstance(there, list) and isinstance(here, list):
        a, b = cast("list[Any]", there), cast("list[Any]", here)
        there, here = dict(enumerate(a, start=1)), dict(enumerate(b, start=1))
    if isinstance(there, Mapping) and isinstance(here, Mapping):
        a, b = cast("Mapping[Any, Any]", there), cast("Mapping[Any, Any]", here)
        for key in dict.fromkeys([*b, *a]):
            found = _difference(a.get(key), b.get(key), f"{where}.{key}" if where else str(key))
            if found:
                return found
        return ""
    return "" if there == here else f"{where} is {_short(there)} there and {_short(here)} here"


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=True)
    return text if len(text) <= 80 else text[:77] + "..."
