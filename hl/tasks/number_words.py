"""Integers in English words and back: `minus one thousand two hundred thirty-four`. Pure."""

import re

LIMIT = 10**12
"""Larger numbers have no words here."""
_SMALL = [
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
]
_TENS = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
_SCALES = (("billion", 10**9), ("million", 10**6), ("thousand", 10**3))
_VALUES = {word: i for i, word in enumerate(_SMALL)} | {word: 10 * i for i, word in enumerate(_TENS, 2)}


def spell(number: int) -> str:
    """The number in words.

    Raises:
        ValueError: It is not smaller than `LIMIT`, the sign aside.
    """
    if abs(number) >= LIMIT:
        raise ValueError(f"no words for {number}")
    if number < 0:
        return f"minus {spell(-number)}"
    words: list[str] = []
    for name, scale in _SCALES:
        if number >= scale:
            words += [_hundreds(number // scale), name]
            number %= scale
    if number or not words:
        words.append(_hundreds(number))
    return " ".join(words)


def read(text: str) -> int | None:
    """The number that `spell` would write like this; case, hyphens, commas, `and` do not matter; else None."""
    words = [w for w in re.split(r"[\s,-]+", text.strip().lower()) if w not in ("", "and")]
    if len(words) > 40:
        return None
    scales = dict(_SCALES)
    total = group = 0
    for word in words[1:] if words[:1] == ["minus"] else words:
        if word in _VALUES:
            group += _VALUES[word]
        elif word == "hundred":
            group *= 100
        elif word in scales:
            total, group = total + group * scales[word], 0
        else:
            return None
    value = total + group
    if words[:1] == ["minus"]:
        value = -value
    if abs(value) >= LIMIT:
        return None
    return value if spell(value).replace("-", " ").split() == words else None


def _hundreds(number: int) -> str:
    """Below 1000."""
    hundreds, rest = divmod(number, 100)
    words = [f"{_SMALL[hundreds]} hundred"] if hundreds else []
    if rest or not hundreds:
        tens, ones = divmod(rest, 10)
        words.append(_SMALL[rest] if rest < 20 else _TENS[tens - 2] + (f"-{_SMALL[ones]}" if ones else ""))
    return " ".join(words)
