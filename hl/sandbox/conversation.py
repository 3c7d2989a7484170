"""One child, one job, from the first frame to the last: the host's half of an attempt.

Promises to end: by the child's result, by its death, by the billed wall clock, by a broken protocol, or by the session.
The channel is closed at the first result, so nothing a child does afterwards is heard. It believes nothing: statuses
that only the host may give (`timeout`, `lost`) are not taken from a child. It does not know what a session answers.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol, cast

from hl.errors import EngineError, SandboxError
from hl.sandbox.frames import FrameBuffer, ProtocolError, encode_frame, parse_frame
from hl.sandbox.spawn import Child, Exit
from hl.types import Status

OPS = frozenset({"chat", "python", "search", "budget"})
_MAX_OPEN_CALLS = 256
_MAX_CALLS = 20_000
_MAX_UNREAD_BYTES = 32 << 20
_ERROR_CHARS = 4096
_CHILD_STATUSES = {
    status.value: status for status in (Status.OK, Status.CRASH, Status.BUDGET, Status.CONTRACT)
}


@dataclass(slots=True)
class Answer:
    """What a session returns for one call."""

    value: Any = None
    """JSON value for the child."""
    kind: str = ""
    """`` fine, `budget` -> BudgetExceeded in the child, `value` -> ValueError, `unavailable` -> RuntimeError."""
    message: str = ""
    """Text of that exception."""
    seconds: float = 0.0
    """Service time, billed to the attempt instead of the time that passed."""
    fatal: Status | None = None
    """End the attempt now with this status."""


class Session(Protocol):
    """What answers a child's calls; one per attempt."""

    async def call(self, op: str, args: Mapping[str, Any]) -> Answer:
        """Answer one call; args are untrusted JSON.

        Raises:
            EngineError, SandboxError: The attempt becomes `lost`.
        """
        ...


@dataclass(frozen=True, slots=True)
class Ending:
    """How a job ended."""

    status: Status
    value: Any = ""
    """What the child gave, checked by nobody but for being JSON."""
    error: str = ""
    stage: str = ""
    """For harnesses: `import`, `call` or `done`."""
    seconds: float = 0.0
    """Billed."""
    ours: bool = False
    """The sandbox broke before the job began to talk: it may be run again."""


class Clock:
    """Billed time: the child's own, with every call counted as its service seconds from where it began.

    While any call is open the wall does not count; calls that overlap are billed as if they had run side by side.
    """

    def __init__(self, now: float) -> None:
        self._billed = 0.0
        self._since = now
        self._open = 0

    def begin(self, now: float) -> float:
        """A call begins; returns the billed time at its start, for `end`."""
        self._billed = self.billed(now)
        self._since = now
        self._open += 1
        return self._billed

    def end(self, began: float, seconds: float, now: float) -> None:
        """A call ends after that much service."""
        self._open -= 1
        self._billed = max(self._billed, began + max(0.0, seconds))
        self._since = now

    def billed(self, now: float) -> float:
        """Seconds billed so far."""
        return self._billed if self._open else self._billed + now - self._since


class Conversation:
    """Drives one child through one job.

    Args:
        child: Taken over: dead and closed when `run` returns.
        job: The frame to send.
        session: Answers calls; None where the job has no model.
        wall_s: Limit on billed time.
        cpu_s: The limit the child was given, to word its death.
    """

    def __init__(
        self, child: Child, job: bytes, *, session: Session | None, wall_s: float, cpu_s: int
    ) -> None:
        self._child = child
        self._job = job
        self._session = session
        self._wall_s = wall_s
        self._cpu_s = cpu_s
        self._loop = asyncio.get_running_loop()
        self._ended: asyncio.Future[Ending | None] = self._loop.create_future()
        self._buffer = FrameBuffer()
        self._unsent = bytearray()
        self._calls: dict[int, asyncio.Task[None]] = {}
        self._count = 0
        self._ready = False
        self._stage = "import"
        self._clock = Clock(self._loop.time())
        self._timer: asyncio.TimerHandle | None = None

    async def run(self) -> Ending:
        """Until the end; the child is dead then.

        Raises:
            ZygoteDied: The zygote went before it could say how the child died.
        """
        fd = self._child.channel.fileno()
        closed = False
        try:
            self._loop.add_reader(fd, self._on_readable)
            self._send(self._job)
            self._on_timer()
            ending = await self._ended
            seconds = self._clock.billed(self._loop.time())
            if ending is None:
                self._forget(fd)
                closed = True  # autopsy closes
                death = await self._child.autopsy()
                if death.code == -9:
                    await self._child.zygote.survived()
                ending = self._post_mortem(death)
            return Ending(
                ending.status, ending.value, ending.error, ending.stage or self._stage, seconds, ending.ours
            )
        finally:
            if not closed:
                self._forget(fd)
                self._child.discard()
            if self._calls:
                await asyncio.gather(*self._calls.values(), return_exceptions=True)

    def _forget(self, fd: int) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._loop.remove_reader(fd)
        if self._unsent:
            self._loop.remove_writer(fd)
        for task in self._calls.values():
            task.cancel()

    def _end(self, ending: Ending | None) -> None:
        """The first ending counts; None means the child closed its end."""
        if not self._ended.done():
            self._ended.set_result(ending)
            self._loop.remove_reader(self._child.channel.fileno())

    def _post_mortem(self, death: Exit) -> Ending:
        if not self._ready:
            return Ending(
                Status.LOST, error=f"a sandbox process died before its job (code {death.code})", ours=True
            )
        if death.code == -24 or (death.code == -9 and death.cpu_s >= self._cpu_s):  # SIGXCPU, SIGKILL
            return Ending(Status.TIMEOUT, error=f"used more than {self._cpu_s} s of processor time")
        if death.code == -9:
            return Ending(
                Status.CRASH, error="the process was killed, or closed its channel, before it answered"
            )
        if death.code < 0:
            return Ending(Status.CRASH, error=f"the process died of signal {-death.code} before it answered")
        return Ending(Status.CRASH, error=f"the process exited with code {death.code} before it answered")

    # --- time ---

    def _on_timer(self) -> None:
        left = self._wall_s - self._clock.billed(self._loop.time())
        if left <= 0:
            self._end(Ending(Status.TIMEOUT, error=f"ran longer than {self._wall_s:g} s"))
        else:
            self._timer = self._loop.call_later(max(left, 0.01), self._on_timer)

    # --- child to host ---

    def _on_readable(self) -> None:
        try:
            data = self._child.channel.recv(1 << 17)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._end(None)
            return
        try:
            for payload in self._buffer.feed(data):
                self._on_message(parse_frame(payload))
                if self._ended.done():
                    return
        except ProtocolError as error:
            self._end(Ending(Status.CRASH, error=f"broke the sandbox's protocol: {error}"))

    def _on_message(self, message: dict[str, Any]) -> None:
        op = message.get("op")
        if not self._ready:
            if op != "ready":
                raise ProtocolError("a message before the first")
            self._ready = True
            self._clock = Clock(self._loop.time())
        elif op == "result":
            self._end(_result(message))
        elif op == "stage" and message.get("stage") == "call":
            self._stage = "call"
        elif op == "batch":
            self._on_batch(message)
        else:
            self._on_call(message)

    def _on_batch(self, message: dict[str, Any]) -> None:
        """Calls of one frame begin at one moment, so that each is billed as beside the others."""
        calls = message.get("calls")
        if not isinstance(calls, list):
            raise ProtocolError("a batch without calls")
        for call in cast("list[Any]", calls):
            if not isinstance(call, dict):
                raise ProtocolError("a batch of something else than calls")
            self._on_call(cast("dict[str, Any]", call))
            if self._ended.done():
                return

    def _on_call(self, message: dict[str, Any]) -> None:
        op, number, args, session = message.get("op"), message.get("id"), message.get("args"), self._session
        if not isinstance(op, str) or op not in OPS or session is None:
            raise ProtocolError(f"the unknown operation {str(op)[:40]!r}")
        if type(number) is not int or not 0 < number < 1 << 31 or number in self._calls:
            raise ProtocolError("a call with a bad id")
        if not isinstance(args, dict):
            raise ProtocolError("a call without arguments")
        self._count += 1
        if len(self._calls) >= _MAX_OPEN_CALLS or self._count > _MAX_CALLS:
            self._end(Ending(Status.BUDGET, error=f"made too many calls ({self._count})"))
            return
        began = self._clock.begin(self._loop.time())
        self._calls[number] = asyncio.ensure_future(self._serve(session, number, op, args, began))

    async def _serve(
        self, session: Session, number: int, op: str, args: Mapping[str, Any], began: float
    ) -> None:
        seconds = 0.0
        try:
            answer = await session.call(op, args)
            seconds = answer.seconds
            if answer.fatal is not None:
                self._end(Ending(answer.fatal, error=answer.message))
                return
            frame = encode_frame(
                {"id": number, "value": answer.value, "kind": answer.kind, "message": answer.message}
            )
        except (EngineError, SandboxError) as error:
            self._end(Ending(Status.LOST, error=f"{type(error).__name__}: {error.message}"))
            return
        except asyncio.CancelledError:
            raise
        except BaseException as error:  # a bug of ours: whoever runs the attempt must see it
            if not self._ended.done():
                self._ended.set_exception(error)
            return
        finally:
            self._clock.end(began, seconds, self._loop.time())
            self._calls.pop(number, None)
        if self._clock.billed(self._loop.time()) > self._wall_s:
            self._end(
                Ending(Status.TIMEOUT, error=f"ran longer than {self._wall_s:g} s, model calls included")
            )
        elif not self._ended.done():
            self._send(frame)

    # --- host to child ---

    def _send(self, data: bytes) -> None:
        if self._unsent:
            self._unsent += data
        else:
            try:
                sent = self._child.channel.send(data)
            except BlockingIOError:
                sent = 0
            except OSError:
                return  # it is dying: the reader will say so
            if sent == len(data):
                return
            self._unsent += data[sent:]
            self._loop.add_writer(self._child.channel.fileno(), self._on_writable)
        if len(self._unsent) > _MAX_UNREAD_BYTES:
            self._end(Ending(Status.CRASH, error="does not read what it asked for"))

    def _on_writable(self) -> None:
        try:
            sent = self._child.channel.send(self._unsent)
        except BlockingIOError:
            return
        except OSError:
            sent = len(self._unsent)
        del self._unsent[:sent]
        if not self._unsent:
            self._loop.remove_writer(self._child.channel.fileno())


def _result(message: Mapping[str, Any]) -> Ending:
    status = _CHILD_STATUSES.get(str(message.get("status")))
    error, stage = message.get("error"), message.get("stage", "")
    if status is None or not isinstance(error, str) or stage not in ("", "import", "call", "done"):
        raise ProtocolError("a malformed result")
    return Ending(status, message.get("value"), error[:_ERROR_CHARS], stage)
