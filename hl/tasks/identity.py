"""Identity of questions: content, not parameters, seeds or answer format.

Two questions of one family that differ only in white space are the same question, so a reworded-by-layout twin cannot
sit in two sets. Nothing here reads files or knows what a family is.
"""

import hashlib


def normalise(text: str) -> str:
    """The text with every run of white space as one space, and none at the ends."""
    return " ".join(text.split())


def question_id(family: str, text: str) -> str:
    """First 16 hex digits of the sha256 of (family, normalised text).

    Args:
        family: Such as `reasoning-gym:gcd` (no parameters) or `jsonl`.
        text: The canonical question text.
    """
    content = f"{family}\n{normalise(text)}".encode("utf-8", "surrogatepass")
    return hashlib.sha256(content).hexdigest()[:16]
