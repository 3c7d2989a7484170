"""A data set on disk: rows, contexts, the constant reply, and a manifest that says how they were made."""

import hashlib
import json
import platform
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import hl
from hl.bench.manifest import encode_all
from hl.config.trust import write_file
from hl.errors import RepositoryError, UsageError
from hl.ledger import Ledger
from training import contexts, data
from training.contexts import save_contexts
from training.data import Row
from training.mining import Mined
from training.settings import Settings

FILE = "manifest.json"
SCHEMA = 1
CONSTANT = "constant.json"
"""A script for the scripted engine: the proposer that always writes the most frequent kept reply."""


def prepare(out: Path, settings: Settings) -> None:
    """See that a directory can hold this data set.

    Raises:
        UsageError: It holds one that was made with other settings.
        RepositoryError: It holds something else.
    """
    path = out / FILE
    if not path.exists():
        if out.exists() and (not out.is_dir() or any(p.name != "run" for p in out.iterdir())):
            raise RepositoryError(f"--out {out} is not empty and holds no rows.", hint="choose another --out")
        return
    try:
        there: Any = json.loads(path.read_bytes())
        made_with = there["settings"]
    except (OSError, ValueError, RecursionError, TypeError, KeyError) as error:
        raise RepositoryError(f"{path} cannot be read: {error}.", hint="choose another --out") from None
    for section, values in _identity(settings).items():
        if made_with.get(section) != values:
            raise UsageError(
                f"--out {out} holds rows made with other settings in [{section}].",
                hint="choose another --out",
            )


def _identity(settings: Settings) -> dict[str, Any]:
    """What decides the rows."""
    kept = {"tasks": encode_all(settings.tasks), "data": encode_all(settings.data), "hl": list(settings.hl)}
    kept["model"] = {"reply_tokens": settings.model.reply_tokens}
    return json.loads(json.dumps(kept))


def write(out: Path, settings: Settings, mined: Mined, command: str, history: Sequence[Path]) -> None:
    """Write rows, contexts, the constant reply and manifest; the same rows give the same bytes.

    Args:
        out: The directory.
        settings: Under which they were made.
        mined: What was found.
        command: As typed; it joins those before it.
        history: Ledgers that were read beside the teacher's run.
    """
    out.mkdir(parents=True, exist_ok=True)
    data.save_rows(out, mined.rows)
    save_contexts(out / contexts.FILE, mined.contexts.values())
    _write_constant(out / CONSTANT, mined.rows)
    commands = _commands(out)
    manifest = {
        "schema": SCHEMA,
        "settings": _identity(settings),
        "versions": {"hl": hl.__version__, "python": platform.python_version(), **_packages()},
        "commands": commands if command in commands else [*commands, command],
        "finished": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "history": [{"name": root.resolve().name, "head": Ledger.open(root).head} for root in history],
        "skipped": dict(sorted(mined.skipped.items())),
        "rows": len(mined.rows),
        "kept": sum(r.kept for r in mined.rows),
        "sha256": {name: _sha256(out / name) for name in (data.FILE, contexts.FILE, CONSTANT)},
    }
    write_file(out / FILE, json.dumps(manifest, indent=2, sort_keys=True, allow_nan=False) + "\n")


def constant_reply(rows: Iterable[Row]) -> str:
    """The reply that most kept rows have, the first met of several; empty where none was kept.

    A proposer that always writes it is what memorising one revision comes to, whatever the report says: training has to
    come to more.
    """
    common = Counter(row.reply for row in rows if row.kept).most_common(1)
    return common[0][0] if common else ""


def _write_constant(path: Path, rows: Iterable[Row]) -> None:
    script = {"rules": [{"when": "", "replies": [constant_reply(rows)]}]}
    write_file(path, json.dumps(script, indent=2) + "\n")


def _commands(out: Path) -> list[str]:
    try:
        found: Any = json.loads((out / FILE).read_bytes()).get("commands", [])
    except (OSError, ValueError, AttributeError):
        return []
    return [str(c) for c in found] if isinstance(found, list) else []


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _packages() -> dict[str, str]:
    try:
        return {"reasoning-gym": version("reasoning-gym")}
    except PackageNotFoundError:
        return {}
