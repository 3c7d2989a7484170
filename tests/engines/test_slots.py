"""Which slot runs which prompt."""

from hypothesis import given
from hypothesis import strategies as st

from hl.engines.slots import COLD_CHARS, SlotMap, render_messages, shared_prefix
from hl.types import Message

PREFIX = "p" * (3 * COLD_CHARS)


def new_map(count=4, budget=100, freed=None):
    return SlotMap(count, budget, (freed if freed is not None else []).append)


@given(st.text(alphabet="ab"), st.text(alphabet="ab"), st.text(alphabet="ab"))
def test_the_shared_prefix_is_the_longest(head, a, b):
    length = shared_prefix(head + a, head + b)
    assert (head + a)[:length] == (head + b)[:length]
    assert length in (len(head + a), len(head + b)) or (head + a)[length] != (head + b)[length]


def test_rendering_keeps_turns_apart():
    one = render_messages([Message("user", "ab")])
    two = render_messages([Message("user", "a"), Message("user", "b")])
    assert one != two
    assert (
        shared_prefix(two, render_messages([Message("user", "a"), Message("assistant", "b")])) < len(two) - 1
    )


def test_a_cold_prompt_leads_and_its_siblings_wait_and_then_copy():
    slots = new_map()
    first = slots.plan(PREFIX + "1")
    assert first is not None and first.lead and first.restore is None
    assert slots.plan(PREFIX + "2") is None, "it should wait for the lead"
    other = slots.plan("q" * (3 * COLD_CHARS))
    assert other is not None and other.lead, "a prompt without that prefix need not wait"
    slots.keep(first.slot, handle=77, size=10)
    second = slots.plan(PREFIX + "2")
    assert second is not None and second.restore is not None and second.restore.handle == 77
    assert not second.lead and second.slot not in (first.slot, other.slot)


def test_a_lead_that_failed_lets_the_next_one_lead():
    slots = new_map()
    first = slots.plan(PREFIX + "1")
    assert first is not None
    slots.release(first.slot, "")
    second = slots.plan(PREFIX + "2")
    assert second is not None and second.lead


def test_short_prompts_neither_lead_nor_wait():
    slots = new_map(count=2)
    first, second = slots.plan("short 1"), slots.plan("short 2")
    assert first is not None and second is not None
    assert not first.lead and not second.lead
    assert slots.plan("short 3") is None, "no idle slot is left"


def test_a_conversation_goes_on_in_its_slot():
    slots = new_map()
    plans = [slots.plan(f"conversation {i} " + "x" * 300) for i in range(4)]
    for index, plan in enumerate(plans):
        assert plan is not None
        slots.release(plan.slot, f"conversation {index} " + "x" * 300 + "reply")
    for index in (2, 0, 3, 1):
        again = slots.plan(f"conversation {index} " + "x" * 300 + "reply, next turn")
        assert again is not None and again.slot == plans[index].slot
        assert again.restore is None


def test_an_unrelated_prompt_takes_the_slot_that_is_idle_longest():
    slots = new_map(count=3)
    taken = [slots.plan(text) for text in ("a", "b", "c")]
    for plan in (taken[1], taken[2], taken[0]):
        slots.release(plan.slot, "z" * 50)
    assert slots.plan("new").slot == taken[1].slot


def test_snapshots_stay_within_their_budget_and_the_least_used_goes_first():
    freed = []
    slots = new_map(budget=25, freed=freed)
    texts = {handle: chr(97 + handle) * (2 * COLD_CHARS) for handle in range(4)}
    for handle in (0, 1):
        plan = slots.plan(texts[handle])
        slots.keep(plan.slot, handle, 10)
        slots.release(plan.slot, "overwritten")
    used = slots.plan(texts[0] + "again")
    assert used.restore.handle == 0
    slots.release(used.slot, "overwritten")
    plan = slots.plan(texts[2])
    slots.keep(plan.slot, 2, 10)
    assert freed == [1]
    slots.clear()
    assert freed == [1, 0, 2]


def test_without_a_budget_nothing_leads():
    slots = new_map(count=1, budget=0)
    plan = slots.plan(PREFIX)
    assert plan is not None and not plan.lead


@given(st.lists(st.tuples(st.integers(0, 3), st.booleans()), max_size=40))
def test_a_slot_is_never_given_out_twice(steps):
    slots = new_map(count=3)
    busy = {}
    for which, finish in steps:
        if finish and busy:
            slot, plan = busy.popitem()
            if plan.lead:
                slots.keep(slot, 1, 30)
            slots.release(slot, "t")
        elif (plan := slots.plan(chr(97 + which) * 1000 + str(len(busy)))) is not None:
            assert plan.slot not in busy
            busy[plan.slot] = plan
    assert len(busy) + len(slots.idle) == 3
