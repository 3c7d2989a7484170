"""The catalog holds no task's solution: it shares no run of eight words with any reasoning-gym question."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import hl
from hl.tasks.families import FAMILIES
from hl.tasks.tiny import make_world

RUN = 8
GENERATE = """
import json, sys, warnings
warnings.simplefilter("ignore")
import reasoning_gym
for family in sys.argv[1:]:
    try:
        questions = reasoning_gym.create_dataset(family, seed=5, size=4)
        print(json.dumps([family, [questions[i]["question"] for i in range(4)]]))
    except Exception as error:
        print(json.dumps([family, [], str(error)]))
"""


def words(text: str) -> list[str]:
    return re.findall(r"[^\W_]+", text.lower())


def runs(text: str) -> set[tuple[str, ...]]:
    found = words(text)
    return {tuple(found[i : i + RUN]) for i in range(len(found) - RUN + 1)}


def constant_texts() -> Iterator[Path]:
    root = Path(hl.__file__).parent
    yield from sorted((root / "seeds").rglob("*.py"))
    yield from sorted((root / "proposer").rglob("*.py"))


@pytest.mark.slow
def test_no_run_of_eight_words_is_shared_with_a_question() -> None:
    done = subprocess.run(
        [sys.executable, "-P", "-c", GENERATE, *sorted(FAMILIES)],
        capture_output=True,
        text=True,
        check=True,
        timeout=900,
        env=os.environ | {"PYTHONHASHSEED": "0"},
    )
    rows = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("[")]
    made = {family: questions for family, questions, *_ in rows if questions}
    assert len(made) > 0.9 * len(FAMILIES), [row[0] for row in rows if not row[1]]
    theirs = {run: family for family, questions in made.items() for q in questions for run in runs(q)}
    assert len(theirs) > 10_000
    texts = list(constant_texts())
    assert len(texts) > 20
    for path in texts:
        shared = {
            " ".join(run): theirs[run] for run in runs(path.read_text(encoding="utf-8")) if run in theirs
        }
        assert not shared, (path, shared)


def test_the_measure_finds_a_shared_run() -> None:
    """The test above can fail: a copied question is found, whatever its punctuation."""
    question = "How many times does the letter 'e' appear in the text: 'dense'?"
    assert runs(question) & runs(f'DEMO = ("{question.upper()}", "print(2)")')
    assert not runs(question) & runs("How often is e in dense?")


def test_no_run_of_eight_words_is_shared_with_the_invented_world() -> None:
    world = make_world()
    texts = [question for _, question, _ in world.questions] + [text for _, text in world.passages]
    theirs = {run for text in texts for run in runs(text)}
    assert len(theirs) > 1000
    for path in constant_texts():
        assert not runs(path.read_text(encoding="utf-8")) & theirs, path
