"""The invented world: the same everywhere, questions that two passages answer, and texts that need their titles."""

import hashlib
import os
import re
import subprocess
import sys
from collections import Counter

from hl.tasks.tiny import make_world, shuffled

WORLD = make_world()


def test_it_is_large_enough_and_nothing_repeats() -> None:
    assert 500 <= len(WORLD.passages) <= 2000
    assert len({title for title, _ in WORLD.passages}) == len(WORLD.passages)
    assert len({question for _, question, _ in WORLD.questions}) == len(WORLD.questions) > 1000
    kinds = Counter(kind for kind, _, _ in WORLD.questions)
    assert kinds["bridge"] > 900 and kinds["comparison"] > 600


def test_no_question_comes_twice_with_its_choices_swapped() -> None:
    for world in (WORLD, make_world("1"), make_world("2")):
        asked = Counter(tuple(sorted(re.findall(r"\w+", question))) for _, question, _ in world.questions)
        assert set(asked.values()) == {1}


def test_the_seed_decides_whatever_the_hash_seed() -> None:
    program = (
        "import hashlib; from hl.tasks.tiny import make_world; "
        "print(hashlib.sha256(repr(make_world()).encode()).hexdigest())"
    )
    mine = hashlib.sha256(repr(WORLD).encode()).hexdigest()
    for hash_seed in ("1", "2"):
        done = subprocess.run(
            [sys.executable, "-c", program],
            capture_output=True,
            text=True,
            check=True,
            env=os.environ | {"PYTHONHASHSEED": hash_seed},
        )
        assert done.stdout.strip() == mine
    assert make_world("1") != WORLD


def test_no_passage_names_its_own_subject() -> None:
    assert not [title for title, text in WORLD.passages if title in text]


def test_no_choice_is_right_more_often_for_where_it_stands() -> None:
    choices = [(q, a) for kind, q, a in WORLD.questions if kind == "comparison" and a not in ("yes", "no")]
    first = sum(q.index(a) < len(q) // 2 + 5 and q.split(", ")[1].find(a) < 15 for q, a in choices)
    assert 0.4 < first / len(choices) < 0.6
    same = Counter(a for _, _, a in WORLD.questions if a in ("yes", "no"))
    assert 0.7 < same["yes"] / same["no"] < 1.4


def test_shuffling_keeps_titles_and_texts_but_no_pair() -> None:
    other = shuffled(WORLD.passages)
    assert [t for t, _ in other] == [t for t, _ in WORLD.passages]
    assert sorted(x for _, x in other) == sorted(x for _, x in WORLD.passages)
    assert not any(a is b for (_, a), (_, b) in zip(other, WORLD.passages, strict=True))
