"""Figures of an update's groups, worked by hand, and what stops a run."""

import pytest

from hl.errors import EngineError, HlError
from hl.types import Outcome
from training.gate import check_agreement, check_prompts, lengths
from training.groups import by_family, check_lost, figures
from training.rewards import Judged, Parts


def judged(
    parts: Parts | None, outcome: Outcome = Outcome.SCORED, candidate: str = "", **more: object
) -> Judged:
    return Judged("c", outcome, candidate=candidate, parts=parts, parent=0.25, **more)  # pyright: ignore[reportArgumentType]


GOOD = judged(Parts(0.75, 1, 1, 1), candidate="a", calls=4, tokens=40)
SAME = judged(Parts(0.75, 1, 1, 1), candidate="a", calls=4, tokens=40)
WORSE = judged(Parts(0.0, 1, 1, 0.5), candidate="b", cut=True, calls=2, tokens=10)
BROKEN = judged(Parts(parse=1), Outcome.NOT_FOUND)
MUTE = judged(Parts(), Outcome.NO_EDIT)
LOST = judged(None, Outcome.LOST, detail="no route to host")


def test_figures_of_two_groups() -> None:
    found = figures([GOOD, SAME, WORSE, LOST, MUTE, MUTE, MUTE, MUTE], 4)
    assert found == {
        "lost": 1 / 8,
        "cut": 1 / 8,
        "duplicate": 1 / 8,
        "zero_variance": 1 / 2,
        "parent": 0.25,
        "gain": pytest.approx((0.5 + 0.5 - 0.25) / 3),
        "win": 2 / 8,
        "strict": 0.0,
        "solver_calls": 10.0,
        "solver_tokens": 90.0,
        "outcome/lost": 1 / 8,
        "outcome/no_edit": 4 / 8,
        "outcome/scored": 3 / 8,
    }
    assert by_family([GOOD, WORSE, LOST], {"c": "sums"}) == {"sums": 0.375}


@pytest.mark.parametrize(
    ("group", "flat"),
    [
        ([LOST] * 4, True),
        ([MUTE] * 4, True),
        ([BROKEN] * 4, True),
        ([GOOD] * 4, True),
        ([LOST, LOST, LOST, GOOD], True),
        ([MUTE, MUTE, MUTE, BROKEN], False),
        ([GOOD, WORSE, LOST, LOST], False),
    ],
)
def test_a_group_without_a_difference_gives_no_signal(group: list[Judged], flat: bool) -> None:
    assert figures(group, 4)["zero_variance"] == float(flat)


def test_too_many_lost_replies_stop_a_run_with_the_reason() -> None:
    check_lost([GOOD] * 19 + [LOST], 0.05)
    with pytest.raises(EngineError, match="2 of 20 replies of an update have no reward: no route to host"):
        check_lost([GOOD] * 18 + [LOST] * 2, 0.05)


def test_the_reward_is_the_papers_sum() -> None:
    assert GOOD.reward == pytest.approx(0.75 + 0.05 + 0.10 + 0.15)
    assert WORSE.reward == pytest.approx(0.05 + 0.10 + 0.075)
    assert (BROKEN.reward, MUTE.reward, LOST.reward) == (pytest.approx(0.05), 0.0, None)


def test_engines_that_disagree_are_refused() -> None:
    assert check_agreement([[-1.0, -2.0]], [[-1.01, -2.03]]) == pytest.approx(0.02)
    with pytest.raises(EngineError, match=r"differ by 0.200"):
        check_agreement([[-1.0]], [[-1.2]])
    with pytest.raises(EngineError, match="differ by nan"):
        check_agreement([[-1.0]], [[float("nan")]])
    with pytest.raises(EngineError, match="same tokens"):
        check_agreement([[-1.0]], [[-1.0, -1.0]])


def test_prompts_that_leave_no_room_are_counted_and_refused() -> None:
    from tests.training.test_sft import context

    found = [context("sums", n) for n in (1, 2, 3)]
    counts = {found[0].id: 60, found[1].id: 61, found[2].id: 10}
    with pytest.raises(HlError, match=r"1 of 3 prompts have more than the 60 tokens .*sums; the longest 61"):
        check_prompts(found, lambda c: counts[c.id], reply_tokens=40, context_tokens=100)
    told = check_prompts(found, lambda c: counts[c.id], reply_tokens=39, context_tokens=100)
    assert told == lengths([60, 61, 10]) and (told.least, told.median, told.most) == (10, 60, 61)
