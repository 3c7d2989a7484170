"""Short replies of the catalog: they fit, they run, they differ between tasks, and ask nothing of long proposers."""

from collections.abc import Sequence

import pytest

from hl.edits import apply_edits, parse_reply
from hl.proposer.catalog.compact import GENERAL, one_line
from hl.proposer.catalog.proposer import propose_all
from hl.report import estimate_code_tokens
from hl.types import ChatRequest, Message, Report
from tests.proposer.kit import case, context, one_file, report, run, seed, solved
from training.patterns import classify
from training.screen import DEMONSTRATIONS, screen

LIMIT = 200
BITS = (1571405678, 1529733200, 188, 73, 9021, 7766551)


def bits() -> Report:
    asked = "How many 1 bits are there in the binary representation of the number"
    return report([case(f"{asked} {n}?", str(bin(n).count("1")), "x") for n in BITS])


def heads(told: Report, limit: int, name: str = "bare") -> list[str]:
    replies = propose_all(context(seed(name), told), 8, limit)
    return [r.split(":")[0] for r in replies if not limit or estimate_code_tokens(r) <= limit]


def test_on_a_short_harness_the_loop_fits_in_200_tokens_and_comes_first() -> None:
    told = report([case("2 + 2", "4", "5")])
    replies = propose_all(context(seed("bare"), told), 8, LIMIT)
    assert [r.split(":")[0] for r in replies[:3]] == list(GENERAL)
    assert all(estimate_code_tokens(r) <= LIMIT for r in replies[:3])
    assert classify(seed("bare"), apply_edits(seed("bare"), parse_reply(replies[0]))) == "interpreter loop"


def test_rows_of_different_tasks_differ() -> None:
    pairs = ((84, 36), (17, 45), (231, 19), (64, 1234), (900, 77))
    products = report([case(f"Multiply {a} by {b}.", str(a * b), "x") for a, b in pairs])
    assert heads(bits(), LIMIT)[:2] == ["compact loop", "loop on 1 shown"]
    one, other = (propose_all(context(seed("bare"), told), 8, LIMIT) for told in (bits(), products))
    assert "bin(" in one[1] and "prod(" in other[1] and "bin(" not in other[1]
    candidate = apply_edits(seed("bare"), parse_reply(one[1]))
    assert screen(candidate, bits()).tags == (DEMONSTRATIONS,) and not screen(candidate, bits()).refused


@pytest.mark.parametrize("limit", [0, 16_384])
def test_a_proposer_with_room_is_given_the_plain_loop(limit: int) -> None:
    assert not any("compact" in head or "shown" in head for head in heads(bits(), limit, "minimal"))
    assert heads(bits(), limit, "minimal") == heads(bits(), 0, "minimal")


def test_longer_replies_follow_those_that_fit() -> None:
    replies = propose_all(context(seed("bare"), bits()), 60, LIMIT)
    fits = [estimate_code_tokens(r) <= LIMIT for r in replies]
    assert fits == sorted(fits, reverse=True) and not all(fits)


@pytest.mark.parametrize("name", ["bare", "minimal", "cot", "self_consistency"])
def test_the_loop_runs_and_falls_back(name: str) -> None:
    def talk(messages: Sequence[Message], request: ChatRequest) -> str:
        last = messages[-1].content
        if last.startswith("Python: "):
            assert [m.role for m in messages] == ["user", "assistant"] * (len(messages) // 2) + ["user"]
            return "print(gcd(84, 36))" if "divisor" in last else "no program"
        return "Answer: <answer>7</answer>" if name != "bare" else "7"

    told = report([case("2 + 2", "4", "5")])
    first = propose_all(context(seed(name), told), 1, LIMIT)[0]
    candidate = apply_edits(seed(name), parse_reply(first))
    answers = [a.answer for a in run(candidate, talk, "The divisor of 84 and 36?", "else?")]
    assert answers[0] == "12" and "7" in answers[1]


def test_names_of_the_harness_are_kept_and_odd_shapes_left_alone() -> None:
    own = one_file("def solve(llm, q):\n    'Doc.'\n    code = q\n    return llm(code)\n")
    text = apply_edits(own, parse_reply(propose_all(context(own), 1, LIMIT)[0])).text("harness.py")
    assert "code_2 = llm.chat(" in text and '"Python: " + q]' in text
    for odd in ("def solve(model, question): return model(question)\n", "solve = lambda m, q: m(q)\n"):
        assert not any("compact" in r for r in propose_all(context(one_file(odd)), 8, LIMIT))
    assert not any("compact loop" in r for r in propose_all(context(seed("interpreter")), 8, LIMIT))


def test_demonstrations_of_one_line() -> None:
    assert one_line(("Task.\n\n Now add 1 and 2.\n", "import math\nprint(math.gcd(1, 2))")) == (
        "Now add 1 and 2.",
        "print(gcd(1, 2))",
    )
    assert one_line(("q", "n = 1\nprint(n)")) is None
    assert (
        one_line(('say """', "print(1)"))
        is one_line(("\\", "print(1)"))
        is one_line(("", "print(1)"))
        is None
    )
    assert not any(
        "loop on" in h and "shown" in h for h in heads(report([solved("q", "a = 1\nprint(a)", "1")]), LIMIT)
    )
