"""The codec keeps every noun, and refuses what does not fit."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hl.codec import decode, encode
from hl.types import (
    Attempt,
    FailureClass,
    Grade,
    Harness,
    HistoryEntry,
    Measurement,
    Outcome,
    Role,
    Status,
    TraceEvent,
)

TEXT = st.text(max_size=20)
GRADES = st.floats(0, 1)
ATTEMPTS = st.builds(
    Attempt,
    question_id=TEXT,
    trial=st.integers(0, 5),
    status=st.sampled_from(Status),
    answer=TEXT,
    grade=st.builds(Grade, GRADES, GRADES, TEXT),
    calls=st.integers(0, 99),
    prompt_tokens=st.integers(0, 99),
    completion_tokens=st.integers(0, 99),
    seconds=GRADES,
    trace=st.lists(st.builds(TraceEvent, TEXT, TEXT, TEXT), max_size=3).map(tuple),
    failure=st.none() | st.sampled_from(FailureClass),
)


@given(ATTEMPTS)
def test_an_attempt_survives_json(attempt: Attempt) -> None:
    assert decode(Attempt, json.loads(json.dumps(encode(attempt)))) == attempt


def test_mappings_options_and_enums_survive() -> None:
    measurement = Measurement(
        "h",
        Role.SCORING,
        "q",
        ("a", "b"),
        (0.5, None),
        "s",
        "n",
        "raw",
        {"ok": 2},
        {},
        {"NameError": 1},
        1,
        2,
        3,
        0.1,
        0.0,
        "t",
    )
    assert decode(Measurement, json.loads(json.dumps(encode(measurement)))) == measurement
    entry = HistoryEntry(1, "x", Outcome.SCORED, False, None, {"wrong": 1}, {})
    assert decode(HistoryEntry, encode(entry)) == entry
    harness = Harness((("harness.py", "x = 1\n"),))
    assert decode(Harness, encode(harness)).digest == harness.digest


def test_unknown_keys_are_ignored_and_defaults_filled() -> None:
    assert decode(TraceEvent, {"kind": "chat", "request": "a", "reply": "b", "later": 1}) == TraceEvent(
        "chat", "a", "b"
    )


@pytest.mark.parametrize(
    ("data", "field"),
    [
        ({"kind": "chat", "request": "a"}, "TraceEvent.reply"),
        ({"kind": 1, "request": "a", "reply": "b"}, "TraceEvent.kind"),
        ({"kind": "chat", "request": "a", "reply": "b", "tokens": True}, "TraceEvent.tokens"),
        ([], "TraceEvent"),
    ],
)
def test_what_does_not_fit_names_the_field(data: object, field: str) -> None:
    with pytest.raises(ValueError, match=field):
        decode(TraceEvent, data)
