"""The filters, one by one and in their order: what verdict a scored row gets."""

from dataclasses import replace

import pytest

from hl.types import Measurement, Role
from tests.training.test_data import gain, row
from training import data
from training.mining import Rules, _judge, rules_of
from training.settings import load_settings

RULES = Rules("tiny", frozenset({"strings"}), reply_tokens=100)
GOOD = row(gain=gain(0.5), fresh=gain(0.25))


def measured(**counts: int) -> Measurement:
    ids = tuple(f"{i:016x}" for i in range(40))
    grades = (0.5,) * 40
    numbers = {"trials": 1, "calls": 40, "tokens": 400, "seconds": 1.0, "zero_call_share": 0.0}
    return Measurement(
        "h", Role.SCORING, "q", ids, grades, "s", "scripted", "raw", counts, {}, {}, **numbers, sandbox="t"
    )


@pytest.mark.parametrize(
    ("changes", "counts", "refused", "verdict"),
    [
        ({}, {"ok": 40}, "", data.KEPT),
        ({"gain": gain(0.0), "fresh": None}, {"ok": 40}, "line 3: compares.", data.NO_GAIN),
        ({"gain": None}, {"ok": 40}, "", data.NO_GAIN),
        ({"fresh": None}, {"ok": 40}, "line 3: compares.", data.SCREENED),
        ({"fresh": gain(-0.1)}, {"ok": 37, "budget": 2, "timeout": 1}, "", data.OVER_BUDGET),
        ({}, {"ok": 38, "budget": 1, "timeout": 1}, "", data.KEPT),
        ({"tokens": 101}, {"ok": 40}, "", data.OVER_BUDGET),
        ({"fresh": None}, {"ok": 40}, "", data.NOT_MEASURED),
        ({"fresh": gain(0.0)}, {"ok": 40}, "", data.NOT_CONFIRMED),
    ],
)
def test_the_first_filter_that_a_row_does_not_pass(
    changes: dict[str, object], counts: dict[str, int], refused: str, verdict: str
) -> None:
    found, detail = _judge(replace(GOOD, **changes), measured(**counts), refused, RULES)
    assert found == verdict and bool(detail) == (verdict != data.KEPT)


def test_rows_of_clusters_that_test_or_reinforce_are_held_out() -> None:
    elsewhere = replace(GOOD, context=replace(GOOD.context, cluster="strings"))
    assert _judge(elsewhere, measured(ok=40), "", RULES)[0] == data.HELD_OUT
    rules = rules_of(load_settings(None, ["tasks.track=tiny"]))
    assert GOOD.context.cluster in rules.held_out  # gcd is an unseen family of the track
