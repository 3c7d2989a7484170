"""Admission: how many jobs may run at once, counted in memory. It does not know what a job is."""

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncGenerator


class Gate:
    """Admits jobs, first come first served, while their memory limits sum to no more than a ceiling."""

    def __init__(self, memory_mb: int, jobs: int) -> None:
        self._memory_mb, self._jobs = memory_mb, jobs
        self._used_mb, self._running = 0, 0
        self._queue: deque[tuple[int, asyncio.Future[None]]] = deque()

    def _fits(self, memory_mb: int) -> bool:
        return not self._running or (
            self._running < self._jobs and self._used_mb + memory_mb <= self._memory_mb
        )

    @contextlib.asynccontextmanager
    async def admit(self, memory_mb: int) -> AsyncGenerator[None]:
        """Wait for room; a job that is larger than everything runs alone."""
        if self._queue or not self._fits(memory_mb):
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._queue.append((memory_mb, waiter))
            try:
                await waiter
            except asyncio.CancelledError:
                if waiter.done() and not waiter.cancelled():
                    self._leave(memory_mb)
                raise
        else:
            self._enter(memory_mb)
        try:
            yield
        finally:
            self._leave(memory_mb)

    def _enter(self, memory_mb: int) -> None:
        self._used_mb += memory_mb
        self._running += 1

    def _leave(self, memory_mb: int) -> None:
        self._used_mb -= memory_mb
        self._running -= 1
        while self._queue and (self._queue[0][1].done() or self._fits(self._queue[0][0])):
            waiting_mb, waiter = self._queue.popleft()
            if not waiter.done():
                self._enter(waiting_mb)
                waiter.set_result(None)
