"""Format-varied questions: the same question, with another demand on how its answer is to be given. Pure.

A form is a sentence that is appended to the question, how a right answer looks in it, and how an answer is taken out of
it again. The question stays the same question: its id is that of the canonical text. Which form a question gets
follows from its id alone, among the forms that fit its gold answer: those that the bare gold does not already have,
and from which the gold comes back unchanged. Grading by the family's own rule is the graders' business.
"""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast

from hl.tasks.codec import decode
from hl.tasks.number_words import LIMIT, read, spell
from hl.types import Gold

PARAMETER = "answer_format"
"""The task parameter; no family has one of this name (a test holds it to that)."""
CANONICAL, VARIED = CHOICES = ("canonical", "varied")
FORMATS_VERSION = "1"
"""Raised whenever a form changes; part of the version of a varied task."""
KEY = "answer_format"
"""Where a gold's entry keeps the form: `{"name": ..., "asks": ...}`."""


@dataclass(frozen=True, slots=True)
class Form:
    """One way to give an answer."""

    name: str
    asks: str
    """The sentence that the question ends with."""
    render: Callable[[str], str]
    """A bare answer -> the answer as asked."""
    strip: Callable[[str], str | None]
    """The answer as asked, ends stripped -> the bare answer; None for any other form."""

    def fits(self, gold: str) -> bool:
        """Whether a question with this gold answer can ask for the form."""
        return self.strip(gold) is None and self.strip(self.render(gold)) == gold


def _between(name: str, before: str, after: str, asks: str) -> Form:
    def strip(text: str) -> str | None:
        if len(text) < len(before) + len(after) or not (text.startswith(before) and text.endswith(after)):
            return None
        return text[len(before) : len(text) - len(after)].strip()

    return Form(name, asks, lambda gold: f"{before}{gold}{after}", strip)


def _as_json(gold: str) -> str:
    return json.dumps({"answer": gold}, ensure_ascii=False)


def _from_json(text: str) -> str | None:
    try:
        value: Any = json.loads(text, parse_int=str, parse_float=str)  # a number keeps its digits
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict) or list(cast("dict[str, Any]", value)) != ["answer"]:
        return None
    answer: Any = value["answer"]
    return answer.strip() if isinstance(answer, str) else None


def _as_words(gold: str) -> str:
    return spell(int(gold)) if _is_integer(gold) else gold


def _from_words(text: str) -> str | None:
    number = read(text)
    return None if number is None else str(number)


def _is_integer(text: str) -> bool:
    return bool(re.fullmatch(r"-?(0|[1-9]\d{0,11})", text)) and abs(int(text)) < LIMIT


def _from_upper(text: str) -> str | None:
    return text.lower() if text == text.upper() != text.lower() else None


def _from_lower(text: str) -> str | None:
    return text.upper() if text == text.lower() != text.upper() else None


_BARE = "where ANSWER is the answer as asked for above, with nothing before or after it."

_FORMS = (
    _between("boxed", "\\boxed{", "}", f"Give it as \\boxed{{ANSWER}}, {_BARE}"),
    _between("line", "Answer:", "", f"Give it as `Answer: ANSWER`, {_BARE}"),
    _between("hashes", "####", "", f"Give it as `#### ANSWER`, {_BARE}"),
    _between("brackets", "[", "]", f"Give it in square brackets, as [ANSWER], {_BARE}"),
    _between("tags", "<final>", "</final>", f"Give it as <final>ANSWER</final>, {_BARE}"),
    _between("fence", "```\n", "\n```", f"Give it in a code block, as\n```\nANSWER\n```\n{_BARE}"),
    _between("bold", "**", "**", f"Give it in bold, as **ANSWER**, {_BARE}"),
    _between("quotes", '"', '"', f'Give it in double quotation marks, as "ANSWER", {_BARE}'),
    Form("json", f'Give it as a JSON object, {{"answer": "ANSWER"}}, {_BARE}', _as_json, _from_json),
    Form(
        "words",
        "Give the number in English words, such as minus one hundred twenty-three, and nothing else.",
        _as_words,
        _from_words,
    ),
    Form("upper", "Give the answer in upper case letters only.", str.upper, _from_upper),
    Form("lower", "Give the answer in lower case letters only.", str.lower, _from_lower),
)

FORMS: Mapping[str, Form] = {form.name: form for form in _FORMS}
"""By name."""


def form_for(key: str, gold: str | None) -> Form:
    """The form that a question asks for.

    Args:
        key: The question's id.
        gold: Its bare gold answer; None where the family has none, then any form around an answer can be asked for.
    """
    if gold is None:
        forms = [f for f in _FORMS if f.name not in ("words", "upper", "lower")]
    else:
        forms = [f for f in _FORMS if f.fits(gold.strip())]
    return forms[int(key, 16) % len(forms)]


def vary(key: str, text: str, answer: str | None, entry: Mapping[str, Any]) -> tuple[str, Gold]:
    """A canonical question with its gold -> the text that asks for a form, and the gold in that form.

    Args:
        key: The question's id.
        text: Canonical.
        answer: Bare gold answer, or None.
        entry: For the grader; its `answer` stays bare.
    """
    form = form_for(key, answer)
    asks = f"\n\n{form.asks}"
    kept = {**entry, KEY: {"name": form.name, "asks": asks}}
    gold = None if answer is None else form.render(answer.strip())
    return text + asks, Gold(key, gold, json.dumps(kept, separators=(",", ":")))


def canonical_text(text: str, entry: Mapping[str, Any]) -> str:
    """The question without the sentence that asks for a form; unchanged if it has none."""
    asked = entry.get(KEY)
    return text.removesuffix(str(asked["asks"])) if asked else text


def canonical_gold(gold: Gold) -> Gold:
    """The gold with its bare answer; unchanged if its question asks for no form."""
    entry = json.loads(gold.entry)
    if not isinstance(entry, dict) or KEY not in entry:
        return gold
    answer = decode(cast("dict[str, Any]", entry).get("answer"))
    return Gold(gold.id, None if answer is None else str(answer), gold.entry)


def form_of(gold: Gold) -> Form:
    """The form that the gold's question asks for.

    Raises:
        KeyError: None, or one that this hl does not know.
    """
    return FORMS[json.loads(gold.entry)[KEY]["name"]]
