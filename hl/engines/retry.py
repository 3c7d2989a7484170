"""When to try a failed call again, and when to stop asking a server that is down. No input or output of its
own.

Promises that a burst of failures costs a call seconds and a server that stays down costs a whole run little
more than one call's patience: the first call that runs out of tries opens the circuit, and the others then
fail at once.
"""

import email.utils
import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime

from hl.errors import EngineError

RETRY_AFTER_CAP_S = 120.0
"""A server may ask for this much patience at most."""
RETRIED_STATUSES = frozenset({408, 409, 425, 429})
"""Besides all from 500 on."""
MAX_SILENT_TIMEOUTS = 3
"""A call gives up after this many time-outs during which the server answered nobody."""


def is_retried(status: int) -> bool:
    """Whether an HTTP status may go away by itself."""
    return status in RETRIED_STATUSES or status >= 500


def parse_retry_after(milliseconds: str | None, seconds: str | None) -> float | None:
    """Seconds that a server asks to wait, from its `retry-after-ms` and `Retry-After` headers (number or
    date)."""
    wait: float | None = None
    try:
        if milliseconds is not None:
            wait = float(milliseconds) / 1000
        elif seconds is not None:
            wait = float(seconds)
    except ValueError:
        try:
            when = email.utils.parsedate_to_datetime(seconds or "")
        except ValueError:
            return None
        when = when if when.tzinfo is not None else when.replace(tzinfo=UTC)
        wait = (when - datetime.now(UTC)).total_seconds()
    if wait is None or not wait >= 0:  # also false for nan
        return None
    return min(wait, RETRY_AFTER_CAP_S)


def backoff_s(tries: int, *, first_s: float, cap_s: float = 8.0) -> float:
    """How long to wait after that many failed tries: doubles from `first_s`, less up to a quarter at random.

    The jitter spreads calls that failed together; it never reaches a result.
    """
    return min(first_s * 2.0 ** min(tries - 1, 32), cap_s) * (1.0 - 0.25 * random.random())


@dataclass(slots=True)
class Circuit:
    """What all calls of an engine know about its server."""

    cooldown_s: float = 10.0
    """How long calls fail at once after the circuit opened; then one is let through to see."""
    clock: Callable[[], float] = time.monotonic
    """Seconds; for tests."""
    successes: int = 0
    """Answers so far, of whatever kind: they prove that the server is there."""
    opened_at: float | None = None
    """When the circuit opened; None while calls pass."""
    reason: str = ""
    """The error that opened it."""
    hint: str | None = None
    """Its hint."""
    _probing: bool = field(default=False, repr=False)

    def check(self) -> None:
        """Pass, or fail at once.

        Raises:
            EngineError: The circuit is open.
        """
        if self.opened_at is None:
            return
        if self._probing or self.clock() - self.opened_at < self.cooldown_s:
            raise EngineError(self.reason, hint=self.hint)
        self._probing = True

    @property
    def is_probe(self) -> bool:
        """Whether the call that just passed `check` is the one that tries a server which was down."""
        return self._probing

    def succeed(self) -> None:
        """The server answered."""
        self.successes += 1
        self.opened_at = None
        self._probing = False

    def abandon_probe(self) -> None:
        """The probing call was cancelled: let another one try."""
        self._probing = False

    def give_up(self, error: EngineError, *, successes_before: int) -> None:
        """A call ran out of tries: open the circuit, unless the server answered somebody in the meantime."""
        self._probing = False
        if self.successes == successes_before:
            self.opened_at = self.clock()
            self.reason, self.hint = error.message, error.hint
