"""Question sets on disk: what is read is what was written, or one sentence says where it is not."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from hl.errors import HlError
from hl.tasks.base import Generated
from hl.tasks.identity import question_id
from hl.tasks.questions import load_sets, write_sets
from hl.tasks.sharing import as_sets
from hl.types import Gold, Question, Role, TaskSpec

SPEC = TaskSpec("reasoning-gym:gcd", "Gcds.", (("max_num", "9"),), "v1", gold_visible=False)
FAMILY = "reasoning-gym:gcd"


def generated(count: int = 3) -> Generated:
    def item(text: str) -> tuple[Question, Gold]:
        key = question_id(FAMILY, text)
        return Question(key, text), Gold(
            key, None if "2" in text else "4\u2028é", '{"a":{"$":"tuple","v":[1]}}'
        )

    items = {role: [item(f"{role} {i}\nsecond line \ud800") for i in range(count)] for role in Role}
    return Generated(
        as_sets(items), 12, 20, True, "small", (("grader.py", "def grade(q, a, g): return 1\n"),)
    )


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    write_sets(tmp_path / "questions", generated(), SPEC, FAMILY)
    return tmp_path / "questions"


def test_what_is_written_is_read(directory: Path) -> None:
    manifest, sets = load_sets(directory)
    assert sets == generated().sets
    assert manifest.spec == SPEC
    assert manifest.files == generated().files
    assert (manifest.distinct, manifest.drawn, manifest.exhausted, manifest.note) == (12, 20, True, "small")
    assert manifest.counts == dict.fromkeys(Role, 3)


def test_writing_twice_gives_the_same_bytes_and_leaves_nothing_else(directory: Path) -> None:
    before = {path.name: path.read_bytes() for path in directory.iterdir()}
    write_sets(directory, generated(), SPEC, FAMILY)
    assert {path.name: path.read_bytes() for path in directory.iterdir()} == before
    assert len(before) == 6


def lines(path: Path, change: Callable[[list[str]], None]) -> None:
    rows = path.read_text(encoding="utf-8").removesuffix("\n").split("\n")
    change(rows)
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")


def reworded(rows: list[str]) -> None:
    rows[1] = rows[1].replace("scoring 1", "scoring 9")


def answered(rows: list[str]) -> None:
    rows[1] = rows[1].replace('"answer":"4', '"answer":"5')


def broken(rows: list[str]) -> None:
    rows[2] = rows[2][:-5]


def listed(rows: list[str]) -> None:
    rows[0] = "[]"


def unfinished(rows: list[str]) -> None:
    row = json.loads(rows[0])
    del row["entry"]
    rows[0] = json.dumps(row)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (reworded, r"scoring\.jsonl:2 was changed"),
        (answered, r"scoring\.jsonl does not match its hash"),
        (broken, r"scoring\.jsonl:3 is not a question: broken JSON"),
        (listed, r"scoring\.jsonl:1 is not a question"),
        (unfinished, r"scoring\.jsonl:1 is not a question: no 'entry'"),
        (lambda rows: rows.append(rows[0]), r"scoring\.jsonl:4 repeats the question of .*scoring\.jsonl:1"),
        (lambda rows: rows.pop(), r"scoring\.jsonl does not match its hash"),
    ],
)
def test_a_changed_set_is_refused(directory: Path, change: Callable[[list[str]], None], message: str) -> None:
    lines(directory / "scoring.jsonl", change)
    with pytest.raises(HlError, match=message) as caught:
        load_sets(directory)
    assert "\n" not in caught.value.message


def test_overlapping_sets_are_refused(directory: Path) -> None:
    stolen = (directory / "feedback.jsonl").read_text(encoding="utf-8").split("\n")[0]
    lines(directory / "evaluation.jsonl", lambda rows: rows.append(stolen))
    with pytest.raises(HlError, match=r"evaluation\.jsonl:4 repeats the question of .*feedback\.jsonl:1"):
        load_sets(directory)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "is not a manifest"),
        ("[]", "is not a manifest"),
        ('{"schema": 99}', "has schema 99"),
        ('{"schema": 1}', "no 'task'"),
    ],
)
def test_a_broken_manifest_is_refused(directory: Path, text: str, message: str) -> None:
    (directory / "manifest.json").write_text(text)
    with pytest.raises(HlError, match=message):
        load_sets(directory)


def test_a_manifest_cannot_name_files_elsewhere(directory: Path) -> None:
    path = directory / "manifest.json"
    path.write_text(path.read_text().replace("grader.py", "../grader.py"))
    with pytest.raises(HlError, match="outside its directory"):
        load_sets(directory)


@pytest.mark.parametrize("name", ["manifest.json", "feedback.jsonl", "grader.py"])
def test_a_missing_file_is_named(directory: Path, name: str) -> None:
    (directory / name).unlink()
    with pytest.raises(HlError, match=rf"{name} is missing"):
        load_sets(directory)


def test_text_that_is_not_utf8_is_named(directory: Path) -> None:
    path = directory / "feedback.jsonl"
    path.write_bytes(path.read_bytes() + b"\xff\n")
    with pytest.raises(HlError, match=r"feedback\.jsonl:4 is not UTF-8"):
        load_sets(directory)
