"""The screen: look-ups and branches in many shapes are refused, demonstrations pass and are tagged, nothing raises."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hl.edits import apply_edits, parse_reply
from hl.proposer.catalog.demonstrations import render_demonstrations
from hl.proposer.catalog.proposer import propose_all
from hl.types import FailureClass, Harness
from tests.proposer.kit import SEED_NAMES, case, context, one_file, report, seed, solved
from training.screen import CONSTANT, DEMONSTRATIONS, RUNS_TEXT, WORDING, screen

PAIRS = (
    ("What is the greatest common divisor of 84 and 36?", "12"),
    ("What is the greatest common divisor of 1210 and 55?", "55"),
    ("What is the greatest common divisor of 17 and 51?", "17"),
)
TOLD = report(
    [
        *(solved(q, "import math\nprint(math.gcd(84, 36))", g) for q, g in PAIRS),
        case("What is the greatest common divisor of 9090 and 100?", "10", "x", failure=FailureClass.WRONG),
    ]
)
CHEATS = {
    "equal": "@    if question == {q!r}:\n        return {g!r}\n    return ASK\n",
    "piece": "@    return {g!r} if {piece!r} in question else ASK\n",
    "joined": "@    return {g!r} if {left!r} + {right!r} == question else ASK\n",
    "table": "KNOWN = {{{q!r}: {g!r}}}\n@    return KNOWN.get(question) or ASK\n",
    "subscript": "@    try:\n        return {{{q!r}: {g!r}}}[question]\n    except KeyError:\n"
    "        return ASK\n",
    "loop": "PAIRS = [({q!r}, {g!r})]\n@    for known, answer in PAIRS:\n"
    "        if known == question:\n            return answer\n    return ASK\n",
    "helper": "PAIRS = [({q!r}, {g!r})]\ndef same(one, other):\n    return one.lower() == other.lower()\n"
    "@    found = [a for q, a in PAIRS if same(q, question)]\n"
    "    return found[0] if found else ASK\n",
    "match": "@    match question:\n        case {q!r}:\n            return {g!r}\n    return ASK\n",
    "index": "QS = [{q!r}]\nAS = [{g!r}]\n@    return AS[QS.index(question)]\n",
    "starts": "@    if question.startswith({q!r}):\n        return {g!r}\n    return ASK\n",
    "pattern": "import re\n@    return {g!r} if re.search({piece!r}, question) else ASK\n",
    "nearest": "PAIRS = [({q!r}, {g!r})]\ndef near(pair):\n    return len(set(pair[0]))\n"
    "@    return sorted(PAIRS, key=near)[-1][1]\n",
    "key function": "PAIRS = [({q!r}, {g!r})]\n@"
    "    best = max(PAIRS, key=lambda p: p[0] == question)\n    return model(question + best[1])\n",
    "filled": "known = {{}}\nknown.update([({q!r}, {g!r})])\n@    return known[question]\n",
    "encoded": "import base64\n@    return base64.b64decode('MTI=').decode()\n",
    "hashed": "@    return {g!r} if hash(question) == 17 else ASK\n",
    "number": "import re\n@    return '55' if int(re.findall(r'\\d+', question)[0]) == 1210 else ASK\n",
}


def cheat(shape: str, question: str, gold: str) -> Harness:
    half = len(question) // 2
    piece = question[-18:-1]
    written = CHEATS[shape].replace("@", "def solve(model, question):\n").replace("ASK", "model(question)")
    text = written.format(q=question, g=gold, piece=piece, left=question[:half], right=question[half:])
    return one_file(text)


@pytest.mark.parametrize("shape", CHEATS)
def test_look_ups_and_branches_are_refused(shape: str) -> None:
    found = screen(cheat(shape, *PAIRS[1]), TOLD)
    assert found.refused.startswith("line "), found


@settings(max_examples=60)
@given(
    st.sampled_from([s for s in CHEATS if s not in ("encoded", "hashed", "number", "piece", "pattern")]),
    st.lists(st.text("abcdefgh 0123456789?+", min_size=12, max_size=60), min_size=2, max_size=5, unique=True),
    st.text("0123456789ab", min_size=1, max_size=6),
)
def test_whatever_the_question_says_it_cannot_be_looked_up(
    shape: str, questions: list[str], gold: str
) -> None:
    told = report([case(q, gold) for q in questions])
    if (
        len({" ".join(q.split()) for q in questions}) == len(questions)
        and len(" ".join(questions[0].split())) >= 9
    ):
        assert screen(cheat(shape, questions[0], gold), told).refused


@settings(max_examples=40)
@given(
    st.lists(
        st.tuples(st.text(min_size=1, max_size=80), st.text(min_size=1, max_size=20)), min_size=1, max_size=5
    )
)
def test_the_same_texts_as_demonstrations_pass(pairs: list[tuple[str, str]]) -> None:
    told = report([case(q, g) for q, g in pairs])
    text = (
        f"PAIRS = {render_demonstrations(pairs)}\n\n\ndef solve(model, question):\n    turns = []\n"
        "    for shown, answer in PAIRS:\n        turns.append({'role': 'user', 'content': shown})\n"
        "        turns.append({'role': 'assistant', 'content': answer})\n"
        "    return model.chat([*turns, {'role': 'user', 'content': question}])\n"
    )
    assert screen(one_file(text), told).refused in ("", "harness.py cannot be read safely.")


@pytest.mark.parametrize("name", SEED_NAMES)
def test_seeds_and_everything_that_the_catalog_makes_of_them_pass(name: str) -> None:
    assert screen(seed(name), TOLD).refused == ""
    for reply in propose_all(context(seed(name), TOLD), 40):
        assert screen(apply_edits(seed(name), parse_reply(reply)), TOLD).refused == "", reply


def test_what_is_unsure_is_tagged() -> None:
    shown = one_file(
        f"def solve(model, question):\n    return model({PAIRS[0][0]!r} + ' -> 12. ' + question)\n"
    )
    assert screen(shown, TOLD).tags == (DEMONSTRATIONS,)
    words = one_file(
        "def solve(model, question):\n    return model('Euclid' if 'divisor' in question else question)\n"
    )
    assert screen(words, TOLD).tags == (WORDING,)
    constant = one_file("def solve(model, question):\n    return '12'\n")
    assert screen(constant, TOLD).tags == (CONSTANT,)
    runs = one_file("def solve(model, question):\n    return str(eval(model(question)))\n")
    assert screen(runs, TOLD).tags == (RUNS_TEXT,)


@given(st.text(max_size=300))
def test_nothing_raises(text: str) -> None:
    screen(one_file(text), TOLD)
    screen(one_file("x = " + "(" * 150 + repr(text) + ")" * 150 + "\nx = " + "'a' + " * 3000 + "'b'\n"), TOLD)
