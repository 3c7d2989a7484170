"""Texts -> edit blocks: whatever changed, the blocks apply and give the new text."""

from hypothesis import given
from hypothesis import strategies as st

from hl.edits import MAX_BLOCKS, apply_edits, parse_reply
from hl.proposer.catalog.blocks import edit_blocks, render_reply
from hl.types import Harness

LINES = st.lists(st.sampled_from(["", "a", "b", "    a", "c = 1", "def f():"]), min_size=1, max_size=25)


def test_equal_texts_have_no_edit() -> None:
    assert edit_blocks("a\nb\n", "a\nb\n") == ()


@given(LINES, LINES)
def test_blocks_give_the_new_text(old: list[str], new: list[str]) -> None:
    """Few different lines, so that almost nothing is unique; only a file of blank lines cannot be searched."""
    a, b = "\n".join(old) + "\n", "\n".join(new) + "\n"
    edits = edit_blocks(a, b)
    assert len(edits) <= MAX_BLOCKS
    if not edits or not a.strip():
        return
    parent = Harness((("harness.py", a),))
    assert parse_reply(render_reply("words", edits)) != ()
    result = apply_edits(parent, edits).text("harness.py")
    assert result.splitlines() == b.splitlines()


def test_a_block_takes_only_the_context_it_needs() -> None:
    old = "x = 1\n\n\ndef f():\n    return 1\n\n\ndef g():\n    return 1\n"
    (edit,) = edit_blocks(old, old[: -len("1\n")] + "2\n")
    assert edit.search == "def g():\n    return 1\n"
    assert edit.replace == "def g():\n    return 2\n"


def test_many_changes_are_joined_into_the_blocks_that_are_allowed() -> None:
    old = "".join(f"line {i}\n" for i in range(60))
    new = "".join(f"line {i}\n" if i % 3 else f"other {i}\n" for i in range(60))
    edits = edit_blocks(old, new)
    assert 0 < len(edits) <= MAX_BLOCKS
    assert apply_edits(Harness((("harness.py", old),)), edits).text("harness.py") == new
