"""The `model` object of a harness, and the channel it speaks through.

Runs inside a locked child, where nothing of ours can be imported: shipped to the zygote as text, like `child`. Nothing
it says is believed: every limit is enforced by the host or the kernel, and what is checked here only makes for better
messages. Safe to use from several threads, and from asyncio through `asyncio.to_thread`.

Frames on descriptor 3: four bytes of big-endian length, then UTF-8 JSON. See `hl.sandbox.frames`.
"""

import json
import os
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

CHANNEL = 3
"""The child's end of its socket pair with the host."""
_WINDOW = 64
"""Most calls that `sample` and `map` keep in flight."""
_BATCH_BYTES = 800_000
"""Requests go together in a frame up to this size; the host takes frames of 1 MiB."""

# Bound now, so that a harness that patches json or os only misleads itself.
encode: Callable[[Any], str] = json.JSONEncoder(allow_nan=False, separators=(",", ":")).encode
_decode: Callable[[str], Any] = json.JSONDecoder().decode
_read, _write, _exit = os.read, os.write, os._exit
_allocate_lock = threading.Lock

# --- the channel -----------------------------------------------------------------------------------------------


def send(message: Mapping[str, Any]) -> None:
    """Write one frame."""
    data = encode(message).encode()
    data = len(data).to_bytes(4, "big") + data
    sent = _write(CHANNEL, data)
    while sent < len(data):
        sent += _write(CHANNEL, data[sent : sent + 65536])


def _exactly(size: int) -> bytes:
    parts: list[bytes] = []
    while size:
        part = _read(CHANNEL, min(size, 1 << 20))
        if not part:
            _exit(0)  # the host is gone, or done with us
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def receive() -> Any:
    """Read one frame; the process ends where the host has closed the channel."""
    return _decode(_exactly(int.from_bytes(_exactly(4), "big")).decode())


class Calls:
    """Calls in flight, multiplexed by id: whichever thread waits first reads for all."""

    def __init__(self) -> None:
        self._sending = _allocate_lock()
        self._state = threading.Condition(_allocate_lock())
        self._reading = False
        self._next = 0
        self._replies: dict[int, Mapping[str, Any]] = {}

    def start(self, op: str, args: Mapping[str, Any]) -> int:
        """Send a request; returns its id for `finish`."""
        with self._sending:
            self._next += 1
            send({"id": self._next, "op": op, "args": args})
            return self._next

    def finish(self, call: int) -> Any:
        """Wait for a reply and return its value, or raise what the host said."""
        with self._state:
            while call not in self._replies:
                if self._reading:
                    self._state.wait()
                    continue
                self._reading = True
                self._state.release()
                try:
                    reply = receive()
                finally:
                    self._state.acquire()
                    self._reading = False
                    self._state.notify_all()
                self._replies[reply["id"]] = reply
            reply = self._replies.pop(call)
        kind = reply["kind"]
        if kind == "budget":
            raise BudgetExceeded(reply["message"])
        if kind == "value":
            raise ValueError(reply["message"])
        if kind:
            raise RuntimeError(reply["message"])
        return reply["value"]

    def ask(self, op: str, args: Mapping[str, Any]) -> Any:
        """One request, waited for."""
        return self.finish(self.start(op, args))

    def many(self, op: str, requests: Sequence[Mapping[str, Any]]) -> list[Any]:
        """Several requests in parallel; values in order. The first failure is raised after the rest were sent.

        What one frame holds begins at one moment, so that the host bills it as side by side however fast it answers.
        """
        waiting: list[int] = []
        values: list[Any] = []
        while len(waiting) < len(requests):
            if len(waiting) - len(values) >= _WINDOW:
                values.append(self.finish(waiting[len(values)]))
            room = _WINDOW - (len(waiting) - len(values))
            waiting += self._start_together(op, requests[len(waiting) : len(waiting) + room])
        values.extend(self.finish(call) for call in waiting[len(values) :])
        return values

    def _start_together(self, op: str, requests: Sequence[Mapping[str, Any]]) -> list[int]:
        """Send the first requests that fit into a frame, at least one; returns their ids."""
        with self._sending:
            calls: list[Mapping[str, Any]] = []
            size = 0
            for args in requests:
                more = len(encode(args))  # ASCII: characters are bytes
                if calls and size + more > _BATCH_BYTES:
                    break
                self._next += 1
                size += more
                calls.append({"id": self._next, "op": op, "args": args})
            send({"op": "batch", "calls": calls} if len(calls) > 1 else calls[0])
            return [call["id"] for call in calls]


# --- the model object ------------------------------------------------------------------------------------------


class BudgetExceeded(Exception):
    """The attempt has used up its calls, tokens, tool runs or searches."""


BudgetExceeded.__module__ = "model"


class PythonResult(NamedTuple):
    """What `model.python` gives."""

    stdout: str
    """What the code printed, its middle left out beyond 64 KiB."""
    error: str
    """Empty, or a traceback whose last line is `ExceptionType: message`."""


class Passage(NamedTuple):
    """One search result."""

    title: str
    text: str


class Budget(NamedTuple):
    """What is left to the attempt."""

    calls: int
    tokens: int
    seconds: float


class Model:
    """The only way out of the sandbox. Safe to use from several threads."""

    BudgetExceeded = BudgetExceeded

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    def __call__(
        self,
        prompt: str,
        *,
        system: str | None = None,
        max_tokens: int | None = None,
        temperature: float | None = None,
        stop: str | Sequence[str] | None = None,
    ) -> str:
        """One chat completion."""
        return self._calls.ask("chat", _chat(_turns(prompt, system), max_tokens, temperature, stop))

    def chat(
        self,
        messages: Sequence[Mapping[str, str]],
        *,
        system: str | None = None,
        max_tokens: int | None = None,
        temperature: float | None = None,
        stop: str | Sequence[str] | None = None,
    ) -> str:
        """A conversation: messages are `{"role": ..., "content": ...}`."""
        turns = [] if system is None else [{"role": "system", "content": system}]
        turns += [{"role": turn["role"], "content": turn["content"]} for turn in messages]
        return self._calls.ask("chat", _chat(turns, max_tokens, temperature, stop))

    def sample(
        self,
        prompt: str,
        n: int,
        *,
        system: str | None = None,
        max_tokens: int | None = None,
        temperature: float | None = None,
        stop: str | Sequence[str] | None = None,
    ) -> list[str]:
        """n completions of one prompt, in parallel."""
        args = _chat(_turns(prompt, system), max_tokens, temperature, stop)
        return self._calls.many("chat", [args] * n)

    def map(
        self,
        prompts: Iterable[str],
        *,
        system: str | None = None,
        max_tokens: int | None = None,
        temperature: float | None = None,
        stop: str | Sequence[str] | None = None,
    ) -> list[str]:
        """One completion each of several prompts, in parallel."""
        requests = [_chat(_turns(prompt, system), max_tokens, temperature, stop) for prompt in prompts]
        return self._calls.many("chat", requests)

    def python(self, code: str, timeout_s: float = 5) -> PythonResult:
        """Run code in a fresh sandbox that has no model."""
        value = self._calls.ask("python", {"code": code, "timeout_s": timeout_s})
        return PythonResult(value["stdout"], value["error"])

    def search(self, query: str, k: int = 5) -> list[Passage]:
        """The k best passages of the task's corpus; an attempt has 64 searches."""
        found = self._calls.ask("search", {"query": query, "k": k})
        return [Passage(passage["title"], passage["text"]) for passage in found]

    @property
    def budget(self) -> Budget:
        """What is left: calls, tokens, seconds."""
        value = self._calls.ask("budget", {})
        return Budget(value["calls"], value["tokens"], value["seconds"])


def _turns(prompt: str, system: str | None) -> list[dict[str, str]]:
    if not isinstance(prompt, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError(f"the prompt must be a string, not {type(prompt).__name__}")
    user = {"role": "user", "content": prompt}
    return [user] if system is None else [{"role": "system", "content": system}, user]


def _chat(
    messages: list[dict[str, str]],
    max_tokens: int | None,
    temperature: float | None,
    stop: str | Sequence[str] | None,
) -> dict[str, Any]:
    stops = [stop] if isinstance(stop, str) else None if stop is None else list(stop)
    return {"messages": messages, "max_tokens": max_tokens, "temperature": temperature, "stop": stops}
