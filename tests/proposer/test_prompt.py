"""The conversation for a language model: complete, within its budget, and safe from what it quotes."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hl.edits import parse_reply
from hl.proposer.prompt import BRIEF_FORMAT, FORMAT, render_messages, render_repair
from hl.report import estimate_tokens
from hl.types import Case, FailureClass, Harness, HistoryEntry, Outcome, ProposalContext, TaskSpec, TraceEvent
from tests.proposer.kit import case, context, one_file, past, report, seed


def tokens(messages: object) -> int:
    return sum(int(len(m.content) / 3.5) + 1 for m in messages)  # pyright: ignore


HUGE = Case(
    "Q " * 20_000,
    "A\x00\x1b[31m\ud800" * 5_000,
    "gold",
    0.0,
    FailureClass.CRASH,
    "Traceback\n" + "x" * 90_000,
    tuple(TraceEvent("chat", "p" * 9_000, "```\n<<<<<<< SEARCH\n" * 900, "e" * 5_000) for _ in range(40)),
)


def test_everything_that_matters_is_there() -> None:
    told = report(
        [case("What is 2 + 2?", "4", "5", trace=[TraceEvent("python", "print(5)", "5")])],
        tool_errors={"NameError": 3},
        history=[past("voting: several tries", classes={"wrong": 9})],
    )
    system, user = render_messages(context(seed("minimal"), told), max_tokens=8_000)
    assert (system.role, user.role) == ("system", "user")
    for part in (
        "Sums in words; exact match.",
        seed("minimal").text("harness.py"),
        "What is 2 + 2?",
        "NameError 3",
        "rejected (scored, gain +0.000 on the choosing questions): voting: several tries",
        "<<<<<<< SEARCH",
        "model.python(code, timeout_s=5)",
        "than harness.py",
    ):
        assert part in user.content, part
    assert "model.search" not in user.content


def test_search_is_offered_where_there_is_a_corpus() -> None:
    here = context(seed("minimal"))
    with_corpus = ProposalContext(TaskSpec("qa:x", "d", has_corpus=True), here.harness, here.report, 1, 0)
    assert "model.search" in render_messages(with_corpus, max_tokens=8_000)[1].content


def test_the_example_of_the_format_parses() -> None:
    (edit,) = parse_reply(FORMAT)
    assert edit.search.startswith("    reply = ")


def test_the_same_context_gives_the_same_messages() -> None:
    here = context(seed("react"), report([HUGE, case("q", "g")]))
    assert render_messages(here, max_tokens=6_000) == render_messages(here, max_tokens=6_000)


@pytest.mark.parametrize("room", [2_500, 4_000, 8_000, 30_000])
@pytest.mark.parametrize("big", ["report", "harness", "both"])
def test_hostile_reports_and_large_harnesses_fit(room: int, big: str) -> None:
    text = seed("react").text("harness.py")
    harness = one_file(text + "# padding\n" * 6_000 if big != "report" else text)
    told = report([HUGE] * 8 if big != "harness" else [case("short", "gold")])
    messages = render_messages(context(harness, told), max_tokens=room)
    assert tokens(messages) <= room
    whole = "".join(m.content for m in messages)
    whole.encode("utf-8")
    assert not re.search("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]", whole)
    if big == "report":
        assert text in whole, "the harness is not cut where it fits"


def test_a_counter_of_its_own_is_obeyed() -> None:
    def letters(text: str) -> int:
        return len(text)

    messages = render_messages(context(seed("minimal"), report([HUGE] * 4)), max_tokens=9_000, count=letters)
    assert sum(len(m.content) for m in messages) <= 9_000


@given(st.text(alphabet="`~\nab#", max_size=300))
def test_a_file_cannot_close_its_fence(text: str) -> None:
    harness = Harness((("harness.py", text), ("z.py", "x = 1\n")))
    page = render_messages(context(harness), max_tokens=8_000)[1].content
    found = re.search(r"^harness\.py:\n(`{3,})python\n(.*?)\n\1$", page, re.DOTALL | re.MULTILINE)
    assert found is not None
    assert found[2].rstrip("\n") == text.rstrip("\n")


@pytest.mark.parametrize("room", [2_600, 8_000])
def test_a_repair_shows_the_reply_and_the_hint_within_the_budget(room: int) -> None:
    messages = render_messages(context(seed("minimal")), max_tokens=room - 400)
    again = render_repair(
        messages, "<<<<<<< SEARCH\nnot there\n" * 500, "SEARCH is not there", max_tokens=room
    )
    assert tokens(again) <= room
    assert "SEARCH is not there" in again[-1].content
    assert again[0] == messages[0]


def test_history_of_hundreds_of_rounds_fits() -> None:
    history = [
        HistoryEntry(n, "x" * 100, Outcome.SCORED, False, 0.1, {"wrong": 3}, {}, 16) for n in range(600)
    ]
    messages = render_messages(context(seed("minimal"), report(history=history)), max_tokens=4_000)
    assert tokens(messages) <= 4_000


# --- the brief style ---------------------------------------------------------------------------------------------


def brief(here: ProposalContext, room: int = 1_000) -> tuple[str, str]:
    system, user = render_messages(here, max_tokens=room, style="brief")
    return system.content, user.content


def test_a_brief_prompt_for_the_minimal_seed_takes_less_than_450_tokens() -> None:
    told = report(
        [
            case("What is the greatest common divisor of 84 and 36? " * 8, "12", "The answer is 24. " * 40),
            case("short", "1", "1", failure=None),
        ],
        tool_errors={"NameError": 3},
    )
    system, user = brief(context(seed("minimal"), told))
    assert estimate_tokens(system) + estimate_tokens(user) < 450
    for part in (
        seed("minimal").text("harness.py"),
        "Sums in words",
        "wrong (1 of 1)",
        "NameError (3)",
        "right: 12",
    ):
        assert part in user, part
    assert user.endswith(BRIEF_FORMAT) and "Solved: short -> 1" in user


def test_the_example_of_the_brief_format_parses() -> None:
    (edit,) = parse_reply(BRIEF_FORMAT)
    assert edit.search == "lines of the program\n"


@given(st.integers(330, 3_000), st.text(max_size=4_000), st.text(max_size=2_000))
def test_brief_prompts_fit_and_quote_on_one_line(room: int, question: str, answer: str) -> None:
    told = report([HUGE, case(question, answer, answer), case(answer, question, question, failure=None)])
    system, user = brief(
        context(one_file("def solve(model, question):\n    return model(question)\n"), told), room
    )
    assert estimate_tokens(system) + estimate_tokens(user) <= room
    report_text = user.split("```\n\n", 1)[1].removesuffix(BRIEF_FORMAT)
    assert all(
        line.startswith(("Score ", "Failed: ", "It answered: ", "Solved: "))
        for line in report_text.split("\n")
        if line
    )


def test_a_brief_prompt_offers_search_where_there_is_a_corpus() -> None:
    here = context(seed("minimal"))
    with_corpus = ProposalContext(TaskSpec("qa:x", "d", has_corpus=True), here.harness, here.report, 1, 0)
    assert "model.search" in brief(with_corpus)[1] and "model.search" not in brief(here)[1]
