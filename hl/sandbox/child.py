"""What runs inside one locked child: the in-memory importer, and one job.

Runs where nothing of ours can be imported: this file is shipped to the zygote as text, with `model`, and forked with
it. A child does exactly one job (`run`, `smoke`, `python` or `function`), writes one result frame and dies. It holds
nothing worth stealing: its own socket, the harness and one question. The host believes nothing it says.
"""

import builtins
import gc
import importlib.abc
import importlib.machinery
import importlib.util
import io
import linecache
import os
import random
import resource
import sys
import traceback
import types
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from hl.sandbox.model import BudgetExceeded, Calls, Model, encode, receive, send

_OWN = "<hl sandbox>"
"""File name that this code is compiled under; its frames are left out of tracebacks."""
_ERROR_CHARS = 4000
_exit = os._exit

# --- files -----------------------------------------------------------------------------------------------------


class _Files(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Imports a harness's files by name, from memory."""

    def __init__(self, files: Mapping[str, str]) -> None:
        self._files = files
        for name, text in files.items():
            remember_source(name, text)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if path is None and f"{fullname}.py" in self._files:
            return importlib.util.spec_from_loader(fullname, self, origin=f"{fullname}.py")
        return None

    def exec_module(self, module: types.ModuleType) -> None:
        name = f"{module.__name__}.py"
        module.__file__ = name
        exec(compile(self._files[name], name, "exec", dont_inherit=True), module.__dict__)

    def get_source(self, fullname: str) -> str:
        return self._files[f"{fullname}.py"]


def remember_source(name: str, text: str) -> None:
    """Let tracebacks and `inspect` quote a file that is only in memory."""
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)


def load(files: Mapping[str, str], entry: str) -> types.ModuleType:
    """Import the entry file; harness files win over library modules of the same name."""
    sys.meta_path.insert(0, _Files(files))
    for name in files:
        sys.modules.pop(name.removesuffix(".py"), None)
    return importlib.import_module(entry.removesuffix(".py"))


class _Tail(io.BufferedIOBase):
    """Keeps the first and the last part of what is written."""

    def __init__(self, limit: int) -> None:
        self._half = limit // 2
        self._first, self._last, self._dropped = bytearray(), bytearray(), 0

    def writable(self) -> bool:
        return True

    def write(self, data: Any, /) -> int:
        data = bytes(data)
        room = max(0, self._half - len(self._first))
        self._first += data[:room]
        self._last += data[room:]
        if len(self._last) > 2 * self._half:
            self._dropped += len(self._last) - self._half
            del self._last[: -self._half or None]
        return len(data)

    def text(self) -> str:
        extra = max(0, len(self._last) - self._half)
        dropped, last = self._dropped + extra, self._last[extra:]
        middle = f"\n[... {dropped} bytes left out ...]\n".encode() if dropped else b""
        return (bytes(self._first) + middle + bytes(last)).decode("utf-8", "replace")


def _stream(limit: int) -> tuple[_Tail, io.TextIOWrapper]:
    tail = _Tail(limit)
    return tail, io.TextIOWrapper(tail, "utf-8", "backslashreplace", write_through=True)  # pyright: ignore[reportArgumentType]


_real_open = builtins.open


def _open(file: Any, mode: str = "r", *args: Any, **kwargs: Any) -> Any:
    """The built-in open, but writing to /dev/null works although nothing may be opened for writing."""
    if file == "/dev/null" and ("w" in mode or "a" in mode):
        return io.BytesIO() if "b" in mode else io.StringIO()
    return _real_open(file, mode, *args, **kwargs)


def _quit(code: object = None) -> NoReturn:
    raise SystemExit(code)


# --- errors ----------------------------------------------------------------------------------------------------


def abridge(text: str, limit: int) -> str:
    """The text, its middle left out beyond `limit` characters."""
    if len(text) <= limit:
        return text
    half = limit // 2
    return f"{text[:half]}\n[... {len(text) - 2 * half} characters left out ...]\n{text[-half:]}"


def describe(error: BaseException) -> str:
    """A traceback without our own frames, whose last line is `ExceptionType: message`."""
    name = type(error).__name__
    try:
        report = traceback.TracebackException(type(error), error, error.__traceback__)
        seen: traceback.TracebackException | None = report
        while seen is not None:
            seen.stack[:] = [frame for frame in seen.stack if not _is_ours(frame.filename)]
            seen = seen.__cause__ or seen.__context__
        text = "".join(report.format())
        message = " ".join(str(error if not isinstance(error, SyntaxError) else error.msg).split())
    except BaseException:  # a hostile __str__, or no memory left
        return f"{name}: (no description)"
    last = f"{name}: {abridge(message, 500)}".rstrip(": ")
    text = abridge(text.rstrip(), _ERROR_CHARS)
    return text if text.splitlines()[-1].endswith(last) else f"{text}\n{last}"


def _is_ours(filename: str) -> bool:
    return filename == _OWN or filename.startswith("<frozen importlib")


# --- jobs ------------------------------------------------------------------------------------------------------


def _run(job: Mapping[str, Any], calls: Calls) -> dict[str, Any]:
    """`run` and `smoke`: import the harness, call solve once."""
    stage = "import"
    try:
        module = load(job["files"], job["entry"])
        solve = getattr(module, "solve", None)
        if not callable(solve):
            return _ended("contract", f"{job['entry']} defines no function solve(model, question)", stage)
        stage = "call"
        if job["kind"] == "smoke":
            send({"op": "stage", "stage": stage})
        answer = solve(Model(calls), job["question"])
    except BudgetExceeded as error:
        return _ended("budget", describe(error), stage)
    except (
        BaseException
    ) as error:  # SystemExit and KeyboardInterrupt are crashes of the harness like any other
        return _ended("crash", describe(error), stage)
    if not isinstance(answer, str):
        return _ended("contract", f"solve returned {type(answer).__name__}, not a string", stage)
    limit = job["answer_bytes"]
    if len(answer) > limit:  # every character is at least a byte
        return _ended("contract", f"the answer is longer than {limit} bytes", stage)
    return {"op": "result", "status": "ok", "value": str.__str__(answer), "error": "", "stage": "done"}


def _ended(status: str, error: str, stage: str = "") -> dict[str, Any]:
    return {"op": "result", "status": status, "value": "", "error": error, "stage": stage}


def _python(job: Mapping[str, Any]) -> dict[str, Any]:
    """`python`: run code as a main program and give what it printed."""
    tail, stream = _stream(65536)
    sys.stdout = stream
    main = types.ModuleType("__main__")
    sys.modules["__main__"] = main
    code, error = job["code"], ""
    remember_source("code.py", code)
    try:
        exec(compile(code, "code.py", "exec", dont_inherit=True), main.__dict__)
    except SystemExit as stop:
        if stop.code not in (None, 0):
            error = f"SystemExit: {stop.code}"
    except BaseException as problem:
        error = describe(problem)
    return {"op": "result", "status": "ok", "value": tail.text(), "error": error}


def _function(job: Mapping[str, Any]) -> dict[str, Any]:
    """`function`: run a source text as a module and call one of its functions with JSON arguments."""
    module = types.ModuleType("grader")
    sys.modules["grader"] = module
    remember_source("grader.py", job["source"])
    try:
        exec(compile(job["source"], "grader.py", "exec", dont_inherit=True), module.__dict__)
        value = getattr(module, job["name"])(*job["args"])
        encode(value)
    except BaseException as error:
        return _ended("crash", describe(error))
    return {"op": "result", "status": "ok", "value": value, "error": ""}


def _limit(which: int, value: int, grace: int) -> None:
    hard = resource.getrlimit(which)[1]
    hard = value + grace if hard == resource.RLIM_INFINITY else min(value + grace, hard)
    resource.setrlimit(which, (min(value, hard), hard))


def work(base_bytes: int) -> NoReturn:
    """Wait for one job, do it, answer, and end the process. Called in a child that is already locked.

    Args:
        base_bytes: Address space of a fresh child; a job's memory limit comes on top.
    """
    try:
        send({"op": "ready"})  # whatever goes wrong before this is the sandbox's fault, after it the job's
        job = receive()
        _limit(resource.RLIMIT_AS, base_bytes + (job["memory_mb"] << 20), 0)
        _limit(resource.RLIMIT_CPU, job["cpu_s"], 1)  # SIGXCPU first, which says why; SIGKILL a second later
        random.seed(job["seed"])
        sys.stdin = io.StringIO()
        sys.stdout = sys.stderr = _stream(0)[1]
        builtins.open = io.open = _open
        builtins.exit = builtins.quit = _quit  # pyright: ignore[reportAttributeAccessIssue]
        gc.enable()
        kind = job["kind"]
        if kind == "python":
            result = _python(job)
        elif kind == "function":
            result = _function(job)
        else:
            result = _run(job, Calls())
        send(result)
    except BaseException:
        _exit(71)
    _exit(0)
