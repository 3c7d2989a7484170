"""One call of a model on its way from an event loop to a thread that computes, and back."""

import asyncio
import threading
from dataclasses import dataclass, field

from hl.types import ChatReply, ChatRequest


@dataclass(slots=True, eq=False)
class Call:
    """A call on its way through the threads."""

    request: ChatRequest
    loop: asyncio.AbstractEventLoop
    """Where it waits."""
    future: "asyncio.Future[ChatReply]"
    text: str = ""
    """The conversation as one text, where an engine needs it."""
    cancelled: threading.Event = field(default_factory=threading.Event)

    def finish(self, result: ChatReply | BaseException) -> None:
        """Hand the result to the event loop, unless that is gone."""
        try:
            self.loop.call_soon_threadsafe(self._set, result)
        except RuntimeError:  # the loop was closed
            self.cancelled.set()

    def _set(self, result: ChatReply | BaseException) -> None:
        if self.future.done():
            return
        if isinstance(result, BaseException):
            self.future.set_exception(result)
        else:
            self.future.set_result(result)
