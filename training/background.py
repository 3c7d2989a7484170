"""An event loop on a thread of its own: candidates are run while the main thread computes gradients."""

import asyncio
import threading
from collections.abc import Coroutine, Sequence
from concurrent.futures import Future
from types import TracebackType
from typing import Any, Self, TypeVar

from hl.evaluate import first_error

T = TypeVar("T")


async def together(work: Sequence[Coroutine[Any, Any, T]]) -> tuple[T, ...]:
    """The results of all, in order; the first error ends the others.

    Raises:
        HlError: The one that matters of what went wrong.
    """
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one) for one in work]
    except BaseExceptionGroup as failures:
        raise first_error(failures) from None
    return tuple(task.result() for task in tasks)


class Background:
    """A context manager around a running loop. Sandboxes and caches that live on it are opened and closed there."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, name="hl-loop", daemon=True)

    def start(self, work: Coroutine[Any, Any, T]) -> "Future[T]":
        """Begin something there."""
        return asyncio.run_coroutine_threadsafe(work, self.loop)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Do something there and wait; cancelled there when the wait is interrupted here."""
        future = self.start(work)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.run(self._settle())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()
        self.loop.close()

    async def _settle(self) -> None:
        rest = asyncio.all_tasks() - {asyncio.current_task()}
        for task in rest:
            task.cancel()
        await asyncio.gather(*rest, return_exceptions=True)
        await self.loop.shutdown_asyncgens()
