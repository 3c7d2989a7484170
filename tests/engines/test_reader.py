"""The reader by rules: what its prompt says, and nothing else."""

import ast
import asyncio
import time
from pathlib import Path

import pytest

import hl
from hl.engines.base import EngineSpec, open_engine
from hl.engines.reader import UNKNOWN, read, summarise
from hl.errors import UsageError
from hl.types import ChatRequest, Message

TEXT = """\
Aa Bb: This novel is a work of Cc Dd. It appeared in 1920. It is set in Old Ee.
[Cc Dd]: She was a novelist known for patience. She was born in 1890 in Port Ff. She studied under Gg Hh.
- Ii Jj: He was a painter known for chess. He was born in 1880 in Old Ee. He studied under Gg Hh.
Kk Ll: This film is a work of Ii Jj. It appeared in 1910. It is set in Port Ff.
Old Ee: This town has 3 thousand inhabitants who grow flax. It lies in Mmia. The river Nn flows through it.
"""


def ask(question: str, text: str = TEXT) -> str:
    return read([Message("user", f"{text}\nGive only the answer.\nQuestion: {question}")])


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("In which town was the author of the novel Aa Bb born?", "Port Ff"),
        ("In which year was the author of the novel Aa Bb born?", "1890"),
        ("Under whom did the author of the novel Aa Bb study?", "Gg Hh"),
        ("In which country is the novel Aa Bb set?", "Mmia"),
        ("Which river flows through the birthplace of Ii Jj?", "Nn"),
        ("Who was born earlier, Cc Dd or Ii Jj?", "Ii Jj"),
        ("Which appeared first, the novel Aa Bb or the film Kk Ll?", "Kk Ll"),
        ("Did Cc Dd and Ii Jj study under the same teacher?", "yes"),
    ],
)
def test_it_joins_what_the_prompt_says(question: str, answer: str) -> None:
    assert ask(question) == answer
    # Without passages there is nothing to know: a guess where there are two choices, else nothing.
    assert ask(question, "") in (UNKNOWN, "no", "Cc Dd", "Aa Bb")


def test_a_missing_or_misplaced_passage_is_missed() -> None:
    without = TEXT.replace("[Cc Dd]:", "[Xx Yy]:")
    assert ask("In which town was the author of the novel Aa Bb born?", without) == UNKNOWN
    assert ask("How tall is Cc Dd?") == UNKNOWN
    assert read([]) == UNKNOWN


def test_a_summary_keeps_first_sentences_and_loses_the_rest() -> None:
    summary = read([Message("user", TEXT + "\nPlease summarise what helps.")])
    assert summary == summarise(TEXT)
    assert summary == ("Aa Bb: This novel is a work of Cc Dd.\nCc Dd: She was a novelist known for patience.")


def test_the_scripted_engine_opens_it_by_name() -> None:
    engine = open_engine(EngineSpec("scripted", model="reader"))
    reply = asyncio.run(engine.chat(ChatRequest((Message("user", TEXT + "Summarise."),), 5, 0.0)))
    assert engine.name == "scripted reader 1" and reply.finish_reason == "length"
    with pytest.raises(UsageError, match="needs a rules file"):
        open_engine(EngineSpec("scripted", model="smollm2"))


def test_it_holds_no_world_and_knows_no_harness() -> None:
    text = (Path(hl.__file__).parent / "engines" / "reader.py").read_text(encoding="utf-8")
    imported = {n.module for n in ast.walk(ast.parse(text)) if isinstance(n, ast.ImportFrom)}
    assert imported == {"collections.abc", "hl.types"}
    assert "<answer>" not in text


@pytest.mark.parametrize(
    "text",
    [
        "Who was born earlier, ",
        "Who was born earlier, a or ",
        "Did a and ",
        "In which town was the author of the novel ",
        "Xx: She was born in 1 in Tt.\nTt: The river Aa",
        "Aa " + " " * 20,
        "Aa: b\n",
    ],
)
def test_reading_takes_time_in_proportion_to_the_text(text: str) -> None:
    def seconds(times: int) -> float:
        prompt = text * times + "\nWhich river flows through the birthplace of Xx?"
        best = 9e9
        for _ in range(3):
            started = time.process_time()
            read([Message("user", prompt)])
            best = min(best, time.process_time() - started)
        return best

    # Eight times the text: 8 times the work where it is linear, 64 or 512 times where it is not.
    assert seconds(1600) < 32 * max(seconds(200), 1e-4)


def test_what_is_asked_about_is_a_name_not_a_page() -> None:
    assert ask(f"Who was born earlier, {'Cc' * 60} or Ii Jj?") == UNKNOWN
    assert ask("Who was born earlier, Cc Dd\nor Ii Jj?") == UNKNOWN
    long = "Cc " * 30
    assert ask(f"Who was born earlier, {long}or Ii Jj?") == long.strip()


def test_a_long_name_is_read_in_one_way() -> None:
    text = "Xx: She was born in 1900 in Tt.\nTt: The river " + "A" * 200 + " flows on."
    assert ask("Which river flows through the birthplace of Xx?", text) == UNKNOWN
