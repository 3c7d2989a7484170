"""Measurement <-> line."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hl.ledger.lines import parse_line, parse_lines, render_line
from hl.types import Measurement, Role
from tests.ledger.kit import measure

TEXT = st.text(st.characters(codec="utf-8"), max_size=20)
GRADES = st.one_of(
    st.lists(st.sampled_from([0.0, 1.0, None]), max_size=8),
    st.lists(st.one_of(st.none(), st.floats(0, 1)), max_size=8),
)
COUNTS = st.dictionaries(TEXT, st.integers(0, 10**9), max_size=3)


@st.composite
def measurements(draw: st.DrawFn) -> Measurement:
    grades = draw(GRADES)
    ids = draw(
        st.lists(st.sampled_from(["0123456789abcdef", "q1"]), min_size=len(grades), max_size=len(grades))
    )
    number = st.floats(0, 1e9)
    return Measurement(
        draw(TEXT), draw(st.sampled_from(Role)), draw(TEXT), tuple(ids), tuple(grades), draw(TEXT), draw(TEXT),
        draw(st.sampled_from(["raw", "strict"])), draw(COUNTS), draw(COUNTS), draw(COUNTS), draw(st.integers(0, 9)),
        draw(st.integers(0, 999)), draw(st.integers(0, 999)), draw(number), draw(st.floats(0, 1)), draw(TEXT),
        draw(number), draw(TEXT), draw(TEXT), draw(st.sampled_from(["", "empty"])),
        draw(st.sampled_from([(), tuple(grades), (None,) * len(grades), (0.5,) * len(grades)])),
    )  # fmt: skip


@given(measurements())
def test_a_line_gives_back_exactly_what_it_was_made_from(m: Measurement) -> None:
    line = render_line(m)
    assert "\n" not in line
    assert parse_line(line) == m


def test_time_comes_first_so_that_a_sorted_note_is_in_order() -> None:
    lines = [render_line(measure("h", Role.SCORING, [1], time=t)) for t in ("2026-01-02", "2026-01-01")]
    assert all(line.startswith('{"t":') for line in lines)
    assert [m.time for m in parse_lines("\n".join(sorted(lines)).encode())] == ["2026-01-01", "2026-01-02"]


def test_grades_take_one_character_a_question_where_they_can() -> None:
    assert json.loads(render_line(measure("h", Role.SCORING, [1, 0, None])))["g"] == "10-"
    assert json.loads(render_line(measure("h", Role.SCORING, [1, 0.25, None])))["g"] == [1, 0.25, None]


def test_unknown_keys_are_ignored() -> None:
    m = measure("h", Role.SCORING, [1, 0], time="2026")
    raw = json.loads(render_line(m))
    assert parse_line(json.dumps({**raw, "v": 7, "zz": {"deep": [1]}})) == m


GOOD = json.loads(render_line(measure("h", Role.SCORING, [1, 0], time="2026")))


@pytest.mark.parametrize(
    "line",
    [
        b"", b"garbage", b"[]", b"null", b"{}", b"\xff\xfe", b"[" * 100_000, b'{"t":1}',
        *(json.dumps({**GOOD, **bad}).encode() for bad in (
            {"g": "12"}, {"g": [2]}, {"g": [True, 0]}, {"g": "1"}, {"g": None}, {"ids": "abc"}, {"ids": 3},
            {"role": "exam"}, {"h": 5}, {"t": None}, {"cnt": [1]}, {"cnt": {"ok": "1"}}, {"tr": 1.5},
            {"s": float("nan")}, {"g": [float("inf"), 0]}, {"z": "0"}, {"sid": None},
        )),
        json.dumps({k: v for k, v in GOOD.items() if k != "q"}).encode(),
    ],
)  # fmt: skip
def test_a_line_that_is_not_a_measurement_is_none(line: bytes) -> None:
    assert parse_line(line) is None


def test_good_lines_beside_garbage_are_read() -> None:
    m = measure("h", Role.SCORING, [1, 0], time="2026")
    note = b"first line\n\n" + render_line(m).encode() + b"\n{broken\n"
    assert parse_lines(note) == (m,)
