"""Scores, gains and foreign text, as they are printed."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hl.types import Cost, Gain, Score
from hl.ui.text import (
    clean,
    columns,
    one_line,
    render_bytes,
    render_cost,
    render_counts,
    render_gain,
    render_score,
    render_seconds,
)


def test_scores_and_gains() -> None:
    assert render_score(Score(0.8125, 0.0487, 64)) == "0.812 ± 0.049 (n=64)"
    assert render_score(Score(0, 0, 0)) == render_score(None) == "-"
    assert render_gain(Gain(0.25, 0.08, 32, 9, 1, 22, 0.02, 0.01)) == "+0.250 ± 0.080"
    assert render_gain(Gain(-0.1, 0.0, 32, 0, 3, 29, 0.2, 0.9)) == "-0.100 ± 0.000"
    assert render_gain(None) == "-"


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.25, "0.2 s"), (84, "84 s"), (600, "10 min"), (11_000, "3.1 h")]
)
def test_seconds(seconds: float, text: str) -> None:
    assert render_seconds(seconds) == text


def test_counts_costs_and_bytes() -> None:
    assert render_counts({"wrong": 2, "crash": 3, "empty": 0}) == "3 crash, 2 wrong"
    assert render_cost(Cost(1204, 300_000, 12_900, 0.0, 84)) == "1,204 calls, 312,900 tokens, 84 s"
    assert render_cost(Cost(1, 1, 1, 0.5, 1)) == "1 calls, 2 tokens, 1.0 s, 0.5000 in money"
    assert (render_bytes(512), render_bytes(98_400_000)) == ("512 bytes", "98.4 MB")


@given(st.text())
def test_clean_text_steers_no_terminal(text: str) -> None:
    for c in clean(text):
        assert c in "\n\t" or unicodedata.category(c) not in ("Cc", "Cf", "Cs", "Zl", "Zp")
    assert clean(clean(text)) == clean(text)
    assert "\n" not in one_line(text) and len(one_line(text, 10)) <= 10


def test_clean_shows_what_it_disarms_and_keeps_the_rest() -> None:
    assert clean("a\x1b[31mb\u202ec\u200bd\ud800") == "a\\x1b[31mb\\u202ec\\u200bd\\ud800"
    assert clean("é ± 漢\n\tx\r\ny") == "é ± 漢\n\tx\ny"
    assert one_line("a\n  b\tc", 4) == "a b…"


def test_columns() -> None:
    assert columns([("1", "ab", "x"), ("20", "c", "yy")], right=(0,)) == [" 1  ab  x", "20  c   yy"]
    assert columns([]) == []
