"""Graders: from an answer to a `Grade`. Part of the tasks room.

In process only what is exact, linear in the answer and free of other people's code; everything else runs in the
sandbox's grader profile through the callable that is passed in. A grader never raises for anything an answer holds:
empty, over-long or unreadable answers grade 0.
"""

import functools
import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hl.errors import SandboxError
from hl.tasks.base import ANSWER_MAX_BYTES, RunFunction
from hl.tasks.formats import canonical_gold, form_of
from hl.tasks.text_rules import Rule
from hl.types import Gold, Grade, Grader, Status

FLOORS = (0.01, 0.02, 0.05)
"""What reasoning-gym pays for answering at all; mapped to 0."""
ZERO = Grade(0.0, 0.0)


def as_grade(raw: float) -> Grade:
    """A scorer's number as a grade: clipped, floors and NaN to 0, strict from 0.999."""
    if not raw > 0.0 or any(abs(raw - floor) < 1e-9 for floor in FLOORS):
        return ZERO
    raw = min(1.0, raw)
    return Grade(raw, float(raw >= 0.999))


def readable(answer: str) -> str:
    """The answer as it is graded: stripped; empty if it is longer than 64 KiB."""
    stripped = answer.strip()
    if len(stripped) > ANSWER_MAX_BYTES or len(stripped.encode("utf-8", "surrogatepass")) > ANSWER_MAX_BYTES:
        return ""
    return stripped


class TextGrader:
    """Grades in process by a rule of `text_rules.py`; the best of several accepted answers counts."""

    def __init__(self, rule: Rule) -> None:
        self._rule = rule

    async def grade(self, gold: Gold, answer: str) -> Grade:
        """Grade one answer."""
        text = readable(answer)
        if not text or gold.answer is None:
            return ZERO
        return as_grade(max(self._rule(text, accepted) for accepted in accepted_answers(gold)))


class FormGrader:
    """Format-varied questions: the answer must have the asked form, then the family's own grader takes the bare one."""

    def __init__(self, inner: Grader) -> None:
        self._inner = inner

    async def grade(self, gold: Gold, answer: str) -> Grade:
        """Grade one answer."""
        bare = form_of(gold).strip(readable(answer))
        return ZERO if bare is None else await self._inner.grade(canonical_gold(gold), bare)


def accepted_answers(gold: Gold) -> list[str]:
    """Every text that counts as right: a jsonl line may list several."""
    entry = json.loads(gold.entry)
    listed = entry.get("answers") if isinstance(entry, dict) else None
    return [str(text) for text in listed] if listed else [gold.answer or ""]


# --- confined ----------------------------------------------------------------------------------------------------


@functools.cache
def confined_source() -> str:
    """The text of the reasoning-gym grader: codec and rules, one self-contained module."""
    here = Path(__file__).parent
    texts = [
        (here / name).read_text(encoding="utf-8") for name in ("codec.py", "parameters.py", "confined.py")
    ]
    lines = "\n\n".join(texts).split("\n")
    return "\n".join(line for line in lines if not line.startswith("from hl."))  # all in one namespace there


async def run_confined(run_function: RunFunction, source: str, name: str, args: Sequence[Any]) -> Grade:
    """Grade by a function that runs in the sandbox and returns a number.

    Raises:
        SandboxError: The sandbox itself broke.
    """
    outcome = await run_function(source, name, args)
    if outcome.status is Status.LOST:
        raise SandboxError(
            f"the grader's sandbox failed: {outcome.error or 'no reason given'}", hint="hl doctor"
        )
    if outcome.status is not Status.OK:
        return Grade(0.0, 0.0, f"grader {outcome.status}: {outcome.error[-2000:]}".strip().removesuffix(":"))
    if isinstance(outcome.value, bool | int | float):
        return as_grade(float(outcome.value))
    return Grade(0.0, 0.0, f"the grader returned {type(outcome.value).__name__}, not a number")


class ReasoningGymGrader:
    """Grades by the family's scorer, or our rule for it, in the sandbox.

    An answer to a question is graded once: the candidates of a round meet the same questions and often answer them
    alike, and a process of the sandbox for each costs more than the attempt itself.
    """

    def __init__(self, family: str, params: str, run_function: RunFunction) -> None:
        """Args: family name; parameters as a JSON object of texts; the sandbox's grader profile."""
        self._family = family
        self._params = params
        self._run = run_function
        self._known: dict[bytes, Grade] = {}

    async def grade(self, gold: Gold, answer: str) -> Grade:
        """Grade one answer."""
        text = readable(answer)
        if not text:
            return ZERO
        key = hashlib.sha256(repr((gold.entry, text)).encode()).digest()
        found = self._known.get(key)
        if found is None:
            found = await run_confined(
                self._run, confined_source(), "score", [self._family, self._params, gold.entry, text]
            )
            if not found.error:  # what ran out of time on a busy machine may not do so again
                self._known[key] = found
        return found


REGEX_SOURCE = """
import re


def score(patterns, answer):
    return float(any(re.fullmatch(pattern, answer, re.DOTALL) for pattern in patterns))
"""


class RegexGrader:
    """The gold is a pattern that the whole answer must match; confined, since a pattern can run for years."""

    def __init__(self, run_function: RunFunction) -> None:
        self._run = run_function

    async def grade(self, gold: Gold, answer: str) -> Grade:
        """Grade one answer."""
        text = readable(answer)
        return (
            await run_confined(self._run, REGEX_SOURCE, "score", [accepted_answers(gold), text])
            if text
            else ZERO
        )


class PythonGrader:
    """The user's own `grade(question, answer, gold) -> float`, confined; text, never imported."""

    def __init__(self, source: str, run_function: RunFunction) -> None:
        self._source = source
        self._run = run_function

    async def grade(self, gold: Gold, answer: str) -> Grade:
        """Grade one answer."""
        text = readable(answer)
        if not text:
            return ZERO
        question = str(json.loads(gold.entry).get("question", ""))
        return await run_confined(self._run, self._source, "grade", [question, text, gold.answer])
