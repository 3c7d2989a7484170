"""A small family is shared out fairly and never twice."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hl.errors import HlError
from hl.tasks.sharing import MINIMUM, Item, share_out
from hl.types import Gold, Question, Role


def pool(n: int) -> list[Item]:
    return [(Question(f"{i:016x}", str(i)), Gold(f"{i:016x}", "a", "{}")) for i in range(n)]


_SIZES = st.fixed_dictionaries({role: st.integers(0, 60) for role in Role})


@given(sizes=_SIZES, n=st.integers(0, 200))
def test_every_question_is_dealt_once_and_minima_hold(sizes: dict[Role, int], n: int) -> None:
    least = {role: min(MINIMUM[role], sizes[role]) for role in Role}
    n = min(n, sum(sizes.values()))
    if n < sum(least.values()):
        with pytest.raises(HlError, match=f"only {n} distinct"):
            share_out(pool(n), sizes, "the family x")
        return
    dealt = share_out(pool(n), sizes, "the family x")
    ids = [question.id for role in Role for question, _ in dealt[role]]
    assert len(ids) == len(set(ids)) == n
    for role in Role:
        assert len(dealt[role]) >= least[role]


@pytest.mark.parametrize(
    ("sizes", "n", "dealt"),
    [
        ((16, 32, 32, 64), 38, (4, 9, 8, 17)),  # in proportion
        ((160, 320, 320, 128), 260, (34, 70, 69, 87)),  # the pools of ten rounds leave evaluation a third
        ((160, 320, 320, 0), 160, (32, 64, 64, 0)),
    ],
)
def test_proportions_are_kept_and_evaluation_comes_first(
    sizes: tuple[int, ...], n: int, dealt: tuple[int, ...]
) -> None:
    found = share_out(pool(n), dict(zip(Role, sizes, strict=True)), "x")
    assert tuple(len(found[role]) for role in Role) == dealt
