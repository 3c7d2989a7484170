"""Room 3, first half: ProposalContext -> messages. What a proposer model is shown, within a token budget.

Promises: the same context gives the same messages (no clock, no order of arrival); the harness is never cut, the report
is, so that it fits; nothing of the scoring, confirmation or evaluation questions is in it. It does not call a model.
"""

from collections.abc import Callable

from hl.edits import MAX_BLOCKS
from hl.report import estimate_tokens, render_report
from hl.types import HARNESS_MAX_BYTES, Harness, Message, ProposalContext

SYSTEM = f"""\
You revise a harness: a Python program around a frozen language model, the solver. The harness answers questions; its \
score is the mean grade of its answers. You are shown the task, the harness and a report of how it ran. Find out why \
questions fail, and write one revision that makes more of them succeed on questions nobody has seen yet.

# What a harness is

`solve(model, question) -> str` returns the answer. Standard library only, no files, no network, no processes, at \
most {HARNESS_MAX_BYTES // 1024} KiB. A new process runs it for every question; nothing is kept between. It may use:

- `model(prompt, *, system=None, max_tokens=None, temperature=None, stop=None) -> str`: one completion
- `model.chat(messages, **same) -> str`: a conversation, a list of {{"role": ..., "content": ...}}
- `model.sample(prompt, n, **same) -> list[str]` and `model.map(prompts, **same) -> list[str]`: several in parallel
- `model.python(code, timeout_s=5)`: runs code in a fresh sandbox; the result has `.stdout` and `.error` (a traceback)
- `model.search(query, k=5)`: passages with `.title` and `.text`, only where the task has a corpus
- `model.budget`: `.calls`, `.tokens` and `.seconds` that are left; over budget a call raises `model.BudgetExceeded`

The solver's settings are clamped to what the user allows. Most failures are broken hand-overs, not wrong \
algorithms: an answer that was there and was not extracted, code without its imports, a number in the wrong format.

Do not answer questions from a table, do not branch on particular questions, do not replace the solver by a program of \
yours: the revision is measured on other questions.

# How to write the revision

First one line that says what the revision does. Then one to {MAX_BLOCKS} blocks of this form, each naming text of the \
harness and its replacement:

<<<<<<< SEARCH
    reply = model(prompt)
=======
    reply = model(prompt, temperature=0.2)
>>>>>>> REPLACE

The text after SEARCH is copied from the harness character by character, indentation included, and must occur there \
exactly once: take in enough lines. Blocks must not overlap; all of them apply or none. A line `# file: NAME.py` right \
after SEARCH names another file of the harness than {{entry}}. Files cannot be created."""

REPAIR = """\
Your revision was not applied: {hint}

Write the whole revision again, every block of it, so that it applies to the harness as shown above."""


def render_messages(
    context: ProposalContext,
    *,
    max_tokens: int,
    report_tokens: int = 8192,
    count: Callable[[str], int] = estimate_tokens,
) -> tuple[Message, ...]:
    """The conversation that asks for one revision.

    Args:
        context: Task, harness, report and history.
        max_tokens: Most tokens of all messages together; the report shrinks to fit, down to its head.
        report_tokens: Most tokens of the report.
        count: Counts tokens; by default characters / 3.5.
    """
    system = SYSTEM.replace("{entry}", context.harness.entry)
    fixed = f"# Task\n\n{context.task.description}\n\n# Harness\n\n{render_harness(context.harness)}\n\n# Report\n\n"
    closing = "\n# Your revision\n"
    left = max_tokens - count(system) - count(fixed) - count(closing) - 32
    report = render_report(context.report, max_tokens=max(64, min(report_tokens, left)), count=count)
    return (Message("system", system), Message("user", fixed + report + closing))


def render_harness(harness: Harness) -> str:
    """All files of a harness in fences, without line numbers, the entry first."""
    names = sorted((name for name, _ in harness.files), key=lambda name: (name != harness.entry, name))
    return "\n\n".join(f"`{name}`:\n\n```python\n{harness.text(name)}```" for name in names)


def render_repair(hint: str) -> str:
    """The user turn of a repair."""
    return REPAIR.format(hint=hint.strip()[:4000])
