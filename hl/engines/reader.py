"""A reader by rules, for the scripted engine: it answers from what stands in its prompt, and from nothing else.

It stands for a small model that can look things up in a text but loses details when it retells one. It knows a few
forms of sentences (`She was born in 1921 in Port Leven.`) and of questions, reads lines `title: text` as what is said
of a title, and joins at most three statements. It holds no names, no passages and no answers, sees one conversation at
a time, and cannot tell which harness asks. Where the prompt does not settle a choice between two it takes the first.
"""

import re
from collections.abc import Callable, Mapping, Sequence

from hl.types import Message

VERSION = "reader 1"
UNKNOWN = "I do not know."
SUMMARY_SENTENCES = 2
"""What a summary keeps: the first sentence of as many passages."""

Facts = Mapping[str, str]
"""What is said of a title, by the title in lower case."""

# Whatever may stand in a prompt, reading takes time in proportion to its length: every repetition is bounded or
# can match in one way only.
_LINE = re.compile(
    r"^(?:[^\w\n]|\d){0,40}(?P<title>\w[^:\n]{1,100}?)[^\S\n]{0,4}[\])]?[^\S\n]{0,4}:[^\S\n]{1,4}(?P<text>\S.*)$",
    re.MULTILINE,
)
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+")
_NAME = r"([A-Z]\w+(?: [A-Z]\w+)*)"


def read(messages: Sequence[Message]) -> str:
    """The reader's reply to a conversation."""
    text = "\n".join(m.content for m in messages)
    last = messages[-1].content if messages else ""
    if re.search(r"\bsummar", last, re.IGNORECASE):
        return summarise(last)
    facts = read_facts(text)
    # The last question of the conversation is the one that is asked.
    asked = [(m.start(), answer, m) for pattern, answer in QUESTIONS for m in re.finditer(pattern, last)]
    if not asked:
        return UNKNOWN
    _, answer, match = max(asked, key=lambda found: found[0])
    return answer(facts, *match.groups()) or UNKNOWN


def read_facts(text: str) -> Facts:
    """What the lines of a text say of which title; what stands first counts."""
    facts: dict[str, list[str]] = {}
    for match in _LINE.finditer(text):
        facts.setdefault(match["title"].strip().casefold(), []).append(match["text"])
    return {title: " ".join(texts) for title, texts in facts.items()}


def summarise(prompt: str) -> str:
    """The first sentence of the first passages: what a small model keeps of a text."""
    kept = [
        f"{m['title'].strip()}: {_SENTENCE_END.split(m['text'], maxsplit=1)[0]}"
        for m in _LINE.finditer(prompt)
    ]
    return "\n".join(kept[:SUMMARY_SENTENCES]) or UNKNOWN


# --- statements ----------------------------------------------------------------------------------------------------


def _said(facts: Facts, title: str, pattern: str) -> str:
    found = re.search(pattern, facts.get(title.strip().casefold(), ""))
    return found[1].strip() if found else ""


def _maker(facts: Facts, work: str) -> str:
    return _said(facts, work, rf"is a work of {_NAME}")


def _birthplace(facts: Facts, person: str) -> str:
    return _said(facts, person, rf"was born in \d+ in {_NAME}")


def _birth_year(facts: Facts, person: str) -> str:
    return _said(facts, person, r"was born in (\d+)")


def _teacher(facts: Facts, person: str) -> str:
    return _said(facts, person, rf"studied under {_NAME}")


def _year(facts: Facts, work: str) -> str:
    return _said(facts, work, r"appeared in (\d+)")


def _country(facts: Facts, town: str) -> str:
    return _said(facts, town, rf"lies in {_NAME}")


def _river(facts: Facts, town: str) -> str:
    return _said(facts, town, rf"river {_NAME} flows through")


# --- questions -----------------------------------------------------------------------------------------------------


def _earlier(a: str, year_a: str, b: str, year_b: str) -> str:
    """The one with the smaller year; the first where a year is missing."""
    return b.strip() if year_a and year_b and int(year_b) < int(year_a) else a.strip()


def _makers_town(facts: Facts, work: str) -> str:
    return _birthplace(facts, _maker(facts, work))


def _makers_year(facts: Facts, work: str) -> str:
    return _birth_year(facts, _maker(facts, work))


def _makers_teacher(facts: Facts, work: str) -> str:
    return _teacher(facts, _maker(facts, work))


def _scene_country(facts: Facts, work: str) -> str:
    return _country(facts, _said(facts, work, rf"is set in {_NAME}"))


def _birthplace_river(facts: Facts, person: str) -> str:
    return _river(facts, _birthplace(facts, person))


def _elder(facts: Facts, a: str, b: str) -> str:
    return _earlier(a, _birth_year(facts, a), b, _birth_year(facts, b))


def _older(facts: Facts, a: str, b: str) -> str:
    return _earlier(a, _year(facts, a), b, _year(facts, b))


def _same_teacher(facts: Facts, a: str, b: str) -> str:
    mine, theirs = _teacher(facts, a), _teacher(facts, b)
    return "yes" if mine and mine == theirs else "no"


_ASKED = r"([^?\n]{1,100}?)"
"""What a question is about."""

QUESTIONS: Sequence[tuple[str, Callable[..., str]]] = (
    (rf"In which town was the \w+ of the \w+ {_ASKED} born\?", _makers_town),
    (rf"In which year was the \w+ of the \w+ {_ASKED} born\?", _makers_year),
    (rf"Under whom did the \w+ of the \w+ {_ASKED} study\?", _makers_teacher),
    (rf"In which country is the \w+ {_ASKED} set\?", _scene_country),
    (rf"Which river flows through the birthplace of {_ASKED}\?", _birthplace_river),
    (rf"Who was born earlier, {_ASKED} or {_ASKED}\?", _elder),
    (rf"Which appeared first, the \w+ {_ASKED} or the \w+ {_ASKED}\?", _older),
    (rf"Did {_ASKED} and {_ASKED} study under the same teacher\?", _same_teacher),
)
"""Forms of questions and how each is answered from facts."""
