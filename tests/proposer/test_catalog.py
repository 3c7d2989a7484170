"""The catalog: every revision applies to every harness, in chains, and the order follows the report."""

import asyncio
from collections.abc import Iterator, Sequence
from itertools import islice

import pytest

from hl.edits import apply_edits, parse_reply, program_digest, propose_from_reply, summarise_reply
from hl.proposer.catalog import CatalogProposer
from hl.proposer.catalog.evidence import read_evidence, summary_names
from hl.proposer.catalog.order import revisions
from hl.proposer.catalog.proposer import NOTHING_LEFT, propose_all, render_revision
from hl.proposer.catalog.steps import PASSAGES
from hl.types import (
    ChatRequest,
    FailureClass,
    Harness,
    HistoryEntry,
    Message,
    Outcome,
    ProposalContext,
    Report,
    Status,
    TraceEvent,
)
from tests.proposer.kit import SEED_NAMES, case, context, one_file, past, report, run, seed, solved

FRUITFUL = report(
    [
        *(case(f"Turn round the word w{n}rd", f"dr{n}w", failure=f) for n, f in enumerate(FailureClass)),
        solved("What is 4 + 5?", "print(4 + 5)", "9"),
        solved("What is 40 + 5?", "print(40 + 5)", "45"),
    ],
    tool_errors={"NameError": 2, "SyntaxError": 1},
)
"""A report that gives every revision a reason."""
OWN = '''\
import re  # a user's harness, with habits of its own
from functools import partial as Counter

PRELUDE = "never mind"


class Warmer: ...


def run_code(model, kode: "ä"): return model.python(kode, timeout_s=3).stdout


# Solves.
def solve(model, question, depth=0):
    """Solve, at most twice."""
    def inner():
        return question
    if depth > 1: return ""
    reply = model(inner())
    if "`" in reply: return (run_code(model, reply.strip("`")) or
                             solve(model, question, depth + 1))
    return reply
'''
ODD = {
    "own": OWN,
    "no final newline": "def solve(model, question):\n    return model(question)",
    "lambda": "ask = lambda m, q: m(q)\nsolve = lambda model, question: ask(model, question)\n",
    "crlf": "import re\r\n\r\n\r\ndef solve(model, question):\r\n    return model(question)\r\n",
    "repeats": "def a(m, q):\n    return m(q)\n\n\ndef solve(model, question):\n    return a(model, question)\n\n\n"
    "def b(m, q):\n    return m(q)\n",
}
BROKEN = {
    "syntax": "def solve(model question)",
    "empty": "",
    "no solve": "x = 1\n",
    "form feed": "x = 1\n\x0cdef solve(m, q):\n    return m(q)\n",
}


def all_revisions(
    harness: Harness, told: Report = FRUITFUL, *, start: int = 0, step: int = 1
) -> Iterator[tuple[str, Harness]]:
    """Summary and candidate of every revision that fits a harness, or of every so many."""
    here = context(harness, told)
    evidence = read_evidence(here)
    if evidence is None:
        return
    for revision in islice(revisions(evidence), start, None, step):
        reply = render_revision(evidence, revision)
        if reply is not None:
            yield check_reply(harness, reply)


def check_reply(parent: Harness, text: str) -> tuple[str, Harness]:
    """The reply applies and makes another program that keeps the contract."""
    from hl.types import Reply

    proposal = propose_from_reply(parent, Reply(text), index=0, proposer="catalog", known={})
    assert proposal.outcome is Outcome.SCORED, (proposal.outcome, proposal.detail, text)
    assert proposal.candidate is not None
    assert proposal.summary and len(proposal.summary) <= 100
    assert summary_names(proposal.summary), proposal.summary
    return proposal.summary, proposal.candidate


def names(replies: Sequence[str]) -> list[str]:
    return [summarise_reply(r).split(":")[0] for r in replies]


def best(harness: Harness, told: Report, count: int = 4) -> list[str]:
    return names(propose_all(context(harness, told), count))


@pytest.mark.parametrize("name", SEED_NAMES)
def test_a_seed_gets_at_least_twelve_different_revisions(name: str) -> None:
    found = list(all_revisions(seed(name)))
    assert len({program_digest(h) for _, h in found}) >= 12
    assert len({s.split(":")[0] for s, _ in found}) == len(found)


@pytest.mark.parametrize("name", SEED_NAMES)
def test_revisions_apply_to_what_revisions_made(name: str) -> None:
    """Every first step, a seventh of the second steps after each, and from there a third."""
    chains = 0
    for i, (_, once) in enumerate(all_revisions(seed(name))):
        for j, (_, twice) in enumerate(all_revisions(once, start=i % 7, step=7)):
            for _ in islice(all_revisions(twice, start=(i + 5 * j) % 17), 1):
                chains += 1
    assert chains > 20


@pytest.mark.parametrize("name", ODD)
def test_harnesses_of_other_hands_are_revised_too(name: str) -> None:
    harness = one_file(ODD[name])
    found = list(all_revisions(harness))
    assert len(found) >= 6
    for _, once in found:
        assert list(islice(all_revisions(once, start=2), 1))


@pytest.mark.parametrize("name", BROKEN)
def test_what_is_no_harness_gets_no_edit(name: str) -> None:
    assert propose_all(context(one_file(BROKEN[name]), FRUITFUL), 8) == []


def test_other_files_of_a_harness_are_left_alone() -> None:
    harness = Harness(
        (
            (
                "harness.py",
                "from parts import ask\n\n\ndef solve(model, question):\n    return ask(model, question)\n",
            ),
            ("parts.py", "def ask(model, question):\n    return model(question)\n"),
        )
    )
    for _, candidate in all_revisions(harness):
        assert candidate.text("parts.py") == harness.text("parts.py")


def test_revised_harnesses_run() -> None:
    """Chains of two on a real sandbox, with a model that writes programs: no crash, and the program's output wins."""

    def talk(messages: Sequence[Message], request: ChatRequest) -> str:
        if "yes or no" in messages[-1].content:
            return "yes"
        return (
            "```python\nprint(6 * 7)\n```"
            if any("```" in m.content for m in messages)
            else "<answer>42</answer>"
        )

    tried = 0
    for i, (_, once) in enumerate(all_revisions(seed("minimal"))):
        for _, twice in islice(all_revisions(once, start=(i * 7) % 23), i % 2):
            (attempt,) = run(twice, talk, "What is 6 times 7?")
            assert attempt.status is Status.OK, attempt.error
            assert "42" in attempt.answer
            tried += 1
    assert tried >= 5


def test_the_ablated_harness_answers_nothing() -> None:
    """Without a model there is no answer: no revision computes one by itself."""
    for _, candidate in all_revisions(seed("interpreter"), step=5):
        (attempt,) = run(candidate, lambda m, r: "", "What is 4 + 5?")
        assert attempt.status is Status.OK
        assert attempt.answer == ""


# --- the order -------------------------------------------------------------------------------------------------


def test_wrong_answers_without_code_call_for_the_interpreter_loop() -> None:
    first, *rest = best(seed("minimal"), report(classes={"wrong": 8}))
    assert first == "interpreter loop"
    assert not any(" + " in name for name in rest), "single ideas first"


def test_answers_that_were_there_call_for_extraction_first() -> None:
    told = report(classes={"extraction": 6, "wrong": 2})
    assert best(seed("cot"), report([case("q")] * 8, classes=told.classes))[0] == "answer extraction"


def test_a_rejected_loop_that_lacked_names_is_proposed_again_with_imports() -> None:
    history = [
        past("interpreter loop: x", classes={"wrong": 16}, tool_errors={"NameError": 16}),
        past("solved examples: x", accepted=True),
    ]
    for told in (history, history[:1]):
        assert (
            best(seed("minimal"), report(classes={"wrong": 8}, history=told))[0]
            == "interpreter loop + import prelude"
        )


def test_what_the_history_shows_is_combined() -> None:
    history = [
        past(
            "interpreter loop: x",
            classes={"format": 3, "wrong": 9},
            tool_errors={"NameError": 4, "SyntaxError": 2},
        )
    ]
    assert best(seed("minimal"), report(classes={"wrong": 8}, history=history))[0] == (
        "interpreter loop + import prelude + bracket repair + number format"
    )


@pytest.mark.parametrize(
    ("told", "wanted"),
    [
        (report(classes={"wrong": 8}, tool_errors={"NameError": 5}), "import prelude"),
        (report(classes={"wrong": 8}, tool_errors={"SyntaxError": 5}), "bracket repair"),
        (report(classes={"format": 3, "wrong": 5}), "number format"),
        (
            report([case("q", trace=[TraceEvent("chat", "q", "print(4)")])] * 3, classes={"empty": 3}),
            "code fences",
        ),
        (report([solved("What is 4 + 5?", "print(4 + 5)", "9")]), "bootstrapped demonstrations"),
    ],
)
def test_a_loop_is_mended_where_the_report_points(told: Report, wanted: str) -> None:
    assert best(seed("interpreter"), told)[0] == wanted


def test_the_commoner_failure_comes_first() -> None:
    told = report(classes={"format": 2, "wrong": 6}, tool_errors={"NameError": 5})
    assert best(seed("interpreter"), told)[:2] == ["import prelude", "number format"]


def test_gold_answers_give_synthesised_demonstrations() -> None:
    told = report([case(f"Turn round the word w{n}rd", f"dr{n}w") for n in range(6)])
    assert "synthesised demonstrations" in best(seed("interpreter"), told)
    hidden = report([case(f"Turn round the word w{n}rd", None) for n in range(6)])
    assert "synthesised demonstrations" not in best(seed("interpreter"), hidden, 40)


def test_tried_revisions_are_not_repeated_on_the_same_parent() -> None:
    told = report(classes={"wrong": 8})
    parent = seed("interpreter")
    before = best(parent, told, 30)
    history = [past(f"{name}: words", number=2) for name in before[:3]]
    after = best(parent, report(classes={"wrong": 8}, history=history), 30)
    assert not set(before[:3]) & set(after)
    # Once the parent has changed, the same ideas may be tried again.
    moved = [*history, past("number format: words", number=3, accepted=True)]
    assert set(before[:3]) <= set(best(parent, report(classes={"wrong": 8}, history=moved), 30))


def test_drawn_revisions_may_come_back_with_other_examples_but_last() -> None:
    cases = [solved(f"What is {n} + 5?", f"print({n} + 5)", str(n + 5)) for n in (3, 4)]
    history = [past("bootstrapped demonstrations: x", number=2)]
    found = best(seed("interpreter"), report(cases, history=history), 60)
    assert found.index("bootstrapped demonstrations") > len(found) // 2


# --- the proposer ----------------------------------------------------------------------------------------------


def ask(here: ProposalContext, count: int) -> list[str]:
    async def go() -> list[str]:
        proposer = CatalogProposer()
        return [(await proposer.propose(here, i, count)).text for i in range(count)]

    return asyncio.run(go())


def test_eight_proposals_are_eight_programs_and_repeat_exactly() -> None:
    here = context(seed("minimal"), FRUITFUL)
    replies = ask(here, 8)
    candidates = [apply_edits(here.harness, parse_reply(r)) for r in replies]
    assert len({program_digest(c) for c in candidates}) == 8
    assert ask(here, 8) == replies
    assert ask(here, 4) == replies[:4]


def test_a_proposer_serves_one_context_after_another() -> None:
    async def go() -> tuple[str, str]:
        proposer = CatalogProposer()
        one = await proposer.propose(context(seed("minimal")), 0, 1)
        two = await proposer.propose(context(seed("interpreter"), FRUITFUL), 0, 1)
        again = await proposer.repair(context(seed("interpreter")), 0, two, "hint")
        assert again is two
        return one.text, two.text

    one, two = asyncio.run(go())
    assert check_reply(seed("minimal"), one) and check_reply(seed("interpreter"), two)


def test_beyond_its_last_revision_it_says_so_and_edits_nothing() -> None:
    text = ask(context(one_file("x = 1\n")), 1)[0]
    assert text == NOTHING_LEFT
    with pytest.raises(Exception, match="no edit block"):
        parse_reply(text)


def test_history_entries_of_others_do_no_harm() -> None:
    strange = [
        HistoryEntry(1, s, Outcome.SCORED, False, None, {}, {})
        for s in ("", ":", " + ", "\u202e: x", "a" * 400)
    ]
    assert len(best(seed("minimal"), report(classes={"wrong": 8}, history=strange))) == 4


# --- found passages ----------------------------------------------------------------------------------------------


def with_passages(harness: Harness) -> Harness | None:
    evidence = read_evidence(context(harness))
    assert evidence is not None
    reply = render_revision(evidence, (PASSAGES,))
    return None if reply is None else check_reply(harness, reply)[1]


def test_later_calls_get_the_passages_and_queries_the_summaries() -> None:
    candidate = with_passages(seed("retrieval"))
    assert candidate is not None
    prompts: list[str] = []

    def talk(messages: Sequence[Message], request: ChatRequest) -> str:
        prompts.append(messages[-1].content)
        return f"A summary, number {len(prompts)}." if "Summarise" in prompts[-1] else "Port Vail"

    (attempt,) = run(candidate, talk, "Where was Ada Berg born?")
    assert attempt.answer == "Port Vail"
    assert [e.kind for e in attempt.trace] == ["search", "chat", "search", "chat", "chat"]
    assert attempt.trace[2].request == "Where was Ada Berg born? A summary, number 1."
    assert "A summary" not in prompts[2] and prompts[2].count("She was born in Port Vail.") == 2


def test_equal_and_short_summaries_lose_and_harm_nothing() -> None:
    candidate = with_passages(seed("retrieval"))
    assert candidate is not None
    for summary, handed_on in (("The same summary.", True), ("a", False), ("", False)):
        prompts: list[str] = []

        def talk(
            messages: Sequence[Message],
            request: ChatRequest,
            summary: str = summary,
            seen: list[str] = prompts,
        ) -> str:
            seen.append(messages[-1].content)
            return summary if "Summarise" in seen[-1] else "Port Vail"

        (attempt,) = run(candidate, talk, "Where?")
        assert attempt.answer == "Port Vail"
        assert ("This town lies on the Orr." in prompts[2]) == handed_on


MAPPING = """\
def solve(model, question):
    found = model.search(question, 2)
    notes = model.map(["Say less: " + p.text for p in found])
    turns = [{"role": "user", "content": "Notes: " + "; ".join(notes)}]
    return model.chat(turns) + "/" + model.sample("Then: " + notes[0] + question, 2)[1]
"""


def test_notes_made_side_by_side_and_turns_are_followed_too() -> None:
    candidate = with_passages(one_file(MAPPING))
    assert candidate is not None

    def talk(messages: Sequence[Message], request: ChatRequest) -> str:
        last = messages[-1].content
        if last.startswith("Say less"):
            return "A town, it seems." if "Orr" in last else "A painter, it seems."
        return f"{'painter. She was born' in last}{'the Orr' in last}"

    (attempt,) = run(candidate, talk, "Where?")
    assert attempt.answer == "TrueTrue/TrueFalse"


def test_only_a_harness_that_searches_is_given_passages() -> None:
    plain = "import re\n\n\ndef solve(model, question):\n    return str(re.search('a', model(question)))\n"
    for harness in (one_file(plain), seed("minimal"), seed("react")):
        assert with_passages(harness) is None
    once = with_passages(seed("retrieval"))
    assert once is not None and with_passages(once) is None


def test_passages_come_first_where_notes_are_written_between_search_and_answer() -> None:
    trace = [TraceEvent(kind, "a", "b") for kind in ("search", "chat", "search", "chat", "chat")]
    assert best(seed("retrieval"), report([case("Where?", "x", trace=trace)]))[0] == "passages handed on"
    direct = [TraceEvent(kind, "a", "b") for kind in ("chat", "search", "chat")]
    assert "passages handed on" not in best(
        seed("retrieval"), report([case("Where?", "x", trace=direct)]), 20
    )
