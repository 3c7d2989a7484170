"""Calls that wait together are computed together: a queue, and one thread that takes batches from it.

Promises that the event loop is never blocked, that a call which was given up while it waited is not computed, and that
closing fails what is open at once and waits for the thread. Knows nothing about models.
"""

import asyncio
import atexit
import queue
import threading
import time
import weakref
from collections.abc import Callable

from hl.engines.call import Call
from hl.errors import EngineError
from hl.types import ChatReply, ChatRequest

_GATHER_S = 0.01
"""How long the first of a batch waits for others."""
_JOIN_S = 30.0


class Batches:
    """The queue of one engine.

    Args:
        answer: Computes a batch in the thread, and finishes each of its calls. What it raises fails those that it did
            not finish.
        size: Most calls of a batch.
        name: Of the engine, for messages.
        end: Called in the thread when it is closed.
    """

    def __init__(
        self, answer: Callable[[list[Call]], None], *, size: int, name: str, end: Callable[[], None]
    ) -> None:
        self._answer = answer
        self._size = size
        self._name = name
        self._end = end
        self._work: queue.SimpleQueue[Call | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        """Guards what follows."""
        self._thread: threading.Thread | None = None
        self._open: set[Call] = set()
        self._closed = False

    async def chat(self, request: ChatRequest) -> ChatReply:
        """Put one request into a batch, and wait for its reply.

        Raises:
            EngineError: It is closed, or the batch failed.
        """
        loop = asyncio.get_running_loop()
        call = Call(request, loop, loop.create_future())
        with self._lock:
            if self._closed:
                raise EngineError(f"the engine {self._name} is closed")
            if self._thread is None:
                # A daemon thread inside C++ must not outlive the interpreter: stop it before that is torn down.
                close = weakref.WeakMethod(self.close)
                atexit.register(lambda: (method := close()) and method())
                self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
                self._thread.start()
            self._open.add(call)
            self._work.put(call)
        try:
            return await call.future
        finally:
            call.cancelled.set()
            with self._lock:
                self._open.discard(call)

    def close(self) -> None:
        """Fail what is open, and end the thread; idempotent."""
        with self._lock:
            self._closed = True
            thread, self._thread = self._thread, None
            failed = list(self._open)
        for call in failed:
            call.finish(EngineError(f"the engine {self._name} was closed during a call"))
            call.cancelled.set()
        if thread is not None:
            self._work.put(None)
            thread.join(_JOIN_S)

    def _run(self) -> None:
        last = False
        while not last:
            calls, last = self._gather()
            calls = [call for call in calls if not call.cancelled.is_set()]
            try:
                if calls:
                    self._answer(calls)
            except Exception as error:
                for call in calls:
                    call.finish(error)
        self._end()

    def _gather(self) -> tuple[list[Call], bool]:
        """(the next batch, whether it is the last one)."""
        calls: list[Call] = []
        deadline: float | None = None
        while len(calls) < self._size:
            wait_s = None if deadline is None else max(0.0, deadline - time.monotonic())
            try:
                call = self._work.get(timeout=wait_s)
            except queue.Empty:
                break
            if call is None:
                return calls, True
            calls.append(call)
            deadline = deadline or time.monotonic() + _GATHER_S
        return calls, False
