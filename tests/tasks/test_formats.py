"""Format-varied questions: the same question, another form of the answer, and graders that follow."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hl.errors import UsageError
from hl.new import create
from hl.report import classify
from hl.tasks.base import open_grader, open_task
from hl.tasks.codec import encode
from hl.tasks.formats import FORMS, PARAMETER, canonical_gold, canonical_text, form_for, form_of, vary
from hl.tasks.graders import FormGrader, TextGrader
from hl.tasks.identity import question_id
from hl.tasks.number_words import LIMIT, read, spell
from hl.tasks.questions import load_sets
from hl.tasks.text_rules import exact
from hl.types import FailureClass, Gold, Grade, Question, Role, Status

SIZES = dict(zip(Role, (4, 6, 6, 20), strict=True))
RIGHT, WRONG = Grade(1.0, 1.0), Grade(0.0, 0.0)

GOLDS = {"upper": "two words", "lower": "ABC", "words": "-1204"}
"""A gold that the form fits, where `12` does not do."""


async def nothing_to_run(source: str, name: str, args: Any) -> Any:
    raise AssertionError("a host rule needs no sandbox")


def gold_in(form: str, answer: str) -> Gold:
    """A gold whose question asks for that form."""
    entry = {"answer": encode(answer), "metadata": {}, "answer_format": {"name": form, "asks": "x"}}
    return Gold("0" * 16, FORMS[form].render(answer), json.dumps(entry))


def grade(gold: Gold, answer: str) -> Grade:
    return asyncio.run(FormGrader(TextGrader(exact)).grade(gold, answer))


@pytest.mark.parametrize("name", FORMS)
def test_the_asked_form_is_right_and_any_other_is_wrong(name: str) -> None:
    bare = GOLDS.get(name, "12")
    gold = gold_in(name, bare)
    assert gold.answer is not None and FORMS[name].fits(bare)
    assert grade(gold, gold.answer) == RIGHT
    assert grade(gold, f"\n {gold.answer} ") == RIGHT
    assert grade(gold, bare) == WRONG
    for other in FORMS:
        if other != name and FORMS[other].fits(bare):
            assert grade(gold, FORMS[other].render(bare)) == WRONG, other
    assert grade(gold, f"The answer is {gold.answer}") == WRONG
    assert grade(gold, FORMS[name].render(GOLDS.get(name, "13") + "0")) == WRONG


HOSTILE = (
    "",
    "\x00\x1b[2J\u202e\ud800\r",
    "[" * 30_000,
    '{"answer":' * 5000,
    "9" * 60_000,
    "hundred " * 8000,
    "9**9**9**9",
    "__import__('os')",
    '{"answer": null}',
    '{"answer": "1", "x": 2}',
    "x" * 10_000_000,
)


@pytest.mark.parametrize("name", FORMS)
def test_hostile_answers_are_wrong(name: str) -> None:
    gold = gold_in(name, GOLDS.get(name, "12"))
    for answer in HOSTILE:
        assert grade(gold, answer) == WRONG, answer[:40]


@given(st.text(min_size=1, max_size=30), st.integers(0, 2**64 - 1))
def test_every_gold_has_a_form_that_gives_it_back(gold: str, number: int) -> None:
    if not gold.strip():
        return
    form = form_for(f"{number:016x}", gold)
    assert form.strip(form.render(gold.strip()).strip()) == gold.strip()
    assert form.strip(gold.strip()) is None


@given(st.integers(1 - LIMIT, LIMIT - 1))
def test_words_are_read_back(number: int) -> None:
    words = spell(number)
    assert read(words) == read(words.upper().replace("-", " ")) == number


def test_only_well_formed_words_are_numbers() -> None:
    assert read("One hundred and twenty-three") == 123
    for text in (
        "",
        "minus",
        "twelve hundred",
        "one two",
        "hundred",
        "one thousand thousand",
        "12",
        "twenty zero",
    ):
        assert read(text) is None, text


def test_no_family_has_a_parameter_of_this_name() -> None:
    from dataclasses import fields

    from reasoning_gym.factory import DATASETS

    assert not [
        name for name, (_, config) in DATASETS.items() if PARAMETER in {f.name for f in fields(config)}
    ]


def test_twins_share_their_ids_and_survive_the_disk(tmp_path: Path) -> None:
    plain = open_task("reasoning-gym:gcd").generate(SIZES).sets
    created = create(
        tmp_path / "agent",
        "reasoning-gym:gcd?answer_format=varied",
        overrides=[f"round.{role}={n}" for role, n in SIZES.items()] + ["round.pool_rounds=1"],
    )
    manifest, varied = load_sets(tmp_path / "agent" / "questions")
    assert dict(manifest.spec.params) == {"answer_format": "varied"}
    assert "hl formats 1" in manifest.spec.version and "any other form earns 0" in manifest.spec.description
    assert varied == created.generated.sets
    seen: set[str] = set()
    grader = open_grader(manifest.spec, manifest.files, nothing_to_run)
    for role in Role:
        mine, theirs = plain.of(role), varied.of(role)
        rows = zip(mine.questions, mine.golds, theirs.questions, theirs.golds, strict=True)
        for question, gold, twin, twin_gold in rows:
            assert twin.id == question.id == question_id("reasoning-gym:gcd", question.text)
            assert twin.text.startswith(question.text) and len(twin.text) > len(question.text)
            assert canonical_text(twin.text, json.loads(twin_gold.entry)) == question.text
            assert canonical_gold(twin_gold).answer == gold.answer
            assert asyncio.run(grader.grade(twin_gold, twin_gold.answer or "")) == RIGHT
            assert asyncio.run(grader.grade(twin_gold, gold.answer or "")) == WRONG
            seen.add(form_of(twin_gold).name)
    assert len(seen) > 5


def test_a_right_answer_in_the_wrong_form_is_told_from_a_wrong_one() -> None:
    text, gold = vary("0" * 15 + "1", "Add 5 and 7.", "12", {"answer": "12", "metadata": {}})

    async def failure(answer: str) -> FailureClass:
        async def accepts(line: str) -> bool:
            return (await FormGrader(TextGrader(exact)).grade(gold, line)).strict == 1.0

        return await classify(Status.OK, answer, (), Question(gold.id, text), gold, accepts)

    assert asyncio.run(failure("12")) is FailureClass.FORMAT
    assert asyncio.run(failure("13")) is FailureClass.WRONG


def test_an_unknown_choice_is_named() -> None:
    with pytest.raises(UsageError, match="must be canonical or varied, not 'json'") as caught:
        open_task("reasoning-gym:gcd?answer_format=json")
    assert "answer_format=varied" in (caught.value.hint or "")
    assert open_task("reasoning-gym:gcd?answer_format=canonical") == open_task("reasoning-gym:gcd")
