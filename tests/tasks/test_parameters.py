"""Parameters get the types that the family declares, or one sentence says what would be valid."""

from dataclasses import dataclass
from typing import Any, Optional

import pytest

from hl.tasks.parameters import ParameterError, typed_params


@dataclass
class Config:
    count: int = 1
    rate: float = 0.5
    flag: bool = False
    word: str = "a"
    limit: Optional[int] = None  # noqa: UP045 (as reasoning-gym writes it)
    weights: list[float] | None = None
    pair: tuple = (1, 2)
    seed: int = 0
    size: int = 1


@pytest.mark.parametrize(
    ("key", "text", "value"),
    [
        ("count", "-3", -3),
        ("rate", "2", 2.0),
        ("flag", "true", True),
        ("flag", "False", False),
        ("word", "12", "12"),
        ("limit", "None", None),
        ("limit", "4", 4),
        ("weights", "[0.5, 1]", [0.5, 1]),
        ("pair", "['+', '-']", ("+", "-")),
    ],
)
def test_texts_become_values(key: str, text: str, value: Any) -> None:
    got = typed_params("x", Config, {key: text})[key]
    assert got == value and type(got) is type(value)


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("count", "1.5"),
        ("count", "True"),
        ("count", "ten"),
        ("rate", "x"),
        ("flag", "1"),
        ("pair", "3"),
        ("count", "(" * 999),
    ],
)
def test_the_wrong_type_is_named(key: str, text: str) -> None:
    with pytest.raises(ParameterError, match=f"parameter '{key}' of x must be of type"):
        typed_params("x", Config, {key: text})


@pytest.mark.parametrize("key", ["nope", "seed", "size"])
def test_unknown_and_reserved_names_are_refused_with_the_valid_ones(key: str) -> None:
    with pytest.raises(ParameterError, match=f"no parameter '{key}'; it has: count, flag, limit, pair"):
        typed_params("x", Config, {key: "1"})


def test_the_nearest_parameter_is_named() -> None:
    with pytest.raises(ParameterError, match=r"x has no parameter 'counts'; did you mean 'count'\?$"):
        typed_params("x", Config, {"counts": "1"})
