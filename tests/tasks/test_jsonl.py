"""The user's own questions: what is wrong with a file is said in one sentence, and graders do as they promise."""

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from hl.errors import HlError, SandboxError, UsageError
from hl.tasks.base import FunctionOutcome, open_grader, open_task
from hl.tasks.questions import load_sets, write_sets
from hl.types import Gold, Grade, Role, Status

SIZES = dict(zip(Role, (4, 8, 8, 16), strict=True))


def write(path: Path, rows: Sequence[Any]) -> Path:
    path.write_text(
        "".join((r if isinstance(r, str) else json.dumps(r)) + "\n" for r in rows), encoding="utf-8"
    )
    return path


def many(n: int = 40) -> list[dict[str, Any]]:
    return [{"question": f"What is {i} + {i}?", "answer": 2 * i, "level": i} for i in range(n)]


class Outcome:
    def __init__(self, value: Any = None, error: str = "", status: Status = Status.OK) -> None:
        self.value, self.error, self.status = value, error, status


async def unsandboxed(source: str, name: str, args: Sequence[Any]) -> FunctionOutcome:
    """Runs the source here: for sources that these tests wrote."""
    space: dict[str, Any] = {}
    try:
        exec(source, space)
        return Outcome(space[name](*args))
    except Exception as error:
        return Outcome(None, repr(error), Status.CRASH)


def grade(task: str, root: Path, row: dict[str, Any], answer: str) -> Grade:
    opened = open_task(task, root=root)
    write(root / "q.jsonl", [row, *many(20)])
    sets = opened.generate(SIZES).sets
    golds = [gold for role in Role for gold in sets.of(role).golds]
    gold = next(g for g in golds if json.loads(g.entry)["question"] == row["question"])
    return asyncio.run(opened.grader(unsandboxed).grade(gold, answer))


def test_sets_are_disjoint_repeatable_and_survive_the_disk(tmp_path: Path) -> None:
    write(tmp_path / "q.jsonl", many())
    task = open_task("jsonl:q.jsonl?grader=number", root=tmp_path)
    first = task.generate(SIZES)
    write(tmp_path / "q.jsonl", many()[::-1])
    assert task.generate(SIZES).sets == first.sets  # order of lines does not matter
    ids = [q.id for role in Role for q in first.sets.of(role).questions]
    assert len(ids) == len(set(ids)) == 36
    assert {role: len(first.sets.of(role).questions) for role in Role} == SIZES
    assert (first.exhausted, first.note, first.distinct) == (False, "", 40)
    write_sets(tmp_path / "questions", first, task.spec, task.identity_family)
    assert load_sets(tmp_path / "questions")[1] == first.sets


def test_a_short_file_gives_smaller_sets_and_says_so(tmp_path: Path) -> None:
    write(tmp_path / "q.jsonl", many(18))
    made = open_task("jsonl:q.jsonl", root=tmp_path).generate(SIZES)
    assert made.exhausted
    assert "18 distinct questions of 36 asked for" in made.note
    write(tmp_path / "q.jsonl", many(11))
    with pytest.raises(HlError, match="only 11 distinct questions; at least 12"):
        open_task("jsonl:q.jsonl", root=tmp_path).generate(SIZES)


def test_a_line_may_choose_its_set(tmp_path: Path) -> None:
    rows = [{**row, "set": "evaluation"} if row["level"] < 10 else row for row in many()]
    write(tmp_path / "q.jsonl", rows)
    sets = open_task("jsonl:q.jsonl", root=tmp_path).generate(SIZES).sets
    chosen = {f"What is {i} + {i}?" for i in range(10)}
    assert chosen <= {q.text for q in sets.evaluation.questions}
    for role in (Role.FEEDBACK, Role.SCORING, Role.CONFIRMATION):
        assert not chosen & {q.text for q in sets.of(role).questions}


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("{", "3 is not JSON"),
        ('"text"', "3 is not a JSON object"),
        ("[" * 100_000, "3 is not JSON"),
        ({"question": "q"}, "3 has no 'answer'"),
        ({"answer": "a"}, "3 has no 'question'"),
        ({"question": " \n", "answer": "a"}, "3: 'question' must be a text that is not empty"),
        ({"question": 7, "answer": "a"}, "3: 'question' must be a text"),
        ({"question": "q", "answer": None}, "3: 'answer' must be a text"),
        ({"question": "q", "answer": ""}, "3: 'answer' must be a text"),
        ({"question": "q", "answer": {"x": 1}}, "3: 'answer' must be a text"),
        ({"question": "q", "answer": []}, "3: 'answer' is an empty list"),
        ({"question": "q", "answer": "a", "set": "test"}, "3: 'set' must be one of feedback, scoring"),
        ({"question": "q", "answer": "a", "set": ["scoring"]}, "3: 'set' must be one of"),
        ({"question": "What  is 0 +\n0?", "answer": "a"}, "3 repeats the question of line 1"),
    ],
)
def test_a_malformed_line_is_named(tmp_path: Path, row: Any, message: str) -> None:
    write(tmp_path / "q.jsonl", [many()[0], "", row, *many()[1:]])
    with pytest.raises(UsageError) as caught:
        open_task("jsonl:q.jsonl", root=tmp_path).generate(SIZES)
    assert f"{tmp_path / 'q.jsonl'}:{message}" in caught.value.message
    assert "\n" not in caught.value.message


def test_files_that_are_not_questions_are_named(tmp_path: Path) -> None:
    for name, data in (("empty.jsonl", b"\n\n"), ("latin.jsonl", b'{"question": "\xe9"}\n')):
        (tmp_path / name).write_bytes(data)
    for name, message in (
        ("nowhere.jsonl", "cannot be read: No such file"),
        (".", "cannot be read: Is a directory"),
        ("empty.jsonl", "has no questions"),
        ("latin.jsonl", "latin.jsonl:1 is not JSON: it is not UTF-8 text"),
    ):
        with pytest.raises(UsageError, match=message):
            open_task(f"jsonl:{name}", root=tmp_path).generate(SIZES)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("jsonl:q.jsonl?grader=exat", "unknown grader 'exat'"),
        ("jsonl:q.jsonl?grader=python", "unknown grader 'python'"),
        ("jsonl:q.jsonl?grader=exact:x", "unknown grader"),
        ("jsonl:q.jsonl?colour=red", "no parameter 'colour'"),
        ("jsonl:q.jsonl?graders=f1", r"no parameter 'graders'; did you mean 'grader'\?"),
        ("jsonl:q.jsonl?grader", "not key=value"),
        ("jsonl:q.jsonl?grader=f1&grader=f1", "given twice"),
        ("jsonl:", "has no kind"),
        ("csv:q.csv", "unknown kind 'csv'"),
    ],
)
def test_a_wrong_name_is_refused(name: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        open_task(name)


def test_golds_must_suit_the_grader(tmp_path: Path) -> None:
    write(tmp_path / "q.jsonl", [{"question": "q", "answer": "seven"}])
    with pytest.raises(UsageError, match=r"q\.jsonl:1: 'answer' 'seven' is not a number"):
        open_task("jsonl:q.jsonl?grader=number", root=tmp_path).generate(SIZES)
    write(tmp_path / "q.jsonl", [{"question": "q", "answer": "(a"}])
    with pytest.raises(UsageError, match=r"q\.jsonl:1: 'answer' is not a regular expression"):
        open_task("jsonl:q.jsonl?grader=regex", root=tmp_path).generate(SIZES)


def test_any_of_several_answers_counts(tmp_path: Path) -> None:
    row = {"question": "q", "answer": ["United States", "USA"]}
    assert grade("jsonl:q.jsonl", tmp_path, row, " USA\n") == Grade(1.0, 1.0)
    assert grade("jsonl:q.jsonl", tmp_path, row, "US") == Grade(0.0, 0.0)
    assert grade("jsonl:q.jsonl?grader=f1", tmp_path, row, "united") == Grade(pytest.approx(2 / 3), 0.0)


def test_regex_must_match_all_of_the_answer(tmp_path: Path) -> None:
    row = {"question": "q", "answer": r"(a|b)\d+"}
    assert grade("jsonl:q.jsonl?grader=regex", tmp_path, row, "b12").strict == 1.0
    assert grade("jsonl:q.jsonl?grader=regex", tmp_path, row, "b12x").raw == 0.0


def test_a_python_grader_is_kept_with_the_sets(tmp_path: Path) -> None:
    (tmp_path / "tests").mkdir()
    write(tmp_path / "tests" / "q.jsonl", many())
    script = tmp_path / "tests" / "mine.py"
    script.write_text(
        "def grade(question, answer, gold):\n    return 0.5 * (answer == gold) + 0.5 * ('+' in question)\n"
    )
    task = open_task("jsonl:tests/q.jsonl?grader=python:mine.py", root=tmp_path)
    made = task.generate(SIZES)
    write_sets(tmp_path / "questions", made, task.spec, task.identity_family)
    script.unlink()
    manifest, sets = load_sets(tmp_path / "questions")
    grader = open_grader(manifest.spec, manifest.files, unsandboxed)
    gold = sets.scoring.golds[0]
    assert asyncio.run(grader.grade(gold, gold.answer or "")) == Grade(1.0, 1.0)
    assert asyncio.run(grader.grade(gold, "x")) == Grade(0.5, 0.0)
    with pytest.raises(UsageError, match=r"mine\.py cannot be read: No such file"):
        task.generate(SIZES)


@pytest.mark.parametrize(
    ("body", "error"),
    [
        ("raise ValueError('no')", "ValueError"),
        ("return 'A'", "returned str"),
        ("return None", "returned NoneType"),
    ],
)
def test_a_broken_python_grader_grades_zero_and_says_why(tmp_path: Path, body: str, error: str) -> None:
    (tmp_path / "g.py").write_text(f"def grade(question, answer, gold):\n    {body}\n")
    got = grade("jsonl:q.jsonl?grader=python:g.py", tmp_path, {"question": "q", "answer": "a"}, "a")
    assert (got.raw, got.strict) == (0.0, 0.0)
    assert error in got.error


def test_a_lost_grader_is_not_a_zero(tmp_path: Path) -> None:
    async def lost(source: str, name: str, args: Sequence[Any]) -> FunctionOutcome:
        return Outcome(None, "the process vanished", Status.LOST)

    write(tmp_path / "q.jsonl", many())
    grader = open_task("jsonl:q.jsonl?grader=regex", root=tmp_path).grader(lost)
    with pytest.raises(SandboxError, match="vanished"):
        asyncio.run(grader.grade(Gold("0", "a", "{}"), "a"))
