"""Question sets on disk: `questions/{feedback,scoring,confirmation,evaluation}.jsonl` and `questions/manifest.json`.

Written once, atomically, the manifest last; read back only if hashes, identities and disjointness hold. The gold
answers are in these files: whoever runs harnesses must not show them the directory. Nothing here makes or grades.
"""

import hashlib
import json
import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from hl.errors import HlError, RepositoryError
from hl.tasks.base import Generated
from hl.tasks.formats import canonical_text
from hl.tasks.identity import question_id
from hl.types import Gold, Question, QuestionSet, QuestionSets, Role, TaskSpec

SCHEMA = 1
MANIFEST = "manifest.json"


@dataclass(frozen=True, slots=True)
class Manifest:
    """What `manifest.json` says."""

    spec: TaskSpec
    """The task that the questions belong to."""
    family: str
    """Under which the questions are identified."""
    distinct: int
    """Different questions that the family gave when the sets were made."""
    drawn: int
    """Questions drawn to find them."""
    exhausted: bool
    """Whether the family ran out before the sets were full."""
    note: str
    """What `Generated.note` said."""
    counts: Mapping[Role, int]
    """Questions by role."""
    hashes: Mapping[str, str]
    """Hex sha256 by file name."""
    files: tuple[tuple[str, str], ...] = ()
    """(name, text) of what grading and searching need beside the sets; part of the task's digest."""


def write_sets(directory: Path, generated: Generated, spec: TaskSpec, family: str) -> Manifest:
    """Write the sets; a directory that has a manifest afterwards has all of it.

    Args:
        directory: Usually `questions` in the repository; made if missing.
        generated: What `Task.generate` returned.
        spec: `Task.spec`.
        family: `Task.identity_family`.
    """
    directory.mkdir(parents=True, exist_ok=True)
    texts = {f"{role}.jsonl": render_set(generated.sets.of(role)) for role in Role}
    texts.update(generated.files)
    hashes = {name: _sha256(text) for name, text in texts.items()}
    counts = {role: len(generated.sets.of(role).questions) for role in Role}
    manifest = Manifest(
        spec,
        family,
        generated.distinct,
        generated.drawn,
        generated.exhausted,
        generated.note,
        counts,
        hashes,
        generated.files,
    )
    for name, text in texts.items():
        _write_atomically(directory / name, text)
    _write_atomically(directory / MANIFEST, render_manifest(manifest))
    return manifest


def render_set(questions: QuestionSet) -> str:
    """JSON lines, one question each."""
    lines: list[str] = []
    for question, gold in zip(questions.questions, questions.golds, strict=True):
        row = {
            "id": question.id,
            "question": question.text,
            "answer": gold.answer,
            "entry": json.loads(gold.entry),
        }
        line = json.dumps(row, ensure_ascii=False, separators=(",", ":"))
        try:
            line.encode()
        except UnicodeEncodeError:  # lone surrogates
            line = json.dumps(row, separators=(",", ":"))
        lines.append(line + "\n")
    return "".join(lines)


def render_manifest(manifest: Manifest) -> str:
    """The manifest's text, readable in a diff."""
    spec = manifest.spec
    value = {
        "schema": SCHEMA,
        "task": {
            "name": spec.name,
            "params": dict(spec.params),
            "version": spec.version,
            "description": spec.description,
            "has_corpus": spec.has_corpus,
            "gold_visible": spec.gold_visible,
        },
        "family": manifest.family,
        "counts": {str(role): n for role, n in manifest.counts.items()},
        "distinct": manifest.distinct,
        "drawn": manifest.drawn,
        "exhausted": manifest.exhausted,
        "note": manifest.note,
        "sha256": dict(manifest.hashes),
        "files": [name for name, _ in manifest.files],
    }
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


def load_manifest(directory: Path) -> Manifest:
    """Read the manifest and the grader's files, hashes checked.

    Raises:
        HlError: Missing, malformed, or a file that does not match its hash.
    """
    path = directory / MANIFEST
    try:
        value: Any = json.loads(_read(path))
        if value["schema"] != SCHEMA:
            raise HlError(
                f"{path} has schema {value['schema']!r}; this hl reads {SCHEMA}",
                hint="pip install -U harness-learning",
            )
        task = value["task"]
        spec = TaskSpec(
            name=str(task["name"]),
            description=str(task["description"]),
            params=tuple(sorted((str(k), str(v)) for k, v in task["params"].items())),
            version=str(task["version"]),
            has_corpus=bool(task["has_corpus"]),
            gold_visible=bool(task["gold_visible"]),
        )
        hashes = {str(k): str(v) for k, v in value["sha256"].items()}
        names = [str(name) for name in value["files"]]
        counts = {role: int(value["counts"][role]) for role in Role}
        fixed = (
            str(value["family"]),
            int(value["distinct"]),
            int(value["drawn"]),
            bool(value["exhausted"]),
            str(value["note"]),
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise RepositoryError(
            f"{path} is not a manifest of question sets: {_why(error)}", hint="git checkout -- questions"
        ) from None
    files: list[tuple[str, str]] = []
    for name in names:
        if Path(name).name != name or name not in hashes:
            raise RepositoryError(
                f"{path} names a file outside its directory: {name!r}", hint="git checkout -- questions"
            )
        files.append((name, _checked(directory / name, hashes[name])))
    family, distinct, drawn, exhausted, note = fixed
    return Manifest(spec, family, distinct, drawn, exhausted, note, counts, hashes, tuple(files))


def load_sets(directory: Path) -> tuple[Manifest, QuestionSets]:
    """Read all sets, checking hashes, identities and that no question sits in two places.

    Raises:
        HlError: One sentence that names the file and the line at fault.
    """
    manifest = load_manifest(directory)
    seen: dict[str, str] = {}
    sets: dict[Role, QuestionSet] = {}
    for role in Role:
        path = directory / f"{role}.jsonl"
        text = _read(path)
        questions = _parse_set(path, role, text, manifest.family, seen)
        if _sha256(text) != manifest.hashes.get(path.name):
            raise RepositoryError(
                f"{path} does not match its hash in {MANIFEST}", hint="git checkout -- questions"
            )
        sets[role] = questions
    return manifest, QuestionSets(
        *(sets[role] for role in (Role.FEEDBACK, Role.SCORING, Role.CONFIRMATION, Role.EVALUATION))
    )


def _parse_set(path: Path, role: Role, text: str, family: str, seen: dict[str, str]) -> QuestionSet:
    questions: list[Question] = []
    golds: list[Gold] = []
    for number, line in enumerate(text.removesuffix("\n").split("\n") if text else (), start=1):
        where = f"{path}:{number}"
        try:
            row = json.loads(line)
            key, question, answer, entry = row["id"], row["question"], row["answer"], row["entry"]
            if (
                not isinstance(question, str)
                or not isinstance(answer, str | None)
                or not isinstance(entry, dict)
            ):
                raise TypeError("a field has the wrong type")
            canonical = canonical_text(question, cast("dict[str, Any]", entry))
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise RepositoryError(
                f"{where} is not a question: {_why(error)}", hint="git checkout -- questions"
            ) from None
        if question_id(family, canonical) != key:
            raise RepositoryError(
                f"{where} was changed: its id {key!r} is not that of its text",
                hint="git checkout -- questions",
            )
        if key in seen:
            raise RepositoryError(
                f"{where} repeats the question of {seen[key]}", hint="git checkout -- questions"
            )
        seen[key] = where
        questions.append(Question(key, question))
        golds.append(Gold(key, answer, json.dumps(cast(object, entry), separators=(",", ":"))))
    return QuestionSet(role, tuple(questions), tuple(golds))


def _why(error: Exception) -> str:
    if isinstance(error, KeyError):
        return f"no {error.args[0]!r}"
    if isinstance(error, json.JSONDecodeError):
        return f"broken JSON ({error.msg} at column {error.colno})"
    return str(error) or type(error).__name__


def _checked(path: Path, sha256: str) -> str:
    text = _read(path)
    if _sha256(text) != sha256:
        raise RepositoryError(
            f"{path} does not match its hash in {MANIFEST}", hint="git checkout -- questions"
        )
    return text


def _read(path: Path) -> str:
    try:
        return path.read_bytes().decode()
    except FileNotFoundError:
        raise RepositoryError(f"{path} is missing", hint="git checkout -- questions") from None
    except UnicodeDecodeError as error:
        line = path.read_bytes()[: error.start].count(b"\n") + 1
        raise RepositoryError(f"{path}:{line} is not UTF-8 text", hint="git checkout -- questions") from None
    except OSError as error:
        raise RepositoryError(f"cannot read {path}: {error.strerror}") from None


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _write_atomically(path: Path, text: str) -> None:
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(text.encode())
            file.flush()
            os.fsync(file.fileno())
        Path(name).chmod(0o644)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
