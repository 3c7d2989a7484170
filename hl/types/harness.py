"""Harnesses, the edits that change them, and what becomes of a reply."""

import hashlib
from dataclasses import dataclass
from enum import StrEnum

HARNESS_MAX_BYTES = 64 * 1024
"""Total size of a harness (PROTOCOL section 2)."""


@dataclass(frozen=True, slots=True)
class Harness:
    """An executable program around a model: flat Python files that import each other by name."""

    files: tuple[tuple[str, str], ...]
    """(file name, text), sorted by name."""
    entry: str = "harness.py"
    """The file that exposes `solve(model, question) -> str`."""

    @property
    def digest(self) -> str:
        """Hex sha256 of the entry name and every file's name and text: the key that scores follow."""
        h = hashlib.sha256(self.entry.encode())
        for name, text in self.files:
            for part in (name.encode(), text.encode("utf-8", "surrogatepass")):
                h.update(len(part).to_bytes(8, "big"))
                h.update(part)
        return h.hexdigest()

    def text(self, name: str) -> str:
        """The text of one file.

        Raises:
            KeyError: There is no such file.
        """
        return dict(self.files)[name]


@dataclass(frozen=True, slots=True)
class Edit:
    """One SEARCH/REPLACE block of a reply."""

    file: str | None
    """Named by a `# file:` line; None means the entry file."""
    search: str
    replace: str
    line: int = 0
    """Line of the reply (from 1) at which the block starts."""


class Outcome(StrEnum):
    """What became of a proposal (PROTOCOL section 5). Order: the later, the further it got."""

    LOST = "lost"
    """The proposer's engine failed; retried, not one of the K."""
    NO_EDIT = "no_edit"
    MALFORMED = "malformed"
    TRUNCATED = "truncated"
    EMPTY_SEARCH = "empty_search"
    TOO_MANY = "too_many"
    NOT_FOUND = "not_found"
    ALREADY_APPLIED = "already_applied"
    AMBIGUOUS = "ambiguous"
    OVERLAP = "overlap"
    NOOP = "noop"
    DUPLICATE = "duplicate"
    SYNTAX = "syntax"
    CONTRACT = "contract"
    IMPORT = "import"
    CRASH = "crash"
    """The stubbed smoke call raised, or returned something that is not a string."""
    TIMEOUT = "timeout"
    """Import or smoke call ran out of time."""
    SCORED = "scored"


@dataclass(frozen=True, slots=True)
class Reply:
    """One proposer reply, before it is parsed."""

    text: str
    finish_reason: str = "stop"
    """`stop`, or `length` when the reply was cut."""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float = 0.0
    """Money, in the price table's currency."""
    seconds: float = 0.0
    error: str = ""
    """Not empty when the engine failed: the proposal is `lost`."""
    earlier: tuple[str, ...] = ()
    """Replies of this proposal that a repair turn replaced, oldest first."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """One reply and what became of it."""

    index: int
    """0 to K-1 within its round."""
    proposer: str
    reply: Reply
    outcome: Outcome
    detail: str = ""
    """The reason, as a hint for a repair turn and for `hl log --all`."""
    summary: str = ""
    """One line: the reply's own words about the edit, cleaned."""
    edits: tuple[Edit, ...] = ()
    candidate: Harness | None = None
    """The harness it produces, where the edits apply."""
    duplicate_of: str = ""
    """Digest of the earlier equal candidate, for `duplicate`."""
