"""Entries survive JSON unchanged, types included."""

import datetime
import json
import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hl.tasks.codec import decode, encode

_KEYS = st.one_of(
    st.text(max_size=5), st.integers(), st.tuples(st.integers(), st.text(max_size=3)), st.just("$")
)
_LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False),
    st.text(max_size=8),
    st.dates(),
    st.datetimes(),
    st.times(),
    st.timedeltas(),
    st.fractions(),
    st.decimals(allow_nan=False),
    st.binary(max_size=8),
    st.frozensets(st.integers(), max_size=4).map(set),
    st.complex_numbers(allow_nan=False, allow_infinity=False),
)
_VALUES = st.recursive(
    _LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.lists(inner, max_size=4).map(tuple),
        st.dictionaries(_KEYS, inner, max_size=4),
    ),
    max_leaves=12,
)


def typed(value: Any) -> Any:
    """The value with every type spelled out: 1, 1.0 and True differ, and so do lists and tuples."""
    if isinstance(value, dict):
        return [(typed(k), typed(v)) for k, v in value.items()]
    if isinstance(value, list | tuple):
        return (type(value), [typed(v) for v in value])
    return (type(value), value)


@given(_VALUES)
def test_what_is_encoded_as_json_decodes_to_the_same_value(value: Any) -> None:
    assert typed(decode(json.loads(json.dumps(encode(value), allow_nan=False)))) == typed(value)


def test_nan_survives() -> None:
    assert math.isnan(decode(json.loads(json.dumps(encode(float("nan")), allow_nan=False))))


def test_numpy_values_survive() -> None:
    import numpy

    back = decode(json.loads(json.dumps(encode({"n": numpy.int64(3), "m": numpy.array([[1, 2], [3, 4]])}))))
    assert back["n"] == 3 and type(back["n"]) is int
    assert back["m"].dtype == numpy.int64 and back["m"].tolist() == [[1, 2], [3, 4]]


def test_a_set_is_written_the_same_whatever_its_order() -> None:
    assert encode({"b", "a", "c"}) == encode({"c", "b", "a"}) == {"$": "set", "v": ["a", "b", "c"]}


def test_what_has_no_tag_is_refused() -> None:
    with pytest.raises(TypeError, match="object"):
        encode({"x": [object()]})


def test_exact_numbers_keep_their_value() -> None:
    for value in (Fraction(1, 3), Decimal("0.10"), datetime.date(2024, 2, 29), 10**50):
        assert decode(json.loads(json.dumps(encode(value)))) == value
