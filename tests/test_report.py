"""Failure classes, what a report may hold, and that its text fits a budget."""

import asyncio
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hl.report import (
    build_report,
    classify,
    estimate_tokens,
    render_report,
    same_but_for_format,
    tool_error,
)
from hl.types import (
    Attempt,
    Case,
    FailureClass,
    Gold,
    Grade,
    HistoryEntry,
    Measurement,
    Outcome,
    Question,
    QuestionSet,
    Report,
    Role,
    Score,
    Status,
    TaskSpec,
    TraceEvent,
)

TASK = TaskSpec("jsonl:x", "Answer.")
QUESTION = Question("q1", "What is 6 * 7?")
GOLD = Gold("q1", "42", "{}")


def classed(
    status: Status, answer: str, trace: tuple[TraceEvent, ...] = (), gold: Gold = GOLD
) -> FailureClass:
    async def accepts(text: str) -> bool:
        return text == gold.answer

    return asyncio.run(classify(status, answer, trace, QUESTION, gold, accepts))


@pytest.mark.parametrize(
    ("status", "answer", "trace", "wanted"),
    [
        (Status.CRASH, "", (), FailureClass.CRASH),
        (Status.CONTRACT, "", (), FailureClass.CRASH),
        (Status.TIMEOUT, "", (), FailureClass.TIMEOUT),
        (Status.BUDGET, "", (), FailureClass.BUDGET),
        (Status.OK, " \n", (), FailureClass.EMPTY),
        (Status.OK, "7", (), FailureClass.WRONG),
        (Status.OK, "42.0", (), FailureClass.FORMAT),
        (Status.OK, "The answer is 42.", (), FailureClass.FORMAT),
        (Status.OK, "7", (TraceEvent("python", "print(42)", "41\n42\n"),), FailureClass.EXTRACTION),
        (Status.OK, "", (TraceEvent("chat", "q", "so it is\n42"),), FailureClass.EXTRACTION),
        (Status.OK, "7", (TraceEvent("search", "q", "42"),), FailureClass.WRONG),
    ],
)
def test_a_failure_gets_the_class_of_what_can_be_mended(
    status: Status, answer: str, trace: tuple[TraceEvent, ...], wanted: FailureClass
) -> None:
    assert classed(status, answer, trace) is wanted


def test_a_gold_that_stands_in_the_question_proves_nothing() -> None:
    trace = (TraceEvent("chat", "q", "6"),)
    assert classed(Status.OK, "7", trace, Gold("q1", "6", "{}")) is FailureClass.UNKNOWN


@pytest.mark.parametrize(
    ("answer", "gold", "same"),
    [
        ("1,024", "1024", True),
        ("49.0", "49", True),
        ("'HELLO'", "hello", True),
        ("x is abcd, I think", "abcd", True),
        ("1025", "1024", False),
        ("", "1024", False),
        ("9" * 5000, "1024", False),
        ("1e999999999", "10", False),
    ],
)
def test_format_is_the_same_content_in_another_shape(answer: str, gold: str, same: bool) -> None:
    assert same_but_for_format(answer, gold) is same


def test_the_tool_error_is_the_last_exception_type() -> None:
    events = (
        TraceEvent("python", "x", "", "Traceback\nSyntaxError: bad"),
        TraceEvent("python", "x", "", "Traceback\n  File\nNameError: name 'gcd' is not defined"),
        TraceEvent("chat", "x", "y"),
    )
    assert tool_error(events) == "NameError"
    assert tool_error(events[2:]) == ""
    assert tool_error((TraceEvent("python", "x", "", "<script>: evil"),)) == "Error"


def attempt(question_id: str, grade: float, failure: FailureClass | None, answer: str = "a") -> Attempt:
    return Attempt(question_id, 0, Status.OK, answer, Grade(grade, grade), 1, 10, 5, 0.1, failure=failure)


def measurement(**counts: int) -> Measurement:
    return Measurement(
        "h" * 64,
        Role.FEEDBACK,
        "q",
        ("q1", "q2"),
        (0.0, 1.0),
        "s",
        "n",
        "raw",
        {"ok": 2},
        counts,
        {},
        1,
        2,
        30,
        0.2,
        0.0,
        "t",
    )


BLOCK = QuestionSet(
    Role.FEEDBACK,
    (QUESTION, Question("q2", "What is 1 + 1?")),
    (GOLD, Gold("q2", "2", "{}")),
)


def test_a_report_shows_gold_only_where_it_may() -> None:
    runs = [attempt("q2", 1.0, None), attempt("q1", 0.0, FailureClass.WRONG)]
    shown = build_report(TASK, measurement(wrong=1), runs, BLOCK)
    assert [c.gold for c in shown.failures] == ["42"]
    assert [c.question for c in shown.successes] == ["What is 1 + 1?"]
    hidden = build_report(TASK, measurement(wrong=1), runs, BLOCK, show_gold=False)
    assert [c.gold for c in hidden.failures] == [None]
    goldless = build_report(replace(TASK, gold_visible=False), measurement(wrong=1), runs, BLOCK)
    assert [c.gold for c in goldless.failures] == [None]


def test_lost_attempts_are_not_reported_as_failures() -> None:
    lost = replace(attempt("q1", 0.0, None), status=Status.LOST)
    assert build_report(TASK, measurement(), [lost], BLOCK).failures == ()


def test_the_text_does_not_depend_on_the_order_of_arrival() -> None:
    runs = [attempt("q2", 1.0, None), attempt("q1", 0.0, FailureClass.WRONG)]
    one = render_report(build_report(TASK, measurement(wrong=1), runs, BLOCK))
    two = render_report(build_report(TASK, measurement(wrong=1), runs[::-1], BLOCK))
    assert one == two


NASTY = st.text(max_size=4000)
CASES = st.builds(
    Case,
    question=NASTY,
    answer=NASTY,
    gold=st.none() | NASTY,
    grade=st.floats(0, 1),
    failure=st.none() | st.sampled_from(FailureClass),
    error=NASTY,
    trace=st.lists(st.builds(TraceEvent, st.just("chat"), NASTY, NASTY), max_size=9).map(tuple),
)


@settings(max_examples=30, deadline=None)
@given(st.lists(CASES, max_size=12), st.integers(200, 4000))
def test_the_text_fits_its_budget_whatever_the_cases_hold(cases: list[Case], budget: int) -> None:
    history = tuple(
        HistoryEntry(i, "an edit " * 9, Outcome.SCORED, False, 0.1, {"wrong": 3}, {}, 16) for i in range(30)
    )
    report = Report(
        TASK, "h", Score(0.5, 0.1, 8), {"ok": 8}, {"wrong": 4}, {}, tuple(cases), (), 1, 1, 1, 0, history
    )
    assert estimate_tokens(render_report(report, max_tokens=budget)) <= budget


def test_earlier_edits_say_what_their_gain_is_worth_and_how_many_were_left_out() -> None:
    history = tuple(
        HistoryEntry(i, f"Idea {i}", Outcome.SCORED, True, 0.25, {}, {}, 16, confirmed=i == 29)
        for i in range(30)
    )
    report = Report(TASK, "h", Score(0.5, 0.1, 8), {"ok": 8}, {}, {}, (), (), 1, 1, 1, 0, history)
    text = render_report(report, max_tokens=4000)
    assert "the last 24 of 30" in text and "Idea 5" not in text
    assert "gain +0.250 confirmed): Idea 29" in text
    assert "gain +0.250 on the choosing questions): Idea 28" in text


def test_the_head_of_a_report_stays_when_cases_are_dropped() -> None:
    cases = tuple(Case("long " * 2000, "a", "g", 0.0, FailureClass.WRONG, "", ()) for _ in range(20))
    entry = HistoryEntry(1, "Run the code", Outcome.SCORED, False, None, {"empty": 9}, {"NameError": 9}, 16)
    report = Report(
        TASK, "h", Score(0.25, 0.1, 20), {"ok": 20}, {"wrong": 20}, {}, cases, (), 1, 1, 1, 0, (entry,)
    )
    text = render_report(report, max_tokens=700)
    assert "Score 0.250 ± 0.100 (n=20)." in text
    assert "Run the code" in text and "NameError 9" in text
    assert "of 20 shown" in text
