"""Harness and Report -> the conversation that asks a language model for an edit.

Promises: the same context gives the same messages, whatever the process; they fit a token budget (the harness is never
cut while it fits, the report is); nothing a harness or a model wrote can end a section early, since sections are fenced
with more backticks than they hold. There are two styles: `full`, and `brief` for models whose context or patience is
small (ours): a few hundred tokens. Does not call a model.
"""

import re
from collections.abc import Callable

from hl.report import estimate_tokens, render_brief_report, render_report
from hl.types import Message, ProposalContext

MIN_REPORT_TOKENS = 300
"""A report gets at least this much, even if the harness leaves less (ours)."""

CONTRACT = """\
A harness is a Python program (standard library only) that defines `solve(model, question) -> str`. It runs in a
sandbox without files or network; `model` is its only way out:

- `model(prompt, *, system=None, max_tokens=None, temperature=None, stop=None) -> str`: one chat completion
- `model.chat(messages, ...) -> str`: a conversation, a list of {"role", "content"}
- `model.sample(prompt, n, ...) -> list[str]`: n samples
- `model.map(prompts, ...) -> list[str]`: several prompts in parallel
- `model.python(code, timeout_s=5)`: runs a program in a fresh sandbox; the result has `.stdout` and `.error`
  (a traceback, or empty)
- `model.budget`: what is left, as `.calls`, `.tokens`, `.seconds`; over budget, calls raise `model.BudgetExceeded`

The solver behind `model` is a fixed language model. The harness is scored on other questions of the same task, so a
rule that helps on all of them is worth more than one that fits the questions below. Do not look up or branch on
questions that you see here."""
SEARCH_LINE = (
    "- `model.search(query, k=5)`: the best passages, each with `.title` and `.text`; at most 64 searches\n"
)

FORMAT = """\
Reply with one sentence that says what you change, then with one or more blocks. Each block names lines of the harness,
copied exactly, and what replaces them:

<<<<<<< SEARCH
    reply = model(question)
    return reply
=======
    reply = model(question, max_tokens=64)
    return reply.strip()
>>>>>>> REPLACE

SEARCH must match whole lines in exactly one place of the file. Blocks must not overlap; all apply or none. To insert,
repeat a neighbouring line in both halves. A line `# file: name.py` right after SEARCH names a file other than {entry}.
At most 8 blocks and 400 lines."""

SYSTEM = (
    "You improve agent harnesses: small programs around a fixed language model. You are shown a task, a harness and a "
    "report of how it ran. Find the commonest cause of failure and write the edit that removes it. Most failures are "
    "broken hand-overs between model and program, not wrong ideas."
)

BRIEF_SYSTEM = "You improve a Python program around a language model: reply with one edit."
BRIEF_FORMAT = """\
`model(prompt)`, `model.chat(messages)` and `model.python(code).stdout` may be called. Reply with one sentence, then:
<<<<<<< SEARCH
lines of the program
=======
what replaces them
>>>>>>> REPLACE"""
BRIEF_TASK_CHARS = 120
"""Longest description of the task in a brief prompt (ours)."""
BRIEF_REPORT_TOKENS = 140
"""Longest report in a brief prompt (ours)."""

Count = Callable[[str], int]


def split_context(context_tokens: int, reply_tokens: int) -> tuple[int, int]:
    """How a model's context is shared out: (tokens of the prompt, tokens of the reply).

    A reply may take at most half of a small context: an edit without its report is a guess.
    """
    reply = min(reply_tokens, max(1, context_tokens // 2))
    return context_tokens - reply, reply


def render_messages(
    context: ProposalContext,
    *,
    max_tokens: int,
    report_tokens: int = 6000,
    count: Count | None = None,
    style: str = "full",
) -> tuple[Message, ...]:
    """The conversation for one proposal. Training and use call this same function.

    Args:
        context: What to revise.
        max_tokens: Room for all messages together.
        report_tokens: Most tokens of the report.
        count: Counts tokens; by default characters / 3.5.
        style: `full` or `brief`.
    """
    measure = count or estimate_tokens
    if style == "brief":
        return _brief(context, max_tokens, min(report_tokens, BRIEF_REPORT_TOKENS), measure)
    fixed = measure(SYSTEM) + measure(_page(context, "", "")) + 16
    harness = _harness(context)
    room = max_tokens - fixed - MIN_REPORT_TOKENS
    harness = _fit(harness, max(64, room), measure)
    room = max_tokens - fixed - measure(harness)
    report = _clean(render_report(context.report, max_tokens=max(64, min(report_tokens, room)), count=count))
    page = _page(context, harness, report)
    # Counters are not additive at the seams: the report gives way.
    while measure(SYSTEM) + measure(page) > max_tokens and report:
        report = report[: int(len(report) * 0.9)]
        page = _page(context, harness, report)
    return (Message("system", SYSTEM), Message("user", page))


def _brief(
    context: ProposalContext, max_tokens: int, report_tokens: int, measure: Count
) -> tuple[Message, ...]:
    """The harness, a few lines of report, and the shape of a reply."""
    description = " ".join(_clean(context.task.description).split())
    if len(description) > BRIEF_TASK_CHARS:
        description = description[:BRIEF_TASK_CHARS].rsplit(" ", 1)[0] + " ..."
    head = f"Task: {description}"
    ways = BRIEF_FORMAT
    if context.task.has_corpus:
        ways = ways.replace(" and `model.python", ", `model.search(query)` and `model.python")
    fixed = measure(BRIEF_SYSTEM) + measure(f"{head}\n\n\n\n\n\n{ways}") + 8
    report = _clean(render_brief_report(context.report, max_tokens=report_tokens, count=measure))
    harness = _fit(_harness(context), max(64, max_tokens - fixed - measure(report)), measure)
    while fixed + measure(harness) + measure(report) > max_tokens and report:
        report = report[: int(len(report) * 0.9)]
    return (
        Message("system", BRIEF_SYSTEM),
        Message("user", f"{head}\n\n{harness}\n\n{report}\n\n{ways}"),
    )


def render_repair(
    messages: tuple[Message, ...], reply: str, hint: str, *, max_tokens: int, count: Count | None = None
) -> tuple[Message, ...]:
    """The same conversation with the reply that did not apply and what was wrong with it."""
    measure = count or estimate_tokens
    hint = _clean(hint)[:2000]
    room = max_tokens - sum(measure(m.content) for m in messages) - measure(hint) - 96
    told = f"That edit could not be used: {hint}\n\nWrite the whole edit again, in the same format."
    if room < 64:
        # No room to repeat it: the hint alone says enough.
        return (*messages[:-1], Message("user", f"{messages[-1].content}\n\nAn earlier try failed. {told}"))
    return (*messages, Message("assistant", _fit(_clean(reply), room, measure)), Message("user", told))


def _page(context: ProposalContext, harness: str, report: str) -> str:
    contract = CONTRACT
    if context.task.has_corpus:
        contract = contract.replace("- `model.budget`", SEARCH_LINE + "- `model.budget`")
    return (
        f"# Task\n\n{_clean(context.task.name)}: {_clean(context.task.description)}\n\n"
        f"# The harness contract\n\n{contract}\n\n"
        f"# The harness\n\n{harness}\n\n"
        f"# Report\n\n{report}\n\n"
        f"# Your reply\n\n{FORMAT.format(entry=_clean(context.harness.entry))}"
    )


def _harness(context: ProposalContext) -> str:
    """Every file, the entry first, in a fence that its text cannot close."""
    files = sorted(context.harness.files, key=lambda f: (f[0] != context.harness.entry, f[0]))
    parts: list[str] = []
    for name, text in files:
        fence = "`" * max(3, 1 + max((len(run) for run in re.findall(r"`+", text)), default=0))
        end = "" if text.endswith("\n") else "\n"
        parts.append(f"{_clean(name)}:\n{fence}python\n{_clean(text)}{end}{fence}")
    return "\n\n".join(parts)


def _fit(text: str, tokens: int, measure: Count) -> str:
    """The text, abridged in the middle until it fits."""
    while measure(text) > tokens and len(text) > 64:
        keep = max(24, int(len(text) * 0.42))
        text = f"{text[:keep]}\n[... cut ...]\n{text[-keep:]}"
    return text


def _clean(text: str) -> str:
    """Without what a tokenizer or a JSON body cannot carry: lone surrogates and control characters."""
    return "".join(
        c if c in "\n\t" or (c >= " " and not "\ud800" <= c <= "\udfff" and c != "\x7f") else "\ufffd"
        for c in text.replace("\r\n", "\n")
    )
