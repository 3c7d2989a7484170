"""Exceptions for our own machinery, each with its process exit code.

Untrusted code never raises one of these: a crashing harness or a stale edit is recorded as data. `hl.cli` is the one
place where an `HlError` becomes an exit code.

    HlError                1   understood, not possible here
    +-- UsageError         2   the command line or a configuration value is wrong
    +-- StoppedEarly       3   a budget ended the work; progress is saved
    +-- RepositoryError    4   not a repository, unknown revision, unusable state
    +-- LockedError        5   another hl holds the lock
    +-- SandboxError       6   the sandbox cannot be trusted here
    +-- EngineError        7   the model engine failed
    +-- MissingExtraError  8   an optional dependency is not installed
"""


class HlError(Exception):
    """Something hl understood and cannot do.

    Args:
        message: One sentence that names the value at fault.
        hint: The next command to type, or None.
    """

    exit_code = 1

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class UsageError(HlError):
    """The command line, or a value in a configuration or task file, is wrong."""

    exit_code = 2


class StoppedEarly(HlError):
    """A budget or a signal ended the work; what was measured is saved."""

    exit_code = 3


class RepositoryError(HlError):
    """Not an hl repository, an unknown revision, or a state hl cannot work on."""

    exit_code = 4


class LockedError(HlError):
    """Another hl process holds the repository's lock."""

    exit_code = 5


class SandboxError(HlError):
    """The sandbox cannot be trusted on this machine."""

    exit_code = 6


class EngineError(HlError):
    """A model engine failed for good: wrong key, unknown model, or a server that stays down."""

    exit_code = 7


class MissingExtraError(HlError):
    """An optional dependency is not installed; the hint is the install command."""

    exit_code = 8
