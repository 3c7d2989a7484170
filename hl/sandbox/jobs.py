"""What is asked of a child and what it comes to: limits, results, and the frames that carry jobs. No processes here."""

import functools
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hl.sandbox.conversation import Ending
from hl.sandbox.frames import wrap_frame
from hl.types import Harness, Status


@dataclass(frozen=True, slots=True)
class Limits:
    """Of one attempt."""

    wall_s: float = 60.0
    """Billed time: the child's own plus model service time; queueing on the host and engine retries left out."""
    cpu_s: int = 10
    """Processor time, whatever is billed."""
    memory_mb: int = 256
    """Address space beyond the bare interpreter's."""
    answer_bytes: int = 65536
    """Longest answer, in UTF-8."""


@dataclass(frozen=True, slots=True)
class JobResult:
    """How a harness fared on one question."""

    status: Status
    value: str
    """The answer; for `smoke` the stage reached: `import`, `call` or `done`."""
    error: str
    """Empty, or a traceback or reason of at most 4 KiB."""
    seconds: float
    """Billed."""


@dataclass(frozen=True, slots=True)
class PythonResult:
    """What a piece of code did."""

    stdout: str
    """What it printed, the middle left out beyond 64 KiB; empty where the process was ended."""
    error: str
    """Empty, or a traceback whose last line is `ExceptionType: message`."""
    seconds: float


@dataclass(frozen=True, slots=True)
class FunctionResult:
    """What a function returned."""

    value: Any
    """JSON; None unless status is ok."""
    error: str
    status: Status


def plain_job(job: Mapping[str, Any], limits: Limits, seed: int) -> bytes:
    """The frame of a `python` or `function` job.

    Raises:
        ValueError, TypeError: The job holds what JSON cannot say.
    """
    common = {"cpu_s": max(1, limits.cpu_s), "memory_mb": max(16, limits.memory_mb), "seed": seed}
    return wrap_frame(json.dumps({**job, **common}, allow_nan=False).encode())


@functools.lru_cache(maxsize=64)
def _files_json(files: tuple[tuple[str, str], ...]) -> str:
    return json.dumps({name: text.encode("utf-8", "replace").decode() for name, text in files})


def harness_job(kind: str, harness: Harness, question: str, seed: int, limits: Limits) -> bytes:
    """The frame of a `run` or `smoke` job; the files' part is made once per harness."""
    rest = {
        "kind": kind,
        "entry": harness.entry,
        "question": question,
        "seed": seed,
        "answer_bytes": limits.answer_bytes,
        "cpu_s": max(1, limits.cpu_s),
        "memory_mb": max(16, limits.memory_mb),
    }
    return wrap_frame(f'{{"files":{_files_json(harness.files)},{json.dumps(rest)[1:]}'.encode())


def harness_result(ending: Ending, limits: Limits) -> JobResult:
    """What an ending means for a harness: a child's word for its own answer is checked here once more."""
    status, value, error = ending.status, ending.value, ending.error
    if status is not Status.OK:
        return JobResult(status, "", error, ending.seconds)
    if not isinstance(value, str):
        return JobResult(Status.CONTRACT, "", "the answer is not a string", ending.seconds)
    if len(value.encode()) > limits.answer_bytes:
        error = f"the answer is longer than {limits.answer_bytes} bytes"
        return JobResult(Status.CONTRACT, "", error, ending.seconds)
    return JobResult(Status.OK, value, "", ending.seconds)
