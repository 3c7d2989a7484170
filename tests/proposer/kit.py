"""Harnesses, reports and runs for the tests of the proposers: real sandbox, scripted model."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import hl
from hl.cache import Cache
from hl.engines.scripted import ScriptedEngine
from hl.evaluate import Evaluator, Work
from hl.sandbox.host import Limits, Sandbox
from hl.solver import Meter, MeteredEngine, Solver, SolverSettings
from hl.tasks.graders import TextGrader
from hl.tasks.text_rules import exact
from hl.types import (
    Attempt,
    Case,
    ChatRequest,
    FailureClass,
    Gold,
    Harness,
    HistoryEntry,
    Message,
    Outcome,
    ProposalContext,
    Question,
    QuestionSet,
    Report,
    Role,
    Score,
    TaskSpec,
    TraceEvent,
)

SEEDS = Path(hl.__file__).parent / "seeds"
SEED_NAMES = tuple(sorted(p.stem for p in SEEDS.glob("*.py")))
TASK = TaskSpec("jsonl:sums.jsonl", "Sums in words; exact match.")
Talk = Callable[[Sequence[Message], ChatRequest], str]


def seed(name: str) -> Harness:
    return one_file((SEEDS / f"{name}.py").read_text(encoding="utf-8"))


def one_file(text: str) -> Harness:
    return Harness((("harness.py", text),))


def case(
    question: str,
    gold: str | None = None,
    answer: str = "",
    *,
    failure: FailureClass | None = FailureClass.WRONG,
    trace: Sequence[TraceEvent] = (),
) -> Case:
    return Case(question, answer, gold, 0.0 if failure else 1.0, failure, "", tuple(trace))


def solved(question: str, code: str, answer: str) -> Case:
    """A success by a program."""
    events = (
        TraceEvent("chat", question, f"```python\n{code}\n```"),
        TraceEvent("python", code, answer + "\n"),
    )
    return case(question, answer, answer, failure=None, trace=events)


def report(
    cases: Sequence[Case] = (),
    *,
    classes: Mapping[str, int] | None = None,
    tool_errors: Mapping[str, int] | None = None,
    history: Sequence[HistoryEntry] = (),
) -> Report:
    failures = tuple(c for c in cases if c.failure is not None)
    counts: dict[str, int] = {}
    for c in failures:
        counts[str(c.failure)] = counts.get(str(c.failure), 0) + 1
    return Report(
        TASK,
        "",
        Score(0.0, 0.0, len(cases)),
        {},
        classes if classes is not None else counts,
        tool_errors or {},
        failures,
        tuple(c for c in cases if c.failure is None),
        1.0,
        100.0,
        1.0,
        0.0,
        tuple(history),
    )


def context(harness: Harness, told: Report | None = None, number: int = 1) -> ProposalContext:
    return ProposalContext(TASK, harness, told or report(classes={"wrong": 8}), number, seed=number)


def past(
    summary: str,
    *,
    number: int = 1,
    accepted: bool = False,
    classes: Mapping[str, int] | None = None,
    tool_errors: Mapping[str, int] | None = None,
) -> HistoryEntry:
    return HistoryEntry(number, summary, Outcome.SCORED, accepted, 0.0, classes or {}, tool_errors or {}, 16)


PASSAGES = (
    ("Ada Berg", "She was a painter. She was born in Port Vail."),
    ("Port Vail", "This town lies on the Orr."),
)
"""What every search finds."""


async def find(query: str, k: int) -> tuple[Sequence[tuple[str, str]], float]:
    return PASSAGES[:k], 0.0


def run(harness: Harness, talk: Talk, *questions: str) -> list[Attempt]:
    """Run a harness on questions in the real sandbox."""
    ids = [f"{i:016x}" for i in range(len(questions))]
    block = QuestionSet(
        Role.SCORING,
        tuple(Question(i, q) for i, q in zip(ids, questions, strict=True)),
        tuple(Gold(i, "gold", "{}") for i in ids),
    )

    async def go() -> list[Attempt]:
        cache, meter = Cache(None), Meter()
        async with Sandbox(zygotes=1) as sandbox:
            evaluator = Evaluator(
                sandbox=sandbox,
                solver=Solver(MeteredEngine(ScriptedEngine(function=talk), cache, meter), SolverSettings()),
                grader=TextGrader(exact),
                cache=cache,
                meter=meter,
                limits=Limits(wall_s=30),
                search=find,
            )
            ((_, attempts),) = await evaluator.score([Work(harness, block)])
            return sorted(attempts, key=lambda a: a.question_id)

    return asyncio.run(go())
