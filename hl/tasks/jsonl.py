"""`jsonl:<file>`: the user's own questions and answers, one JSON object a line, with a grader chosen by name.

A line has `question` (text) and `answer` (text, number, or a list of accepted texts), and may have `set` (feedback,
scoring, confirmation or evaluation); whatever else it has is kept as metadata. The file is data: a Python grader beside
it is read as text and runs confined, never imported. Malformed input gives one sentence with file and line.
"""

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from hl.errors import UsageError
from hl.tasks.base import Generated, Progress, RunFunction, unknown_parameter
from hl.tasks.families import GRADER_VERSION
from hl.tasks.faults import json_fault
from hl.tasks.graders import PythonGrader, RegexGrader, TextGrader
from hl.tasks.identity import normalise, question_id
from hl.tasks.sharing import PRIORITY, Item, as_sets, share_out, shortage
from hl.tasks.text_rules import RULES
from hl.types import Gold, Grader, Question, Role, TaskSpec

FAMILY = "jsonl"
GRADER_FILE = "grader.py"
"""Name under which a Python grader is kept beside the question sets."""
MAX_FILE_BYTES = 256 * 1024 * 1024
MAX_QUESTION_CHARS = 1_000_000
MAX_PATTERN_CHARS = 1000
PARAMS = ("description", "grader")

HOW: Mapping[str, str] = {
    "exact": "An answer earns 1 if it is the right text, white space at its ends aside.",
    "choice": "An answer earns 1 if it names the right choice, such as B, (b) or B.",
    "number": "An answer earns 1 if it is the right number, to six significant digits.",
    "f1": "An answer earns the F1 of its words and the right answer's; case, punctuation and articles do not matter.",
    "regex": "An answer earns 1 if all of it matches the question's pattern.",
    "python": "An answer is graded between 0 and 1 by the task's own program.",
}


@dataclass(frozen=True, slots=True)
class JsonlTask:
    """One file of questions."""

    file: str
    """As written."""
    path: Path
    """Where it is."""
    params: tuple[tuple[str, str], ...]
    """Sorted by name, as written."""
    files: tuple[tuple[str, str], ...] = ()
    """The grader's text, where the sets were already made."""

    @classmethod
    def open(cls, file: str, params: Mapping[str, str], root: Path) -> "JsonlTask":
        """The task of that file, which is not read yet.

        Raises:
            UsageError: Unknown parameter or grader.
        """
        for key in params:
            if key not in PARAMS:
                raise unknown_parameter(f"jsonl:{file}", key, PARAMS)
        grader = params.get("grader", "exact")
        kind, _, script = grader.partition(":")
        if kind not in HOW or bool(script) != (kind == "python"):
            hint = "graders: exact, choice, number, f1, regex, python:FILE.py"
            raise UsageError(f"jsonl:{file} names an unknown grader {grader!r}", hint=hint)
        return cls(file, root / file, tuple(sorted(params.items())))

    @property
    def identity_family(self) -> str:
        """The same for all files: the same question in two files is the same question."""
        return FAMILY

    @property
    def _grader(self) -> str:
        return dict(self.params).get("grader", "exact")

    @property
    def spec(self) -> TaskSpec:
        """Name, parameters, version and the description for the proposer."""
        kind = self._grader.partition(":")[0]
        about = dict(self.params).get("description") or f"Questions of the file {Path(self.file).name}."
        return TaskSpec(
            name=f"jsonl:{self.file}",
            description=f"{about} {HOW[kind]} An empty answer earns 0.",
            params=self.params,
            version=f"hl grader {GRADER_VERSION}",
            gold_visible=kind != "regex",
        )

    def suggested_pool_rounds(self, per_round: int) -> int | None:
        """Reading is quick."""
        return None

    def grader(self, run_function: RunFunction) -> Grader:
        """In process for texts and numbers; patterns and programs run in the sandbox.

        Raises:
            UsageError: The Python grader cannot be read.
        """
        kind, _, script = self._grader.partition(":")
        if kind == "regex":
            return RegexGrader(run_function)
        if kind == "python":
            return PythonGrader(dict(self.files).get(GRADER_FILE) or self._script(script), run_function)
        return TextGrader(RULES[kind])

    def generate(self, sizes: Mapping[Role, int], progress: Progress | None = None) -> Generated:
        """Deal the file's questions: lines with a `set` to that set, the others in order of their ids' hashes.

        Raises:
            UsageError: A line is wrong, or the Python grader cannot be read.
            HlError: Too few questions.
        """
        kind, _, script = self._grader.partition(":")
        files = ((GRADER_FILE, self._script(script)),) if kind == "python" else ()
        rows = self._rows(kind)
        rows.sort(key=lambda row: hashlib.sha256(row[1][0].id.encode()).digest())
        items: dict[Role, list[Item]] = {role: [item for own, item in rows if own is role] for role in Role}
        free = [item for own, item in rows if own is None]
        wanted = {role: max(0, sizes[role] - len(items[role])) for role in Role}
        for role in Role:
            items[role] = items[role][: sizes[role]]
        note = ""
        if len(free) < sum(wanted.values()):
            source, hint = f"jsonl:{self.file}", f"write more questions into {self.file}"
            for role, more in share_out(free, wanted, source, hint).items():
                items[role] += more
            note = shortage(f"jsonl:{self.file}", len(rows), sizes, items)
        else:
            deal = iter(free)
            for role in PRIORITY:
                items[role] += [next(deal) for _ in range(wanted[role])]
        if progress is not None:
            total = sum(len(found) for found in items.values())
            progress(total, total)
        return Generated(as_sets(items), len(rows), len(rows), bool(note), note, files)

    def _script(self, name: str) -> str:
        path = self.path.parent / name
        try:
            return path.read_bytes().decode()
        except (OSError, UnicodeDecodeError, ValueError) as error:
            raise UsageError(f"the grader {path} cannot be read: {_why(error)}") from None

    def _rows(self, kind: str) -> list[tuple[Role | None, Item]]:
        try:
            if self.path.stat().st_size > MAX_FILE_BYTES:
                raise UsageError(f"{self.path} is larger than {MAX_FILE_BYTES // 2**20} MiB")
            data = self.path.read_bytes()
        except (OSError, ValueError) as error:
            raise UsageError(f"the task file {self.path} cannot be read: {_why(error)}") from None
        rows: list[tuple[Role | None, Item]] = []
        seen: dict[str, int] = {}
        for number, line in enumerate(data.removeprefix(b"\xef\xbb\xbf").split(b"\n"), start=1):
            if not line.strip():
                continue
            role, item = _row(f"{self.path}:{number}", line, kind)
            first = seen.setdefault(item[0].id, number)
            if first != number:
                raise UsageError(f"{self.path}:{number} repeats the question of line {first}")
            rows.append((role, item))
        if not rows:
            raise UsageError(f"the task file {self.path} has no questions")
        return rows


def _row(where: str, line: bytes, kind: str) -> tuple[Role | None, Item]:
    """One line, checked.

    Raises:
        UsageError: One sentence with `where`.
    """
    try:
        row: Any = json.loads(line.decode())
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{where} is not JSON: {json_fault(error)}") from None
    if not isinstance(row, dict):
        raise UsageError(f"{where} is not a JSON object with question and answer")
    fields = cast(dict[str, Any], row)
    for key in ("question", "answer"):
        if key not in fields:
            raise UsageError(f"{where} has no {key!r}")
    question, role = fields["question"], fields.get("set")
    if not isinstance(question, str) or not normalise(question):
        raise UsageError(f"{where}: 'question' must be a text that is not empty")
    if len(question) > MAX_QUESTION_CHARS:
        raise UsageError(f"{where}: 'question' is longer than {MAX_QUESTION_CHARS:,} characters")
    if role is not None and role not in [str(r) for r in Role]:
        raise UsageError(f"{where}: 'set' must be one of {', '.join(Role)}, not {role!r}")
    answers = [_answer(where, value) for value in _listed(fields["answer"])]
    if not answers:
        raise UsageError(f"{where}: 'answer' is an empty list")
    for answer in answers:
        _check_gold(where, answer, kind)
    metadata = {key: value for key, value in fields.items() if key not in ("question", "answer", "set")}
    entry = {"question": question, "answers": answers, "metadata": metadata}
    key = question_id(FAMILY, question)
    gold = Gold(key, answers[0], json.dumps(entry, separators=(",", ":")))
    return Role(role) if role else None, (Question(key, question), gold)


def _listed(value: Any) -> list[Any]:
    return cast(list[Any], value) if isinstance(value, list) else [value]


def _answer(where: str, value: Any) -> str:
    text = (
        value
        if isinstance(value, str)
        else json.dumps(value)
        if isinstance(value, bool | int | float)
        else ""
    )
    if not text.strip():
        raise UsageError(f"{where}: 'answer' must be a text that is not empty, a number, or a list of them")
    return text


def _check_gold(where: str, answer: str, kind: str) -> None:
    if kind == "number" and RULES["number"](answer, answer) != 1.0:
        raise UsageError(f"{where}: 'answer' {answer!r} is not a number, but the grader is number")
    if kind == "regex":
        try:
            if len(answer) > MAX_PATTERN_CHARS:
                raise ValueError(f"longer than {MAX_PATTERN_CHARS:,} characters")
            re.compile(answer)
        except (re.error, ValueError, OverflowError, RecursionError, MemoryError) as error:
            raise UsageError(f"{where}: 'answer' is not a regular expression: {_why(error)}") from None


def _why(error: BaseException) -> str:
    if isinstance(error, UnicodeDecodeError):
        return "it is not UTF-8 text"
    if isinstance(error, OSError):
        return error.strerror or type(error).__name__
    return str(error) or type(error).__name__
