"""Rules that grade an answer against a gold text in process: exact, linear in the answer, no code of others. Pure.

`exact`, `share` and `decimal` follow reasoning-gym; `choice`, `number` and `f1` serve the user's own questions. Each
takes (answer, gold) and returns partial credit in [0, 1].
"""

import re
import string
from collections import Counter
from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from fractions import Fraction

Rule = Callable[[str, str], float]


def exact(answer: str, gold: str) -> float:
    """1 for the same text, ends stripped, case kept."""
    return float(answer.strip() == gold.strip())


def share(answer: str, gold: str) -> float:
    """reasoning-gym's default scorer: exact text, else the gold's share of an answer that contains it."""
    answer, gold = answer.strip(), gold.strip()
    if not answer or not gold:
        return 0.0
    if answer == gold:
        return 1.0
    return len(gold) / len(answer) if gold in answer else 0.0


def decimal(answer: str, gold: str) -> float:
    """reasoning-gym's decimal scorer: the same number, however written; else the share of the text."""
    answer, gold = answer.replace(",", "").strip(), gold.replace(",", "").strip()
    try:
        if Decimal(answer) == Decimal(gold):
            return 1.0
    except InvalidOperation:
        pass
    return share(answer, gold)


def choice(answer: str, gold: str) -> float:
    """1 for the same choice: case, and brackets or punctuation around it, do not matter."""

    def plain(text: str) -> str:
        return text.strip().strip("()[]{}<>.:;,*'\"` \t\n").casefold()

    return float(plain(answer) == plain(gold) != "")


_NUMBER = re.compile(r"[+-]?(\d{1,300}(\.\d{0,300})?|\.\d{1,300})([eE][+-]?\d{1,3}|\s?/\s?\d{1,300})?")


def parse_number(text: str) -> Fraction:
    """A number as people write it: thousands commas, a currency sign or %, a fraction, an exponent, a full stop.

    Raises:
        ValueError: Anything else: words, two numbers, nan, or sizes that would take long to compute with.
    """
    plain = text.strip().rstrip(".").strip("$€£% \t\n").replace(",", "").replace("_", "").replace("−", "-")
    if not _NUMBER.fullmatch(plain) or ("/" in plain and "." in plain):
        raise ValueError(f"not a number: {text[:40]!r}")
    top, _, bottom = plain.partition("/")
    if bottom and int(bottom) == 0:
        raise ValueError("division by zero")
    return Fraction(top.strip()) / (int(bottom) if bottom else 1)


def number(answer: str, gold: str) -> float:
    """1 for the same number, to a relative difference of 1e-6."""
    try:
        value, right = parse_number(answer), parse_number(gold)
    except ValueError:
        return 0.0
    return float(abs(value - right) <= abs(right) / 1_000_000)


_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLES = re.compile(r"\b(a|an|the)\b")


def squad_words(text: str) -> list[str]:
    """SQuAD's normalisation (evaluate-v1.1.py): lower case, no ASCII punctuation, no articles, split at white space.

    Other marks stay, such as curly quotes and dashes, and end a word where an article is looked for.
    """
    return _ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)).split()


def same_words(answer: str, gold: str) -> float:
    """SQuAD's exact match: 1 for the same words in the same order.

    A gold that has no words left, such as `The` or `!!!`, is compared as it is written, case and white space aside:
    by the official rule every other answer without words would be right too.
    """
    theirs = squad_words(gold)
    if not theirs:
        return float(answer.lower().split() == gold.lower().split() != [])
    return float(squad_words(answer) == theirs)


def f1(answer: str, gold: str) -> float:
    """SQuAD's F1: harmonic mean of precision and recall over words; `same_words` where the gold has no words left."""
    theirs = squad_words(gold)
    if not theirs:
        return same_words(answer, gold)
    ours = squad_words(answer)
    common = (Counter(ours) & Counter(theirs)).total()
    return 2 * common / (len(ours) + len(theirs))


RULES: dict[str, Rule] = {
    "exact": exact,
    "share": share,
    "decimal": decimal,
    "choice": choice,
    "number": number,
    "f1": f1,
}
"""By the name that tables and `?grader=` use."""
