"""The texts that a report shows of its questions, and whether another text was taken from them."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from hl.types import Report

MIN_CHARS = 9
"""From here on a text that some questions hold and others do not counts as taken from them (ours)."""
MIN_WORD = 3
"""Shorter texts, such as one letter, are not worth a tag (ours)."""
MIN_DIGITS = 3
"""Likewise for the digits of a number (ours)."""


def plain(text: str) -> str:
    """Without layout and case, so that neither hides a copy."""
    return " ".join(text.split()).casefold()


@dataclass(frozen=True)
class Shown:
    """The texts that a report shows of its questions."""

    questions: tuple[str, ...]
    golds: frozenset[str]

    @cached_property
    def numbers(self) -> Mapping[str, int]:
        """Number -> how many questions hold it."""
        found: dict[str, int] = {}
        for question in self.questions:
            for number in set(re.findall(r"\d+", question)):
                found[number] = found.get(number, 0) + 1
        return found

    def taken(self, text: str) -> bool:
        """Whether a text is, holds, or is a piece of what some questions hold and others do not."""
        text = plain(text)
        if len(text) >= MIN_CHARS:
            hits = sum(text in q for q in self.questions)
            if hits > 0 and (hits < len(self.questions) or len(self.questions) == 1):
                return True
            if text in self.golds:
                return True
        return any(len(q) >= MIN_CHARS and q in text for q in self.questions)

    def mentioned(self, text: str) -> bool:
        """Whether a word or more of it stands in any question or is a gold."""
        text = plain(text)
        return len(text) >= MIN_WORD and (text in self.golds or any(text in q for q in self.questions))

    def rare_number(self, value: object) -> bool:
        """Whether it is a long number that some questions hold and others do not, or a gold."""
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            return False
        digits = str(abs(value)).removesuffix(".0")
        if len(digits.replace(".", "")) < MIN_DIGITS:
            return False
        return digits in self.golds or 0 < self.numbers.get(digits, 0) < max(2, len(self.questions))


def shown(report: Report) -> Shown:
    """What a report shows."""
    cases = (*report.failures, *report.successes)
    golds = {plain(c.gold) for c in cases if c.gold is not None}
    return Shown(tuple(dict.fromkeys(plain(c.question) for c in cases)), frozenset(g for g in golds if g))
