"""Every family: its gold grades 1, hostile answers earn nothing and break nothing; sets are what they claim."""

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import pytest

from hl.errors import HlError, UsageError
from hl.tasks import confined
from hl.tasks.base import open_task
from hl.tasks.catalogue import HASH_SEEDED, catalogue
from hl.tasks.codec import decode, encode
from hl.tasks.families import FAMILIES, REASONING_GYM_VERSION
from hl.tasks.identity import question_id
from hl.tasks.questions import load_sets, write_sets
from hl.types import Gold, Grade, Role
from tests.tasks.conftest import EACH, HOSTILE, NAMES, gold_of, known_answer

Graded = dict[tuple[str, str], list[Grade]]
Entries = dict[str, list[dict[str, Any]]]
Drawn = dict[str, list[dict[str, Any]]]

PICKS = ("quantum_lock", "sokoban")
"""Families that pick moves out of any text, so that a right answer with words around it is right."""


def test_the_table_covers_the_pinned_library() -> None:
    from importlib.metadata import version

    from reasoning_gym.factory import DATASETS

    assert version("reasoning-gym") == REASONING_GYM_VERSION
    assert set(FAMILIES) == set(DATASETS)
    for family in FAMILIES.values():
        assert (family.status == "sound") == (not family.reason), family.name
        assert family.cluster and family.asks, family.name
    for name in confined.RULES:
        assert FAMILIES[name].status == "rescored", name


@pytest.mark.parametrize("family", NAMES)
def test_a_right_answer_grades_one(family: str, entries: Entries, graded: Graded) -> None:
    items, grades = entries[family], graded[family, "gold"]
    assert len(items) == EACH
    for item, grade in zip(items, grades, strict=True):
        assert item["id"] == question_id(f"reasoning-gym:{family}", item["question"])
        assert (item["answer"] is not None) == FAMILIES[family].gold_visible
        if known_answer(item) is not None:
            assert grade == Grade(1.0, 1.0)
        else:
            assert any("no answer text" in defect for defect in catalogue()[family].defects)


@pytest.mark.parametrize("family", NAMES)
def test_a_format_varied_twin_wants_the_asked_form(family: str, entries: Entries, graded: Graded) -> None:
    known = known_answer(entries[family][0]) is not None
    assert graded[family, "asked form"] == [Grade(float(known), float(known))]
    assert graded[family, "bare"] == [Grade(0.0, 0.0)]


@pytest.mark.parametrize("family", NAMES)
def test_hostile_answers_earn_nothing_and_break_nothing(
    family: str, graded: Graded, marker_file: Path
) -> None:
    for case in (*HOSTILE, *(() if family in PICKS else ("evaluates",))):
        for grade in graded[family, case]:
            assert grade.strict == 0.0, case
            if case in ("nonsense", "power", "code", "long"):
                assert grade.raw <= catalogue()[family].nonsense, case
    assert not marker_file.exists()


@pytest.mark.parametrize("family", NAMES)
def test_sets_are_disjoint_and_the_same_for_every_hash_seed(family: str, drawn: tuple[Drawn, Drawn]) -> None:
    one, two = (messages[family] for messages in drawn)
    assert one == two
    texts = [" ".join(message["item"]["question"].split()) for message in one]
    ids = [message["item"]["id"] for message in one]
    assert len(one) == EACH + 3 == len(set(texts)) == len(set(ids))
    assert ids == [question_id(f"reasoning-gym:{family}", text) for text in texts]
    assert {message["role"] for message in one} == set(Role)


@pytest.mark.parametrize("family", NAMES)
def test_entries_survive_json(family: str, entries: Entries) -> None:
    for item in entries[family]:
        entry = item["entry"]
        assert encode(decode(json.loads(json.dumps(entry)))) == entry


@pytest.mark.parametrize("family", ["arc_agi", "rearc"])
def test_tuples_are_what_makes_arc_grade(family: str, entries: Entries) -> None:
    item = entries[family][0]
    untagged = {**item["entry"], "metadata": {**decode(item["entry"])["metadata"]}}
    plain = json.loads(json.dumps(untagged))
    assert confined.score(family, "{}", json.dumps(encode(plain)), item["answer"]) < 0.1
    assert confined.score(family, "{}", json.dumps(item["entry"]), item["answer"]) == 1.0


# --- rules of ours -----------------------------------------------------------------------------------------------


def score(family: str, answer: str, gold: str = "", **metadata: Any) -> float:
    return confined.score(family, "{}", json.dumps(encode({"answer": gold, "metadata": metadata})), answer)


def test_number_games_check_the_numbers_and_the_value() -> None:
    for family, more in (("puzzle24", {}), ("countdown", {"target": 24})):
        given = {"numbers": [8, 5, 10, 6], **more}
        assert score(family, "10*(8 - 5) - 6", **given) == 1.0
        assert score(family, "6+6+6+6", **given) == 0.0
        assert score(family, "10*(8 - 5) - 6 + 0", **given) == 0.0
        assert score(family, "24", **given) == 0.0
    assert score("puzzle24", "5*5-1/10", numbers=[5, 5, 1, 10]) == 0.0


def test_integrals_must_be_carried_out() -> None:
    for family in ("simple_integration", "intermediate_integration"):
        problem = {"integrand": "2*x + cos(x)", "variable": "x"}
        assert score(family, "x**2 + sin(x) + C", **problem) == 1.0
        assert score(family, "sin(x) + x**2 - 7", **problem) == 1.0
        assert score(family, "Integral(2*x + cos(x), x) + C", **problem) == 0.0
        assert score(family, "x**2", **problem) == 0.0
        assert score(family, "x**2 + sin(x) + 9**9**9**9", **problem) == 0.0


def test_polynomials_must_be_multiplied_out() -> None:
    assert score("polynomial_multiplication", "x**2 + 2*x + 1", "x**2 + 2*x + 1") == 1.0
    assert score("polynomial_multiplication", "1 + x*2 + x**2", "x**2 + 2*x + 1") == 1.0
    assert score("polynomial_multiplication", "(x + 1)*(x + 1)", "x**2 + 2*x + 1") == 0.0
    assert score("polynomial_multiplication", "x.__class__", "x**2 + 2*x + 1") == 0.0


def test_roots_must_all_be_there() -> None:
    assert score("polynomial_equations", "0, -3.6250", "-3.625, 0.0") == 1.0
    assert score("polynomial_equations", "-3.625", "-3.625, 0.0") == 0.0
    assert score("polynomial_equations", "-3.6, 0", "-3.625, 0.0") == 0.0
    assert score("polynomial_equations", "", "") == 0.0


def test_python_lists_are_read_not_run() -> None:
    assert score("binary_matrix", "[[0, 1], [1, 0]]", "0 1\n1 0") == pytest.approx(0.1)
    assert score("spiral_matrix", "[1, 2]", "1 2") == pytest.approx(0.1)
    assert score("string_insertion", "['A', 'B']", "AB") == pytest.approx(0.1)
    assert score("string_insertion", "chr(65) + chr(66)", "AB") == 0.0
    assert score("n_queens", "[['Q']]", valid_answers=["Q"]) == pytest.approx(0.5)


def test_other_rules_close_what_paid_for_nothing() -> None:
    assert score("game_of_life_halting", "True", "False") == 0.0
    assert score("game_of_life_halting", "false", "False") == 1.0
    assert score("coin_flip", "0", "3.051757812e-05") == 0.0
    assert score("coin_flip", "1/32768", "3.051757812e-05") == 1.0
    assert score("coin_flip", "0.3125", "0.3125") == score("coin_flip", "5/16", "0.3125") == 1.0
    assert score("number_sorting", "[NaN, NaN]", "['1', '2']") == 0.0
    assert score("number_sorting", '["1", "2.0"]', "['1', '2']") == 1.0
    assert score("number_sorting", "[1, 3]", "['1', '2']") == 0.0
    assert score("complex_arithmetic", "nan", result=(1.0, 2.0)) == 0.0
    assert score("complex_arithmetic", "1 + 2i", result=(1.0, 2.0)) == 1.0
    assert score("prime_factorization", "12", "2 × 2 × 3") == 0.0
    assert score("prime_factorization", "3 × 2 × 2", "2 × 2 × 3") == 1.0
    assert score("prime_factorization", "two", "2 × 2 × 3") == 0.0
    assert score("gsm_symbolic", "There were 12 apples, 3 were eaten", "12") == 0.0
    assert score("gsm_symbolic", "$12.00", "12") == 1.0
    assert score("game_of_life", "[[0,0],[0,0]]", "[[0,0],[0,1]]") == 0.0


def test_conclusions_must_say_something_new() -> None:
    problem = {"premises": ["(P → Q)", "P"], "variables": ["P", "Q"]}
    assert score("propositional_logic", "Q", **problem) == 1.0
    assert score("propositional_logic", "(P ∨ ¬P)", **problem) == 0.0
    assert score("propositional_logic", "P", **problem) == 0.0
    assert score("propositional_logic", "¬Q", **problem) == 0.0
    assert score("propositional_logic", " ∨ ".join("abcdefghijklmnopqrstuvwxyz"), **problem) == 0.0
    assert score("propositional_logic", "P", premises=["Q", "¬Q"], variables=["P", "Q"]) == 0.0


# --- names and parameters ----------------------------------------------------------------------------------------


def test_unknown_and_refused_families_say_what_to_do() -> None:
    with pytest.raises(UsageError, match="no family 'chainsum'") as caught:
        open_task("reasoning-gym:chainsum")
    assert "chain_sum" in (caught.value.hint or "")
    with pytest.raises(UsageError, match="composite is refused: it only mixes"):
        open_task("reasoning-gym:composite")


SIZES = dict(zip(Role, (4, 6, 6, 10), strict=True))


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("max_nums=3", "no parameter 'max_nums'; did you mean 'max_numbers'?"),
        ("max_value=big", "parameter 'max_value' of gcd must be of type int, not 'big'"),
        ("min_numbers=9", "gcd does not take these parameters: max_numbers must be >= min_numbers"),
    ],
)
def test_a_wrong_parameter_is_named(query: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        open_task(f"reasoning-gym:gcd?{query}").generate(SIZES)
    assert message in caught.value.message


# --- sets --------------------------------------------------------------------------------------------------------


def test_sets_are_disjoint_repeatable_and_survive_the_disk(tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []
    task = open_task("reasoning-gym:gcd?max_value=50")
    made = task.generate(SIZES, lambda done, total: seen.append((done, total)))
    assert seen == [(i, 26) for i in range(1, 27)]
    assert {role: len(made.sets.of(role).questions) for role in Role} == SIZES
    ids = [q.id for role in Role for q in made.sets.of(role).questions]
    assert len(set(ids)) == 26
    assert not made.exhausted and made.note == ""
    write_sets(tmp_path, made, task.spec, task.identity_family)
    manifest, sets = load_sets(tmp_path)
    assert sets == made.sets
    assert dict(manifest.spec.params) == {"max_value": "50"}
    assert max(int(n) for q in sets.evaluation.questions for n in re.findall(r"\d+", q.text)) <= 50


def test_a_small_family_says_how_small() -> None:
    sizes = dict(zip(Role, (16, 32, 32, 64), strict=True))
    made = open_task("reasoning-gym:coin_flip?min_trials=3&max_trials=4").generate(sizes)
    assert made.exhausted
    assert made.distinct == 18  # (4 + 5) numbers of heads, exactly and at least
    assert made.drawn > 100
    assert "only 18 distinct questions of 144 asked for" in made.note
    with pytest.raises(HlError, match="only 4 distinct questions; at least 12"):
        open_task("reasoning-gym:coin_flip?min_trials=1&max_trials=1").generate(sizes)


def test_slow_families_suggest_how_much_to_make() -> None:
    assert open_task("reasoning-gym:gcd").suggested_pool_rounds(80) is None
    rounds = open_task("reasoning-gym:knight_swap").suggested_pool_rounds(80)
    assert rounds is not None and 1 <= rounds <= 5


@pytest.mark.slow
@pytest.mark.parametrize("family", ["isomorphic_strings", "word_ladder"])
def test_the_task_makes_what_the_generator_was_seen_to_make(
    family: str, drawn: tuple[Drawn, Drawn], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert family in HASH_SEEDED
    monkeypatch.setenv("PYTHONHASHSEED", "54321")
    made = open_task(f"reasoning-gym:{family}").generate(
        {role: EACH if role is Role.EVALUATION else 1 for role in Role}
    )
    for role in Role:
        items = [message["item"] for message in drawn[0][family] if message["role"] == role]
        assert made.sets.of(role).golds == tuple(gold_of(item) for item in items)


def test_a_grader_without_a_gold_or_an_answer_grades_zero() -> None:
    async def unreachable(source: str, name: str, args: Any) -> Any:
        raise AssertionError("nothing to run")

    grader = open_task("reasoning-gym:gcd").grader(unreachable)
    assert asyncio.run(grader.grade(Gold("0", None, "{}"), "4")) == Grade(0.0, 0.0)
    confined_grader = open_task("reasoning-gym:puzzle24").grader(unreachable)
    assert asyncio.run(confined_grader.grade(Gold("0", "4", "{}"), " \n")) == Grade(0.0, 0.0)


def test_the_source_that_is_sent_stands_alone(entries: Entries) -> None:
    from hl.tasks.graders import confined_source

    source = confined_source()
    assert "from hl" not in source and "import hl" not in source
    space: dict[str, Any] = {"__name__": "grader"}
    exec(compile(source, "grader.py", "exec"), space)
    item = entries["countdown"][0]
    assert space["score"]("countdown", "{}", gold_of(item).entry, item["answer"]) == 1.0


def test_programs_that_a_generator_runs_leave_nothing_in_the_users_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """codeio runs the library's example programs, some of which write files."""
    monkeypatch.chdir(tmp_path)
    open_task("reasoning-gym:codeio").generate(dict.fromkeys(Role, 60))
    assert list(tmp_path.iterdir()) == []
