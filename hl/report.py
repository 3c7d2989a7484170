"""Room 2, second half: attempts -> Report. What a proposer may know of the parent's run, as nouns and as text.

Promises: failures are classified by what can be mended; the text fits a token budget and is the same for the same
report (no clock, no order of arrival); scoring questions, their answers and their gold never enter. It does not run
or grade anything itself: the classifier asks a callable.
"""

import json
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from hl.codec import encode
from hl.tasks.formats import canonical_gold
from hl.types import (
    Attempt,
    Case,
    FailureClass,
    Gold,
    HistoryEntry,
    Measurement,
    Question,
    QuestionSet,
    Report,
    Status,
    TaskSpec,
    TraceEvent,
)

SUCCESSES = 4
"""Most successful cases a report carries (ours)."""
HISTORY = 24
"""Most earlier edits that the text names; a report carries all (ours)."""
CHARS_PER_TOKEN = 3.5
"""For fitting text to a token budget without a tokenizer (ours: English and code lie near 3.5 to 4)."""
CODE_CHARS_PER_TOKEN = 2.75
"""The same for replies that hold code, on the safe side (SmolLM2's tokenizer comes to 2.78 on a dense edit)."""
SOLVED = 0.999
"""A grade from here on counts as solved: reasoning-gym's strict convention."""

Accepts = Callable[[str], Awaitable[bool]]
"""Whether the grader accepts a text as this question's answer."""


# --- failure classes -------------------------------------------------------------------------------------------


async def classify(
    status: Status, answer: str, trace: Sequence[TraceEvent], question: Question, gold: Gold, accepts: Accepts
) -> FailureClass:
    """Why a failed attempt failed.

    Args:
        status: How it ended; `lost` attempts have no class and must not be passed.
        answer: Its answer, empty unless it ended well.
        trace: Its calls.
        question: What was asked.
        gold: The reference.
        accepts: Asks the grader about another text.
    """
    by_status = {
        Status.CRASH: FailureClass.CRASH,
        Status.CONTRACT: FailureClass.CRASH,
        Status.TIMEOUT: FailureClass.TIMEOUT,
        Status.BUDGET: FailureClass.BUDGET,
    }
    if status in by_status:
        return by_status[status]
    for line in _last_lines(trace):
        if line != answer.strip() and await accepts(line):
            # A gold that the question itself spells out can be the last line by chance.
            return (
                FailureClass.UNKNOWN
                if gold.answer and gold.answer in question.text
                else FailureClass.EXTRACTION
            )
    if not answer.strip():
        return FailureClass.EMPTY
    bare = canonical_gold(gold).answer  # of a format-varied question too
    if bare is not None and same_but_for_format(answer, bare):
        return FailureClass.FORMAT
    return FailureClass.WRONG


def _last_lines(trace: Sequence[TraceEvent]) -> list[str]:
    """Distinct last lines of replies and tool outputs, newest first, at most four."""
    lines: list[str] = []
    for event in reversed(trace):
        if event.kind == "search":
            continue
        rows = [row.strip() for row in event.reply.splitlines() if row.strip()]
        if rows and rows[-1] not in lines and len(rows[-1]) <= 500:
            lines.append(rows[-1])
    return lines[:4]


_NUMBER = re.compile(r"[-+]?(?:\d[\d,_ ]*\d|\d)(?:\.\d+)?(?:[eE][-+]?\d{1,3})?")


def same_but_for_format(answer: str, gold: str) -> bool:
    """Whether the answer is the gold in another shape: number notation, case, punctuation, or words around it."""
    short = answer.strip()[:2000]
    wanted, given = _number(gold), _number(short)
    if wanted is not None:
        numbers = [given] if given is not None else [_number(m) for m in _NUMBER.findall(short)[-1:]]
        return any(n is not None and abs(n - wanted) <= 1e-9 * max(1.0, abs(wanted)) for n in numbers)
    bare_gold, bare_answer = _bare(gold), _bare(short)
    if not bare_gold:
        return False
    return bare_answer == bare_gold or (len(bare_gold) >= 4 and bare_gold in bare_answer)


def _bare(text: str) -> str:
    return re.sub(r"[\W_]+", "", text).casefold()


def _number(text: str) -> float | None:
    cleaned = text.strip().rstrip(".").replace(",", "").replace("_", "").replace(" ", "")
    if not re.fullmatch(r"[-+]?\d{1,300}(?:\.\d{1,300})?(?:[eE][-+]?\d{1,3})?", cleaned):
        return None
    return float(cleaned)


def tool_error(trace: Sequence[TraceEvent]) -> str:
    """The exception type of the last failed `model.python` run, such as `NameError`; empty if none failed."""
    for event in reversed(trace):
        if event.kind == "python" and event.error:
            last = event.error.strip().splitlines()[-1]
            name = last.split(":", 1)[0].strip().rsplit(".", 1)[-1]
            return name if re.fullmatch(r"[A-Za-z_]\w{0,60}", name) else "Error"
    return ""


# --- building --------------------------------------------------------------------------------------------------


def build_report(
    task: TaskSpec,
    measurement: Measurement,
    attempts: Sequence[Attempt],
    block: QuestionSet,
    history: Sequence[HistoryEntry] = (),
    *,
    show_gold: bool = True,
) -> Report:
    """The report on the parent's feedback run.

    Args:
        task: What was asked.
        measurement: Of exactly these attempts.
        attempts: On the feedback block, any order.
        block: The feedback block.
        history: Earlier edits of this chain, oldest first.
        show_gold: Whether gold answers of feedback questions may be shown (`report.gold`).
    """
    questions = {q.id: q for q in block.questions}
    golds = {g.id: g for g in block.golds}
    order = {q.id: i for i, q in enumerate(block.questions)}
    failures: list[Case] = []
    successes: list[Case] = []
    for attempt in sorted(attempts, key=lambda a: (order[a.question_id], a.trial)):
        if attempt.status is Status.LOST:
            continue
        gold = golds[attempt.question_id].answer if show_gold and task.gold_visible else None
        case = Case(
            question=questions[attempt.question_id].text,
            answer=attempt.answer,
            gold=gold,
            grade=attempt.grade.raw if measurement.mode == "raw" else attempt.grade.strict,
            failure=attempt.failure,
            error=attempt.error,
            trace=attempt.trace,
        )
        (successes if attempt.failure is None else failures).append(case)
    runs = max(1, len(attempts))
    return Report(
        task=task,
        harness=measurement.harness,
        score=measurement.score,
        statuses=dict(measurement.counts),
        classes=dict(measurement.classes),
        tool_errors=dict(measurement.tool_errors),
        failures=tuple(failures),
        successes=tuple(successes),
        calls_per_attempt=measurement.calls / runs,
        tokens_per_attempt=measurement.tokens / runs,
        seconds_per_attempt=measurement.seconds / runs,
        zero_call_share=measurement.zero_call_share,
        history=tuple(history),
    )


# --- rendering -------------------------------------------------------------------------------------------------


def render_json(report: Report) -> str:
    """The report as one JSON line (schema version inside)."""
    return json.dumps({"version": 1, "report": encode(report)}, ensure_ascii=False)


def render_report(
    report: Report, *, max_tokens: int = 6000, count: Callable[[str], int] | None = None
) -> str:
    """The report as text of at most `max_tokens` tokens.

    Cases are dropped from the end and their parts abridged in the middle until it fits; score, classes and history come
    first and stay.

    Args:
        report: What to render.
        max_tokens: The budget.
        count: Counts tokens; by default characters / 3.5.
    """
    measure = count or estimate_tokens
    head = _render_head(report)
    kinds = _by_class(report.failures)
    for chars in (1600, 900, 500, 250, 120):
        for shown in (len(kinds), 8, 5, 3, 1):
            if shown > len(kinds):
                continue
            parts = [head]
            if kinds:
                parts.append(f"## Failed questions ({shown} of {len(report.failures)} shown)\n")
                parts += [_render_case(c, chars) for c in kinds[:shown]]
            if report.successes:
                good = report.successes[: min(SUCCESSES, max(1, shown))]
                parts.append(f"## Solved questions ({len(good)} of {len(report.successes)} shown)\n")
                parts += [_render_case(c, chars) for c in good]
            text = "\n".join(parts)
            if measure(text) <= max_tokens:
                return text
    while head and measure(head) > max_tokens:
        head = head[: int(len(head) * 0.9)]
    return head


def render_brief_report(report: Report, *, max_tokens: int, count: Callable[[str], int] | None = None) -> str:
    """The report in a few lines: score, commonest failure, one failed question, and a solved one if there is room.

    Every quotation stands on one line, so that none can pass for a part of its surroundings.

    Args:
        report: What to render.
        max_tokens: The budget.
        count: Counts tokens; by default characters / 3.5.
    """
    measure = count or estimate_tokens
    score = report.score
    head = f"Score {score.mean:.2f} on {score.n} questions."
    if report.classes:
        name, times = min(report.classes.items(), key=lambda kv: (-kv[1], kv[0]))
        head += f" Commonest failure: {name} ({times} of {sum(report.classes.values())})."
    if report.tool_errors:
        name, times = min(report.tool_errors.items(), key=lambda kv: (-kv[1], kv[0]))
        head += f" Programs failed with {name} ({times})."
    failed = next(iter(_by_class(report.failures)), None)
    solved = min(report.successes, key=lambda c: len(c.question), default=None)
    tries = [(chars, solved) for chars in (240, 160, 100)] + [(chars, None) for chars in (160, 100, 60)]
    for chars, good in tries:
        lines = [head]
        if failed is not None:
            wanted = "" if failed.gold is None else f"; right: {_line(failed.gold, chars // 2)}"
            lines.append(f"Failed: {_line(failed.question, chars)}")
            lines.append(f"It answered: {_line(failed.answer, chars // 2) or '(nothing)'}{wanted}")
        if good is not None:
            lines.append(f"Solved: {_line(good.question, chars // 2)} -> {_line(good.answer, chars // 4)}")
        text = "\n".join(lines)
        if measure(text) <= max_tokens:
            return text
    while head and measure(head) > max_tokens:
        head = head[: int(len(head) * 0.9)]
    return head


def _line(text: str, limit: int) -> str:
    """One line of at most so many characters, abridged in the middle."""
    text = " ".join(text[: 20 * limit].split()) if len(text) > 20 * limit else " ".join(text.split())
    if len(text) <= limit:
        return text
    half = max(4, (limit - 5) // 2)
    return f"{text[:half]} ... {text[-half:]}"


def estimate_tokens(text: str) -> int:
    """Tokens of a text without a tokenizer: characters / 3.5, rounded up."""
    return int(len(text) / CHARS_PER_TOKEN) + 1


def estimate_code_tokens(text: str) -> int:
    """Tokens of a text that is mostly code: characters / 2.75, rounded up."""
    return int(len(text) / CODE_CHARS_PER_TOKEN) + 1


def _by_class(failures: Sequence[Case]) -> list[Case]:
    """Failures so ordered that the first few show as many classes as there are, the commonest class first."""
    sizes = Counter(str(c.failure) for c in failures)
    seen: Counter[str] = Counter()
    keyed: list[tuple[int, int, int, Case]] = []
    for i, case in enumerate(failures):
        kind = str(case.failure)
        keyed.append((seen[kind], -sizes[kind], i, case))
        seen[kind] += 1
    return [case for *_, case in sorted(keyed, key=lambda k: k[:3])]


def _counts(counts: Mapping[str, int]) -> str:
    return (
        ", ".join(f"{name} {n}" for name, n in sorted(counts.items(), key=lambda kv: (-kv[1], kv[0])))
        or "none"
    )


def _render_head(report: Report) -> str:
    score = report.score
    lines = [
        "## Result on the feedback questions",
        "",
        f"Score {score.mean:.3f} ± {score.se:.3f} (n={score.n}).",
        f"Attempts by status: {_counts(report.statuses)}.",
        f"Failures by class: {_counts(report.classes)}.",
    ]
    if report.tool_errors:
        lines.append(f"Errors reported by model.python: {_counts(report.tool_errors)}.")
    lines.append(
        f"Per attempt: {report.calls_per_attempt:.1f} model calls, {report.tokens_per_attempt:.0f} tokens."
    )
    if report.zero_call_share > 0:
        lines.append(f"{report.zero_call_share:.0%} of the attempts never asked the model.")
    if report.history:
        shown = report.history[-HISTORY:]
        left = "" if len(shown) == len(report.history) else f", the last {HISTORY} of {len(report.history)}"
        lines += ["", f"## Earlier edits of this chain{left}", ""]
        lines += [_render_history(h) for h in shown]
    return "\n".join(lines) + "\n"


def _render_history(entry: HistoryEntry) -> str:
    verdict = "accepted" if entry.accepted else "rejected"
    gain = ""
    if entry.gain is not None:
        gain = f", gain {entry.gain:+.3f}" + (
            " confirmed" if entry.confirmed else " on the choosing questions"
        )
    detail = ""
    if entry.classes:
        detail = f"; failures on {entry.n} other questions: {_counts(entry.classes)}"
    if entry.tool_errors:
        detail += f"; model.python errors: {_counts(entry.tool_errors)}"
    return f"- round {entry.round}, {verdict} ({entry.outcome.value}{gain}): {entry.summary}{detail}"


def _cut(text: str, limit: int) -> str:
    text = text.strip()
    if len(text) <= limit:
        return text
    half = max(8, (limit - 30) // 2)
    return f"{text[:half]} [... {len(text) - 2 * half} cut ...] {text[-half:]}"


def _indent(text: str) -> str:
    return text.replace("\n", "\n    ")


def _render_case(case: Case, chars: int) -> str:
    lines = [f"- question: {_indent(_cut(case.question, chars))}"]
    if case.failure is not None:
        lines.append(f"  failed: {case.failure.value}, grade {case.grade:.2f}")
    lines.append(f"  answer: {_indent(_cut(case.answer, chars // 2)) or '(empty)'}")
    if case.gold is not None and case.failure is not None:
        lines.append(f"  expected: {_indent(_cut(case.gold, chars // 2))}")
    if case.error:
        lines.append(f"  error: {_indent(_cut(case.error, chars))}")
    shown: list[Any] = list(case.trace)
    if len(shown) > 6:
        shown = [*case.trace[:3], None, *case.trace[-3:]]
    for event in shown:
        if event is None:
            lines.append(f"  [... {len(case.trace) - 6} calls cut ...]")
            continue
        lines.append(f"  {event.kind} <- {_indent(_cut(event.request, chars // 2))}")
        lines.append(f"  {event.kind} -> {_indent(_cut(event.reply, chars // 2)) or '(empty)'}")
        if event.error:
            lines.append(f"  {event.kind} error: {_indent(_cut(event.error, chars // 2))}")
    return "\n".join(lines) + "\n"
