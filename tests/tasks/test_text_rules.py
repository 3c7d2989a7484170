"""Rules that grade in process: the same as reasoning-gym's where they stand in for it, and bounded."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hl.tasks.graders import as_grade, readable
from hl.tasks.text_rules import choice, decimal, exact, f1, number, same_words, share, squad_words

_TEXTS = st.text(alphabet="01259.,-+eE naN/_ab\n", max_size=10)


@pytest.fixture(scope="module")
def theirs() -> Any:
    """reasoning-gym's own scorer by family, for stripped answers."""
    from reasoning_gym.factory import DATASETS

    def score(family: str, answer: str, gold: str) -> float:
        cls: Any = DATASETS[family][0]
        return float(object.__new__(cls).score_answer(answer, {"answer": gold}))

    return score


@given(answer=_TEXTS.map(str.strip), gold=_TEXTS.map(str.strip).filter(bool))
@example(answer="1,000.00", gold="1000")
@example(answer="the gold 12", gold="12")
@example(answer=",", gold=",")
def test_share_and_decimal_are_reasoning_gyms(
    theirs: Callable[[str, str, str], float], answer: str, gold: str
) -> None:
    assert share(answer, gold) == theirs("gcd", answer, gold)
    if gold.replace(",", "").strip():
        assert decimal(answer, gold) == (theirs("chain_sum", answer, gold) if answer else 0.0)
    else:  # a gold of commas alone is no number: theirs may divide by zero, ours refuses it
        assert decimal(answer, gold) == 0.0


def test_exact_ignores_only_white_space_at_the_ends() -> None:
    assert exact(" a b\n", "a b") == 1.0
    assert exact("a  b", "a b") == exact("A b", "a b") == 0.0


@pytest.mark.parametrize("answer", ["B", "(b)", "b.", " B) ", "**B**"])
def test_choice_takes_the_usual_spellings(answer: str) -> None:
    assert choice(answer, "B") == 1.0


@pytest.mark.parametrize("answer", ["C", "", "()", "BB", "A or B"])
def test_choice_takes_nothing_else(answer: str) -> None:
    assert choice(answer, "B") == 0.0
    assert choice("", "()") == 0.0


@pytest.mark.parametrize(
    "answer", ["1234.5", "1,234.50", "$1,234.5", "1234.5.", "2469/2", "1.2345e3", "1234.5004"]
)
def test_number_takes_the_usual_spellings(answer: str) -> None:
    assert number(answer, "1234.5") == 1.0


@pytest.mark.parametrize(
    "answer",
    [
        "1234.6",
        "nan",
        "inf",
        "9**9**9",
        "1e999999999",
        "9" * 60_000,
        "1/0",
        "1.5/2",
        "1 2",
        "",
        "١٢",
        "0x4d2",
        "1234.5 m",
    ],
)
def test_number_takes_nothing_else_and_never_hangs(answer: str) -> None:
    assert number(answer, "1234.5") == 0.0


def test_a_number_of_zero_has_no_tolerance() -> None:
    assert number("0.0", "0") == 1.0
    assert number("0.0000001", "0") == 0.0


def test_f1_follows_squad() -> None:
    assert f1("The  Eiffel tower!", "eiffel tower") == 1.0
    assert f1("tower", "eiffel tower") == pytest.approx(2 / 3)
    assert f1("tower tower tower", "eiffel tower") == pytest.approx(2 / 5)
    assert f1("the", "a") == 0.0
    assert f1("", "eiffel") == f1("paris", "eiffel") == 0.0


@given(_TEXTS, _TEXTS)
def test_every_rule_stays_in_range(answer: str, gold: str) -> None:
    for rule in (exact, share, decimal, choice, number, f1):
        assert 0.0 <= rule(answer, gold) <= 1.0


def test_grades_clip_floors_and_nan() -> None:
    assert [as_grade(x).raw for x in (-1, 0.01, 0.02, 0.05, 0.06, 1.5, float("nan"))] == [
        0,
        0,
        0,
        0,
        0.06,
        1,
        0,
    ]
    assert [as_grade(x).strict for x in (0.5, 0.9989, 0.999, 2)] == [0, 0, 1, 1]


def test_answers_longer_than_64_kib_are_not_read() -> None:
    assert readable("x" * 65_536) != ""
    assert readable("x" * 65_537) == readable("é" * 40_000) == ""
    assert readable(" \n x \t") == "x"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        # What normalize_answer of SQuAD's evaluate-v1.1.py gives, worked by its rules.
        ("The  New-York  times", ["newyork", "times"]),
        ("\u201cthe\u201d end", ["\u201c", "\u201d", "end"]),
        ("the\u2014end of a\u00b7b", ["\u2014end", "of", "\u00b7b"]),
        ("l\u2019a", ["l\u2019"]),
        ("A.B. an-other the_end", ["ab", "another", "theend"]),
        ("Th\u00e9 \u00c0 th\u00e9", ["th\u00e9", "\u00e0", "th\u00e9"]),
        ("the\u00a0Z\u00fcrich\u3000a", ["z\u00fcrich"]),
    ],
)
def test_words_are_squad_s(text: str, words: list[str]) -> None:
    assert squad_words(text) == words


@pytest.mark.parametrize("gold", ["The", "!!!", "a an", "."])
def test_a_gold_without_words_is_met_by_itself_alone(gold: str) -> None:
    assert same_words(f" {gold.upper()} ", gold) == f1(gold, gold) == 1.0
    for other in ("", "?", "an", "the end", "Lamp"):
        assert same_words(other, gold) == f1(other, gold) == 0.0


def test_an_answer_without_words_meets_nothing_else() -> None:
    assert same_words("the", "the end") == f1("!", "end") == 0.0
