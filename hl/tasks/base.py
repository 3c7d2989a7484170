"""What a task is, and how one is opened by name. Part of the tasks room.

A task makes its question sets once (`generate`) and builds the grader that scores answers to them. Graders reach the
sandbox as a callable that is passed in, so that this room imports nothing of the sandbox. Nothing here is a registry of
plug-ins: the kinds of task are listed in `open_task`.
"""

import difflib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import parse_qsl, quote

from hl.errors import UsageError
from hl.types import Grader, QuestionSets, Role, Status, TaskSpec

GRADE_WALL_S = 30.0
"""Time one confined grade may take; generous, since a busy machine must not make a right answer wrong."""
GRADE_CPU_S = 5
"""Processor time of one confined grade; what is not done by then grades 0 with an error."""
GRADE_MEMORY_MB = 1024
"""Memory of one confined grade: sympy, numpy and reasoning-gym's word lists are loaded."""
ANSWER_MAX_BYTES = 64 * 1024
"""Longer answers grade 0 unread."""


class FunctionOutcome(Protocol):
    """What the sandbox says of one confined function call."""

    @property
    def value(self) -> Any:
        """The JSON value that the function returned."""
        ...

    @property
    def error(self) -> str:
        """Traceback or reason; empty when it returned."""
        ...

    @property
    def status(self) -> Status:
        """How the call ended."""
        ...


RunFunction = Callable[[str, str, Sequence[Any]], Awaitable[FunctionOutcome]]
"""`await run_function(source, name, args)`: the sandbox's grader profile, its limits (GRADE_*) bound by the caller."""

KINDS = ("reasoning-gym", "qa", "jsonl")
PATH_CHARACTERS = "/:,~"
"""What stands unquoted in a path that is a parameter of a task's name."""

Progress = Callable[[int, int], None]
"""Called with (questions made so far, questions wanted; 0 while unknown)."""


@dataclass(frozen=True, slots=True)
class Generated:
    """What `Task.generate` made."""

    sets: QuestionSets
    distinct: int
    """Different questions seen; for an exhausted family, all that it seems to have."""
    drawn: int
    """Questions drawn to find them."""
    exhausted: bool
    """Whether the family ran out before the sets were full; then every set is smaller than asked for."""
    note: str = ""
    """One sentence for the user where something is worth saying, else empty."""
    files: tuple[tuple[str, str], ...] = ()
    """(name, text) of what grading and searching need beside the sets, such as the user's own `grader.py`."""


class Task(Protocol):
    """A named source of questions, and their grader."""

    @property
    def spec(self) -> TaskSpec:
        """Name, parameters, version and the description for the proposer."""
        ...

    @property
    def identity_family(self) -> str:
        """The family under which questions of this task are identified."""
        ...

    def suggested_pool_rounds(self, per_round: int) -> int | None:
        """How many rounds' worth of fresh questions can be made in reasonable time; None if any number can.

        Args:
            per_round: Questions that one round uses up.
        """
        ...

    def generate(self, sizes: Mapping[Role, int], progress: Progress | None = None) -> Generated:
        """Make the four pairwise disjoint sets; the same sizes give the same sets on every machine.

        Raises:
            UsageError: A parameter or a line of the task's file is wrong.
            HlError: Not even small sets can be made.
        """
        ...

    def grader(self, run_function: RunFunction) -> Grader:
        """The grader of this task's answers; what runs code or can hang goes through `run_function`."""
        ...


def selected_grade(name: str, grade: str) -> str:
    """Which grade makes a task's score: `raw` or `strict`.

    Args:
        name: The task's name. A QA task scores by exact match, its strict grade, unless it says `metric=f1`.
        grade: The configuration's `task.grade`.
    """
    by_match = name.startswith("qa:") and split_name(name)[2].get("metric", "em") == "em"
    return "strict" if by_match else grade


def split_name(name: str) -> tuple[str, str, dict[str, str]]:
    """`kind:rest?key=value&...` -> (kind, rest, params).

    Raises:
        UsageError: No kind, or a parameter without `=` or given twice.
    """
    kind, colon, rest = name.partition(":")
    if not colon or not rest:
        raise UsageError(
            f"task {name!r} has no kind",
            hint="write reasoning-gym:FAMILY, qa:DATASET or jsonl:FILE, such as reasoning-gym:gcd",
        )
    rest, mark, query = rest.partition("?")
    params: dict[str, str] = {}
    if mark:
        try:
            pairs = parse_qsl(query, keep_blank_values=True, strict_parsing=True)
        except ValueError:
            raise UsageError(
                f"the parameters {query!r} of task {name!r} are not key=value pairs joined by &"
            ) from None
        for key, value in pairs:
            if key in params:
                raise UsageError(f"parameter {key!r} of task {name!r} is given twice")
            params[key] = value
    return kind, rest, params


def open_task(name: str, params: Mapping[str, str] | None = None, *, root: Path | None = None) -> Task:
    """Open a task by name; quick, reads no questions yet.

    Args:
        name: `reasoning-gym:<family>`, `qa:<dataset>` or `jsonl:<file>`, with or without `?key=value&...`.
        params: More parameters; they win over those in the name.
        root: Where relative file names start; the current directory by default.

    Raises:
        UsageError: Unknown kind or family (with the nearest names), or a refused family (with the reason).
    """
    kind, rest, own = split_name(name)
    merged = {**own, **(params or {})}
    if kind == "reasoning-gym":
        from hl.tasks.reasoning_gym import ReasoningGymTask

        return ReasoningGymTask.open(rest, merged)
    if kind == "jsonl":
        from hl.tasks.jsonl import JsonlTask

        return JsonlTask.open(rest, merged, root or Path.cwd())
    if kind == "qa":
        from hl.tasks.qa import QaTask

        return QaTask.open(rest, merged, root or Path.cwd())
    raise UsageError(
        f"task {name!r} is of unknown kind {kind!r}{nearest(kind, KINDS)}", hint=f"kinds: {', '.join(KINDS)}"
    )


def nearest(name: str, known: Sequence[str]) -> str:
    """`; did you mean 'gcd'?`, or nothing where no known name is near."""
    near = difflib.get_close_matches(name, known, n=1)
    return f"; did you mean {near[0]!r}?" if near else ""


def unknown_parameter(task: str, key: str, known: Sequence[str]) -> UsageError:
    """The error for a parameter that a task does not have, with the nearest that it has."""
    return UsageError(
        f"{task} has no parameter {key!r}{nearest(key, known)}", hint=f"it has: {', '.join(known)}"
    )


def open_grader(spec: TaskSpec, files: tuple[tuple[str, str], ...], run_function: RunFunction) -> Grader:
    """The grader of question sets that are already on disk; what the task was made from may be gone.

    Args:
        spec: `Manifest.spec`.
        files: `Manifest.files`.
        run_function: The sandbox's grader profile.
    """
    kind, rest, _ = split_name(spec.name)
    if kind == "jsonl":
        from hl.tasks.jsonl import JsonlTask

        return JsonlTask(rest, Path(rest), spec.params, files).grader(run_function)
    return open_task(spec.name, dict(spec.params)).grader(run_function)


def locate(name: str) -> str:
    """The task's name with its corpus by absolute path: it is read again whenever the harness runs, from elsewhere."""
    kind, rest, params = split_name(name)
    if kind != "qa" or "corpus" not in params:
        return name
    params["corpus"] = str(Path(params["corpus"]).resolve())
    query = "&".join(f"{key}={quote(value, safe=PATH_CHARACTERS)}" for key, value in params.items())
    return f"{kind}:{rest}?{query}"


def prepare(name: str, on_progress: Progress | None = None) -> None:
    """Index the corpus that a task's name gives, if it gives one.

    Raises:
        UsageError: A line of the corpus is wrong.
    """
    kind, _, params = split_name(name)
    if kind == "qa" and "corpus" in params:
        from hl.tasks.retrieval import open_corpus

        open_corpus(Path(params["corpus"]), on_progress)
