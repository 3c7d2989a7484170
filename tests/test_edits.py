"""Room 4: every outcome this room can produce, the properties of a span replacement, and hostile replies."""

import json
import subprocess
import sys
from itertools import pairwise

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from hl.edits import (
    MAX_BLOCKS,
    MAX_LINES,
    EditError,
    apply_edits,
    check_harness,
    parse_reply,
    program_digest,
    propose_from_reply,
    render_edits,
    summarise_reply,
)
from hl.types import HARNESS_MAX_BYTES, Edit, Harness, Outcome, Proposal, Reply

PARENT_TEXT = '''\
"""Ask once."""
import re

PROMPT = "Answer: "


def clean(text):
    text = text.strip()
    return text


def solve(model, question):
    reply = model(PROMPT + question)  # one call
    for _ in range(3):
        if reply:
            break
        reply = model(question)
    return clean(reply)
'''
PARENT = Harness((("harness.py", PARENT_TEXT),))
PAIR = Harness(
    (
        ("harness.py", "from helpers import solve\n"),
        ("helpers.py", "def solve(model, question):\n    return ''\n"),
    )
)


def harness(text: str) -> Harness:
    return Harness((("harness.py", text),))


def block(search: str, replace: str, size: int = 7) -> str:
    return f"{'<' * size} SEARCH\n{search}\n{'=' * size}\n{replace}\n{'>' * size} REPLACE\n"


def propose(
    text: str, parent: Harness = PARENT, *, finish: str = "stop", known: dict[str, str] | None = None
) -> Proposal:
    return propose_from_reply(parent, Reply(text, finish), index=0, proposer="test", known=known or {})


GOOD = block(
    "    reply = model(PROMPT + question)  # one call",
    "    reply = model(PROMPT + question, temperature=0.2)",
)
GOOD_TEXT = PARENT_TEXT.replace("question)  # one call", "question, temperature=0.2)")

SOLVE = "def solve(model, question):"

# --- outcomes ---------------------------------------------------------------------------------------------------

OUTCOMES: dict[str, tuple[str, Outcome, str]] = {
    # name: (reply, outcome, words that the hint must hold)
    "prose": ("I would raise the temperature.", Outcome.NO_EDIT, "<<<<<<< SEARCH"),
    "empty": ("", Outcome.NO_EDIT, "no edit block"),
    "python instead of a block": ("```python\ndef solve(m, q): ...\n```", Outcome.NO_EDIT, "no edit block"),
    "no divider": ("<<<<<<< SEARCH\na\n>>>>>>> REPLACE", Outcome.MALFORMED, "block 1 (reply line 1) has no `=======`"),
    "other head": ("<<<<<<< HEAD\na\n=======\nb\n>>>>>>> REPLACE", Outcome.MALFORMED, "reply line 1 is not a marker"),
    "words after the head": ("x\n<<<<<<< SEARCH this\na\n=======\nb\n>>>>>>> REPLACE", Outcome.MALFORMED, "line 2"),
    "other tail": ("<<<<<<< SEARCH\na\n=======\nb\n>>>>>>> UPDATED\n", Outcome.MALFORMED, "reply line 5"),
    "tail alone": (GOOD + "\n>>>>>>> REPLACE\n", Outcome.MALFORMED, "never started"),
    "head inside a block": ("<<<<<<< SEARCH\na\n=======\n" + GOOD, Outcome.MALFORMED, "reply line 4"),
    "two dividers": (block("a\n=======\nb", "c"), Outcome.MALFORMED, "several `=======` lines (reply lines 3, 5)"),
    "NUL": (block("    return text", "    return '\0'"), Outcome.MALFORMED, "NUL character (reply line 4)"),
    "surrogate": (block("    return text", "    return '\udcff'"), Outcome.MALFORMED, "not valid Unicode"),
    "cut after the head": ("Words.\n<<<<<<< SEARCH\n    text", Outcome.TRUNCATED, "block 1 (reply line 2)"),
    "cut in the second block": (GOOD + "<<<<<<< SEARCH\na\n=======\nb", Outcome.TRUNCATED, "inside block 2"),
    "blank search": (block("  \n", "import json"), Outcome.EMPTY_SEARCH, "copy the line before them"),
    "no search line": ("<<<<<<< SEARCH\n=======\nx\n>>>>>>> REPLACE", Outcome.EMPTY_SEARCH, "block 1"),
    "only a file line": (block("# file: harness.py", "x"), Outcome.EMPTY_SEARCH, "block 1"),
    "nine blocks": (GOOD * (MAX_BLOCKS + 1), Outcome.TOO_MANY, "more than 8 blocks"),
    "many lines": (block("    return text", "x\n" * MAX_LINES), Outcome.TOO_MANY, "at most 400"),
    "10 MB": (GOOD + "x" * 10_000_000, Outcome.TOO_MANY, "at most 1,000,000 are read"),
    "stale": (block("    reply = model(PROMPT + question)", "x = 1"), Outcome.NOT_FOUND, "Line 13 holds it within"),
    "one word off": (block("def clean(text):\n    text = text.lstrip()", "x"), Outcome.NOT_FOUND, "Closest is line 8"),
    "close": (block("    replay = modle(question)", "x"), Outcome.NOT_FOUND, "line 17: `reply = model(question)`"),
    "like nothing": (block("@@@@ %%%%", "x"), Outcome.NOT_FOUND, "Nothing in it is like"),
    "past the end": (block("    return clean(reply)\n    x = 1", "y"), Outcome.NOT_FOUND, "file ends at line 18"),
    "unknown file": (block("# file: other.py\nx", "y"), Outcome.NOT_FOUND, "edits cannot create files"),
    "path as file": (block("# file: ../harness.py\nx", "y"), Outcome.NOT_FOUND, "there is no file `../harness.py`"),
    "dropped line": (block("    for _ in range(3):\n            break", "x"), Outcome.NOT_FOUND, "line 15"),
    "elision": (block("def clean(text):\n    ...\n    return text", "x"), Outcome.NOT_FOUND, "Closest is line 8"),
    "applied before": (block("    text.strip()", "    text = text.strip()"), Outcome.ALREADY_APPLIED, "at line 8"),
    "same block twice": (GOOD + GOOD, Outcome.OVERLAP, "blocks 1 and 2 both change line 13"),
    "crossing": (
        block("    text = text.strip()\n    return text", "    return text") + block("    return text", "    return 1"),
        Outcome.OVERLAP,
        "line 9 of harness.py",
    ),
    "same text": (block("    return text", "    return text"), Outcome.NOOP, "changes nothing"),
    "only a comment": (block("    return text", "    # done\n    return (text)"), Outcome.NOOP, "comments"),
    "only a docstring": (block('"""Ask once."""', '"""Ask just once."""'), Outcome.NOOP, "docstrings"),
    "solve renamed": (block(SOLVE, "def answer(model, question):"), Outcome.CONTRACT, "no top-level `solve`"),
    "one parameter": (block(SOLVE, "def solve(model):"), Outcome.CONTRACT, "it takes `model`"),
    "third parameter": (block(SOLVE, "def solve(model, question, k):"), Outcome.CONTRACT, "`model, question, k`"),
    "async": (block(SOLVE, "async " + SOLVE), Outcome.CONTRACT, "line 12"),
    "no Python": (block("    return text", "    return text)"), Outcome.SYNTAX, "line 9 of harness.py"),
    "too deep": (block("    return text", "    return " + "-" * 60_000 + "1"), Outcome.SYNTAX, "nested too deeply"),
    "too large": (block("    return text", "    return '" + "é" * 32_700 + "'"), Outcome.CONTRACT, "at most 65,536"),
    "good": (GOOD, Outcome.SCORED, ""),
}  # fmt: skip


@pytest.mark.parametrize("name", OUTCOMES)
def test_outcome_and_hint(name: str) -> None:
    text, outcome, words = OUTCOMES[name]
    proposal = propose(text)
    assert proposal.outcome == outcome
    assert words in proposal.detail
    assert len(proposal.detail) < 500
    applied = outcome in {Outcome.NOOP, Outcome.DUPLICATE, Outcome.SYNTAX, Outcome.SCORED} or (
        outcome is Outcome.CONTRACT and name != "too large"
    )
    assert (proposal.candidate is not None) == applied


def test_ambiguous_names_the_lines() -> None:
    text = "def solve(model, question):\n    x = 1\n    if x:\n        return ''\n    x = 1\n    return ''\n"
    proposal = propose(block("    x = 1", "    x = 2"), harness(text))
    assert proposal.outcome == Outcome.AMBIGUOUS
    assert "lines 2 and 5 of harness.py" in proposal.detail
    assert proposal.candidate is None


def test_places_that_overlap_each_other_are_ambiguous() -> None:
    text = "def solve(m, q):\n    return ''\n\nx = 1\nx = 1\nx = 1\n"
    assert propose(block("x = 1\nx = 1", "x = 2"), harness(text)).outcome == Outcome.AMBIGUOUS


def test_duplicate_answers_with_the_earlier_candidate() -> None:
    first = propose(GOOD)
    assert first.candidate is not None
    known = {program_digest(first.candidate): first.candidate.digest}
    again = propose(GOOD.replace("temperature=0.2", "temperature=0.20") + "\nBecause.", known=known)
    assert again.outcome == Outcome.DUPLICATE
    assert again.duplicate_of == first.candidate.digest
    assert again.candidate is not None and again.candidate.digest != first.candidate.digest


def test_a_lost_reply_is_not_read() -> None:
    proposal = propose_from_reply(PARENT, Reply(GOOD, error="HTTP 503"), index=3, proposer="p", known={})
    assert (proposal.outcome, proposal.detail, proposal.index) == (Outcome.LOST, "HTTP 503", 3)
    assert proposal.candidate is None


def test_every_outcome_of_this_room_is_reached() -> None:
    elsewhere = {Outcome.IMPORT, Outcome.CRASH, Outcome.TIMEOUT}
    here = {outcome for _, outcome, _ in OUTCOMES.values()} | {
        Outcome.AMBIGUOUS,
        Outcome.DUPLICATE,
        Outcome.LOST,
    }
    assert here == set(Outcome) - elsewhere


@pytest.mark.parametrize(
    ("text", "outcome"),
    [
        ("thinking about it", Outcome.TRUNCATED),
        ("<think>\nlong", Outcome.TRUNCATED),
        ("Words.\n<<<<<<", Outcome.TRUNCATED),
        ("Words.\n<<<<<<< SEAR", Outcome.TRUNCATED),
        (GOOD + "and then", Outcome.SCORED),
        ("<<<<<<< HEAD\nwords", Outcome.MALFORMED),
    ],
)
def test_a_reply_cut_at_the_token_limit(text: str, outcome: Outcome) -> None:
    assert propose(text, finish="length").outcome == outcome


def test_unfinished_reasoning_without_a_cut_is_no_edit() -> None:
    assert propose("<think>\n" + GOOD).outcome == Outcome.NO_EDIT


# --- reading ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        GOOD,
        GOOD.replace("\n", "\r\n"),
        "\ufeff" + GOOD,
        "Sure:\n```python\n" + GOOD + "```\nDone.",
        "- like so:\n" + "".join("   " + line + "\n" for line in GOOD.splitlines()),
        "<think>\nDraft:\n" + block("def clean(text):", "def f():") + "\n</think>\n" + GOOD,
        "<think>maybe <<<<<<< SEARCH</think>\n" + GOOD,
        "the template opened the tag\n<<<<<<< SEARCH\n</think>\n\n" + GOOD,
        "<think></think>" + GOOD,
        GOOD.replace("=======", "=====").replace(">>>>>>>", ">>>>>>>>>"),
        GOOD.replace("<<<<<<< SEARCH", "<<<<< SEARCH  "),
        GOOD.replace("SEARCH\n", "SEARCH\n# file: harness.py\n"),
    ],
)
def test_what_surrounds_a_block_is_ignored(text: str) -> None:
    proposal = propose(text)
    assert proposal.outcome == Outcome.SCORED, proposal.detail
    assert proposal.candidate == harness(GOOD_TEXT)


def test_a_file_line_names_another_file() -> None:
    proposal = propose(block("# file: helpers.py\n    return ''", "    return model(question)"), PAIR)
    assert proposal.outcome == Outcome.SCORED
    assert proposal.candidate is not None
    assert (
        proposal.candidate.text("helpers.py") == "def solve(model, question):\n    return model(question)\n"
    )
    assert proposal.candidate.text("harness.py") == PAIR.text("harness.py")


def test_text_of_another_file_is_not_edited_but_hinted_at() -> None:
    proposal = propose(block("    return ''", "    return model(question)"), PAIR)
    assert proposal.outcome == Outcome.NOT_FOUND
    assert "`# file: helpers.py`" in proposal.detail


def test_code_that_strips_reasoning_tags_is_not_taken_for_reasoning() -> None:
    reply = block("    text = text.strip()", "    text = text.split('</think>')[-1].strip()")
    assert propose(reply).outcome == Outcome.SCORED


MARKED = 'def solve(model, question):\n    return model("""\n<<<<<<< SEARCH\nold\n=======\nnew\n>>>>>>> REPLACE\n""")\n'


def test_a_harness_that_holds_markers_is_edited_with_longer_ones() -> None:
    edit = block("<<<<<<< SEARCH\nold\n=======", "<<<<<<< SEARCH\nolder\n=======", size=9)
    proposal = propose(edit, harness(MARKED))
    assert proposal.outcome == Outcome.SCORED, proposal.detail
    assert proposal.candidate == harness(MARKED.replace("old\n", "older\n"))


def test_a_divider_in_the_text_with_another_length_is_text() -> None:
    text = 'def solve(m, q):\n    return """\nTitle\n=====\n"""\n'
    proposal = propose(block("Title\n=====", "Heading\n======"), harness(text))
    assert proposal.outcome == Outcome.SCORED, proposal.detail
    assert proposal.candidate == harness(text.replace("Title\n=====", "Heading\n======"))


def test_an_indented_divider_in_the_text_is_text() -> None:
    text = 'def solve(m, q):\n    """\n    Title\n    =======\n    """\n    return ""\n'
    proposal = propose(block('    Title\n    =======\n    """\n    return \'\'', "x"), harness(text))
    assert proposal.outcome == Outcome.NOT_FOUND  # read as one block: the last line differs
    proposal = propose(
        block('    =======\n    """\n    return ""', '    =======\n    """\n    return q'), harness(text)
    )
    assert proposal.candidate == harness(text.replace('return ""', "return q"))


def test_an_indented_end_marker_in_the_text_is_text() -> None:
    text = 'def solve(m, q):\n    """\n    >>>>>>> REPLACE\n    """\n    return ""\n'
    proposal = propose(
        block('    """\n    return ""', '    >>>>>>> REPLACE\n    """\n    return q'), harness(text)
    )
    assert proposal.candidate == harness(
        text.replace('    """\n    return ""', '    >>>>>>> REPLACE\n    """\n    return q')
    )


# --- the two forgiven differences, and nothing looser ------------------------------------------------------------


@pytest.mark.parametrize(
    ("search", "replace"),
    [
        (
            "    reply = model(PROMPT + question)  # one call   ",
            "    reply = model(PROMPT + question, temperature=0.2)",
        ),
        ("reply = model(PROMPT + question)  # one call", "reply = model(PROMPT + question, temperature=0.2)"),
        (
            "\treply = model(PROMPT + question)  # one call",
            "\treply = model(PROMPT + question, temperature=0.2)",
        ),
        (
            "      reply = model(PROMPT + question)  # one call\n      for _ in range(3):",
            "      reply = model(PROMPT + question, temperature=0.2)\n      for _ in range(3):",
        ),
        (
            SOLVE + "\n\treply = model(PROMPT + question)  # one call\n\tfor _ in range(3):\n\t\tif reply:",
            SOLVE
            + "\n\treply = model(PROMPT + question, temperature=0.2)\n\tfor _ in range(3):\n\t\tif reply:",
        ),
    ],
    ids=["trailing blanks", "outdent", "tab", "indent", "tabs"],
)
def test_forgiven(search: str, replace: str) -> None:
    proposal = propose(block(search, replace))
    assert proposal.outcome == Outcome.SCORED, proposal.detail
    assert proposal.candidate == harness(GOOD_TEXT)


@pytest.mark.parametrize(
    "search",
    [
        "    REPLY = model(PROMPT + question)  # one call",
        "    reply = model(PROMPT+question)  # one call",
        "    reply = model(PROMPT + question)",
        "model(PROMPT + question)",
        "    reply = model(PROMPT + question)  # one call\n  for _ in range(3):",
        "\n    reply = model(PROMPT + question)  # one call",
        "def clean(text):\n    text = text.strip()\n\n    return text",
    ],
    ids=[
        "case",
        "inner blanks",
        "prefix",
        "part of a line",
        "ragged indent",
        "extra blank line",
        "blank line inside",
    ],
)
def test_not_forgiven(search: str) -> None:
    proposal = propose(block(search, "    return 'wrong'"))
    assert proposal.outcome == Outcome.NOT_FOUND
    assert proposal.candidate is None


def test_an_exact_place_beats_one_with_other_indentation() -> None:
    text = "x = 1\n\ndef solve(m, q):\n    x = 1\n    return ''\n"
    proposal = propose(block("x = 1", "x = 2"), harness(text))
    assert proposal.candidate == harness(text.replace("x = 1\n\n", "x = 2\n\n"))


def test_a_place_with_trailing_blanks_beats_one_with_other_indentation() -> None:
    text = "x = 1  \n\ndef solve(m, q):\n    x = 1\n    return ''\n"
    proposal = propose(block("x = 1", "x = 2"), harness(text))
    assert proposal.candidate == harness(text.replace("x = 1  \n\n", "x = 2\n\n"))


def test_two_places_with_other_indentation_are_ambiguous() -> None:
    text = "def solve(m, q):\n    x = 1\n    if x:\n        x = 1\n    return ''\n"
    assert propose(block("x = 1", "x = 2"), harness(text)).outcome == Outcome.AMBIGUOUS


def test_a_replacement_that_cannot_move_with_its_search_is_refused() -> None:
    proposal = propose(block("            return clean(reply)", "            x = 1\n    return x"))
    assert proposal.outcome == Outcome.NOT_FOUND
    assert "other indentation" in proposal.detail


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("{bom}{line}\r\n    return ''\r\n", "{bom}{new}\r\n    return ''\r\n"),
        ("{line}\n    return ''", "{new}\n    return ''"),
        ("a = 1\n{line}", "a = 1\n{new}"),
        ("a = 1\r\n{line}", "a = 1\r\n{new}"),
        ("a = 1\r\n{line}\nb = 2\r\n", "a = 1\r\n{new}\nb = 2\r\n"),
        ("a = '\x0c\x85'\n{line}\n", "a = '\x0c\x85'\n{new}\n"),
    ],
    ids=["CRLF and BOM", "no final newline", "last line", "last line CRLF", "mixed", "other line separators"],
)
def test_bytes_around_the_span_are_kept(before: str, after: str) -> None:
    line = "def solve(model, question):"
    parent = harness(before.format(bom="\ufeff", line=line, new=""))
    edited = apply_edits(parent, [Edit(None, line, "def solve(m, q):")])
    assert edited == harness(after.format(bom="\ufeff", new="def solve(m, q):", line=""))


def test_several_lines_into_a_crlf_file_end_in_crlf() -> None:
    edited = apply_edits(harness("a\r\nb\r\nc"), [Edit(None, "b\n", "x\ny\n")])
    assert edited == harness("a\r\nx\r\ny\r\nc")
    assert apply_edits(harness("a\r\nb"), [Edit(None, "b", "x\ny")]) == harness("a\r\nx\r\ny")


def test_no_line_and_one_blank_line_are_different_replacements() -> None:
    gone = parse_reply("<<<<<<< SEARCH\nb\n=======\n>>>>>>> REPLACE")
    blank = parse_reply("<<<<<<< SEARCH\nb\n=======\n\n>>>>>>> REPLACE")
    assert apply_edits(harness("a\nb\nc\n"), gone) == harness("a\nc\n")
    assert apply_edits(harness("a\nb\nc\n"), blank) == harness("a\n\nc\n")
    assert apply_edits(harness("b"), gone) == harness("")


# --- properties -------------------------------------------------------------------------------------------------

WORD = st.text("abcxyz=()<> \t#é\x0c", min_size=1, max_size=8).filter(str.strip)
LINE = st.one_of(
    st.just(""), st.integers(0, 2).flatmap(lambda n: WORD.map(lambda w: "    " * n + w.lstrip()))
)
LINES = st.lists(LINE, min_size=1, max_size=12)
TEXT = LINES.map("\n".join)


@st.composite
def spans(draw: st.DrawFn) -> tuple[list[str], int, int, list[str]]:
    """File lines, a span [start, stop) of them, and lines to put there."""
    lines = draw(LINES)
    start = draw(st.integers(0, len(lines) - 1))
    stop = draw(st.integers(start + 1, len(lines)))
    return lines, start, stop, draw(st.lists(LINE, max_size=4))


def count(lines: list[str], part: list[str]) -> int:
    return sum(lines[i : i + len(part)] == part for i in range(len(lines) - len(part) + 1))


@given(spans(), st.sampled_from(["\n", "\r\n"]), st.booleans(), st.sampled_from(["", "\ufeff"]))
def test_an_edit_replaces_exactly_its_span_or_nothing(
    case: tuple[list[str], int, int, list[str]], end: str, final: bool, bom: str
) -> None:
    lines, start, stop, new = case
    search = lines[start:stop]
    assume(any(line.strip() for line in search) and not any("\t" in line for line in lines + new))
    assume(final or lines[-1])  # a last empty line without an end is no line
    assume(final or len(lines) > 1 or end == "\n")  # without any line end there is none to keep
    parent = harness(bom + end.join(lines) + (end if final else ""))
    edits = [Edit(None, "".join(x + "\n" for x in search), "".join(x + "\n" for x in new))]
    read = parse_reply(render_edits(edits))
    assert [(e.search, e.replace) for e in read] == [(e.search, e.replace) for e in edits]
    if count(lines, search) > 1:
        with pytest.raises(EditError) as caught:
            apply_edits(parent, read)
        assert caught.value.outcome == Outcome.AMBIGUOUS
        return
    result = [*lines[:start], *new, *lines[stop:]]
    assert apply_edits(parent, read) == harness(bom + end.join(result) + (end if final and result else ""))


UNIQUE = st.lists(
    st.sampled_from([f"line_{i} = {i}" for i in range(20)]), min_size=4, max_size=12, unique=True
)


@given(UNIQUE, st.data())
def test_blocks_in_any_order_give_the_same_candidate(lines: list[str], data: st.DataObject) -> None:
    cuts = sorted(data.draw(st.sets(st.integers(0, len(lines)), min_size=2, max_size=6)))
    ranges = list(pairwise(cuts))
    new = [data.draw(st.lists(st.sampled_from(["new = 1", "line_3 = 3", ""]), max_size=3)) for _ in ranges]
    edits = [
        Edit(None, "\n".join(lines[a:b]), "".join(x + "\n" for x in n))
        for (a, b), n in zip(ranges, new, strict=True)
    ]
    expected = lines[: cuts[0]] + [x for n in new for x in n] + lines[cuts[-1] :]
    shuffled = data.draw(st.permutations(edits))
    # Spans are resolved on the parent: a replacement that holds another block's SEARCH text changes nothing.
    assert apply_edits(harness("".join(x + "\n" for x in lines)), shuffled) == harness(
        "".join(x + "\n" for x in expected)
    )


@given(UNIQUE, st.data())
def test_one_bad_block_and_nothing_applies(lines: list[str], data: st.DataObject) -> None:
    good = Edit(None, lines[0], "new = 1")
    bad = data.draw(
        st.sampled_from([Edit(None, "absent = 1", "x = 1"), Edit("other.py", lines[1], "x"), good])
    )
    for edits in ([good, bad], [bad, good]):
        proposal = propose(render_edits(edits), harness("\n".join(lines)))
        assert proposal.outcome in {Outcome.NOT_FOUND, Outcome.OVERLAP}
        assert proposal.candidate is None


@given(
    st.lists(st.text("ab \t", max_size=6), min_size=1, max_size=8), st.text("ab \t", min_size=1, max_size=6)
)
def test_what_applies_was_there_up_to_blanks(lines: list[str], search: str) -> None:
    try:
        edited = apply_edits(harness("\n".join(lines)), [Edit(None, search, "NEW")])
    except EditError:
        return
    was = [a for a, b in zip(lines, edited.files[0][1].split("\n"), strict=False) if a != b]
    assert [line.strip() for line in was] == [search.strip()]


MARKERS = [
    "<<<<<<< SEARCH",
    "  <<<<<<< SEARCH",
    "=======",
    ">>>>>>> REPLACE",
    "<<<<< SEARCH",
    "=====",
    ">>>>> REPLACE",
]
TOKENS = [
    "<<<<<<<",
    ">>>>>>>",
    "# file: harness.py",
    "    return text",
    "    text = text.strip()",
    "</think>",
    "```",
]
ODD = ["<think>", "\r\n", "\0", "\udc80", "\ufeff", "def solve(m, q): return ''\n", "import (\n", ">>>>>>>"]
PIECES = st.sampled_from([line + "\n" for line in MARKERS + TOKENS] + ODD)


@settings(max_examples=300)
@given(
    st.lists(st.one_of(PIECES, st.text(st.characters(), max_size=12)), max_size=30),
    st.sampled_from(["stop", "length"]),
)
def test_no_reply_raises(pieces: list[str], finish: str) -> None:
    proposal = propose("".join(pieces), finish=finish)
    assert (proposal.outcome == Outcome.SCORED) == (proposal.detail == "")
    assert len(proposal.summary) <= 100 and (proposal.summary.isprintable() or not proposal.summary)


@given(st.text(max_size=200), st.sampled_from([GOOD, block("    return text", "    return 'x'")]))
def test_no_parent_raises(text: str, reply: str) -> None:
    assert propose(reply, harness(text)).outcome in set(Outcome)


EDIT = st.builds(
    Edit,
    st.sampled_from([None, "helpers.py"]),
    st.lists(
        st.sampled_from(["a", "    b", "=======", "<<<<<<< SEARCH", ">>>>> REPLACE", "", "======"]),
        max_size=4,
    ).map(lambda x: "a\n" + "".join(line + "\n" for line in x)),
    st.lists(st.sampled_from(["c", "", "=======", ">>>>>>> REPLACE", "\td"]), max_size=4).map(
        lambda x: "".join(line + "\n" for line in x)
    ),
)


@given(st.lists(EDIT, min_size=1, max_size=MAX_BLOCKS))
def test_rendered_edits_read_back(edits: list[Edit]) -> None:
    read = parse_reply("Prose.\n\n" + render_edits(edits) + "\nMore prose.")
    assert [(e.file, e.search, e.replace) for e in read] == [(e.file, e.search, e.replace) for e in edits]


# --- programs ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("one", "two", "equal"),
    [
        ("x = 1\n", "x  =  1  # one\n", True),
        ("x = 'a'\n", 'x = "a"\n', True),
        ('def f():\n    "doc"\n', "def f():\n    pass\n", True),
        ('class A:\n    """doc"""\n    x = 1\n', "class A:\n    x = 1\n", True),
        ("x = 1\n", "x = 2\n", False),
        ("x = 1\n", "x = True\n", False),
        ("x = 1\n", "x = 1.0\n", False),
        ("x = 1\n", "x = '1'\n", False),
        ("x = None\n", "x = ...\n", False),
        ("x = 'a'\n", "x = u'a'\n", True),
        ("x = {**a}\n", "x = {a: a}\n", False),
        ("x = f(a)\n", "x = f(*a)\n", False),
        ("x = (\n", "x = ( \n", False),
        ('"""One."""\np = __doc__\n', '"""Two."""\np = __doc__\n', False),
        ("x = 0x" + "f" * 6000 + "\n", "x = 0x" + "f" * 6001 + "\n", False),
    ],
)
def test_program_digest(one: str, two: str, equal: bool) -> None:
    assert (program_digest(harness(one)) == program_digest(harness(two))) is equal


def test_program_digest_is_the_same_under_every_python() -> None:
    # Ledgers travel; checked with 3.11, 3.12 and 3.13.
    text = (
        "import re\n\nasync def other(): ...\n\nclass A(dict):\n    x: int = 1\n\n\n"
        "def solve(model, question, *, k=2):\n    try:\n        return model(f'{question!r:>10} {k}')\n"
        "    except ValueError as error:\n        return [*map(str, {**{}})][0] if k else lambda: None\n"
    )
    assert program_digest(harness(text)) == "fcb4d2acf342ca09f0b3962853f07c28e87f0a112a3fbe5e1f2a64dc19acf014"


def test_program_digest_knows_files_and_entry() -> None:
    assert program_digest(Harness((("a.py", "x"), ("b.py", "y")), "a.py")) != program_digest(
        Harness((("a.py", "x"), ("b.py", "y")), "b.py")
    )
    assert program_digest(Harness((("a.py", "x"),), "a.py")) != program_digest(
        Harness((("b.py", "x"),), "a.py")
    )


@pytest.mark.parametrize(
    "text",
    [
        "def solve(model, question, k=3): ...",
        "def solve(*args): ...",
        "solve = lambda model, question: ''",
        "solve = make(3)",
        "from helpers import solve",
        "from helpers import answer as solve",
        "try:\n    import json\nexcept ImportError:\n    pass\nelse:\n    def solve(m, q, /): return ''",
        "if True:\n    def solve(m, q): return ''",
        "def solve(model): ...\n@wrap\ndef solve(model): ...",
        "solve: object = make()",
        "\ufeffdef solve(m, q): return '\\d'",
    ],
)
def test_contract_kept(text: str) -> None:
    check_harness(harness(text))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "def f():\n    def solve(m, q): ...",
        "class A:\n    def solve(self, m, q): ...",
        "solve = 3",
        "solve: object",
        "solve = lambda q: ''",
        "def solve(m, q, *, k): ...",
        "def solve(m, q): ...\nasync def solve(m, q): ...",
        "import solve_it as other",
    ],
)
def test_contract_broken(text: str) -> None:
    with pytest.raises(EditError) as caught:
        check_harness(harness(text))
    assert caught.value.outcome == Outcome.CONTRACT


def test_a_missing_entry_breaks_the_contract() -> None:
    with pytest.raises(EditError, match="no entry file"):
        check_harness(Harness((("other.py", "def solve(m, q): ..."),)))


def test_the_size_limit_is_a_limit() -> None:
    head = "def solve(m, q): ...\n#"
    check_harness(harness(head + "x" * (HARNESS_MAX_BYTES - len(head))))
    with pytest.raises(EditError, match="65,537 bytes"):
        check_harness(harness(head + "x" * (HARNESS_MAX_BYTES - len(head) + 1)))


DEEP = {
    "plus": "x=" + "+".join(["1"] * 30_000),
    "attributes": "x=a" + ".b" * 30_000,
    "calls": "x=a" + "()" * 30_000,
    "minus": "x=" + "-" * 60_000 + "1",
    "parentheses": "x=" + "(" * 30_000,
    "comparison": "x=" + "<".join(["1"] * 30_000),
    "decorators": "@a\n" * 20_000 + "def f(): pass",
    "elif": "if 1:\n pass\n" + "elif 1:\n pass\n" * 4000,
    "digits": "x=" + "9" * 60_000,
    "hexadecimal": "x=0x" + "f" * 60_000,
    "surrogate": "x='\ud800'",
}


def test_no_source_breaks_the_host_parser() -> None:
    # In a fresh process: an interpreter that dies must fail this test, not the run.
    script = (
        "import sys, json\nfrom hl.edits import *\nfrom hl.types import Harness\n"
        "for text in json.load(sys.stdin):\n"
        "    h = Harness((('harness.py', 'def solve(m, q): ...\\n' + text),))\n"
        "    try:\n        check_harness(h); print('ok')\n"
        "    except EditError as e:\n        print(e.outcome)\n"
        "    program_digest(h)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        input=json.dumps(list(DEEP.values())),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    seen = dict(zip(DEEP, done.stdout.split(), strict=True))
    assert set(seen.values()) <= {"ok", "syntax"}
    assert seen["plus"] == seen["parentheses"] == seen["digits"] == seen["surrogate"] == "syntax"


@pytest.mark.parametrize(
    "text",
    [
        "<<<<<<< SEARCH\n" * 60_000,
        ">>>>> REPLACE\n" * 60_000,
        "".join(f"{'<' * (5 + i % 5)} SEARCH\n{'>' * (5 + (i + 1) % 5)} REPLACE\n" for i in range(25_000)),
        "<think>" * 140_000,
        "=" * 990_000,
        "<" * 990_000,
        "\n" * 990_000,
        block("x\n" * 190 + "y", "z"),
        block(" x\n" * 100 + "y", "z"),
    ],
    ids=[
        "heads",
        "tails",
        "lengths",
        "thinks",
        "run of =",
        "run of <",
        "newlines",
        "long search",
        "shifted search",
    ],
)
def test_hostile_replies_end_in_an_outcome(text: str) -> None:
    # Quadratic reading would take hours here.
    parent = harness("def solve(m, q): ...\n" + "x\n" * 30_000)
    assert propose(text, parent).outcome in {
        Outcome.MALFORMED,
        Outcome.TRUNCATED,
        Outcome.NO_EDIT,
        Outcome.NOT_FOUND,
    }


# --- summaries --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "summary"),
    [
        ("Ask twice and vote.\n" + GOOD, "Ask twice and vote."),
        ("## **Ask** twice\n\nmore", "Ask twice"),
        ("- 1. `clean` strips", "'clean' strips"),
        ("<think>\nhm\n</think>\n\nVote.\n", "Vote."),
        ("```\n" + GOOD + "```\nRun the code.", "Run the code."),
        ("```python\nprint(1)\n```\nRun the code.", "Run the code."),
        ("HL-Score: 1.0 at last", "HL Score 1.0 at last"),
        ("a\x1b[31mb\u202ec\udc80d\te", "a [31mb c d e"),
        ("---\n***\n", ""),
        ("x" * 300, "x" * 99 + "…"),
        (GOOD, ""),
    ],
)
def test_summary(text: str, summary: str) -> None:
    assert summarise_reply(text) == summary


def test_a_long_summary_is_cut_between_words() -> None:
    summary = summarise_reply("word " * 60)
    assert len(summary) <= 100 and summary.endswith("word…")


def test_a_reply_without_words_is_summed_up_by_its_lines() -> None:
    assert propose(GOOD).summary == "+1 -1 lines in harness.py"
