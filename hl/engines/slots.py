"""Which llama.cpp slot runs which prompt, so that no text is read twice. Pure bookkeeping.

Reading a prompt is the main cost on a CPU: a harness's instructions and demonstrations are a prefix that all
its calls share, and each of eight slots would have to read it. So the first prompt with a new prefix *leads*:
it is read alone, its state is kept as a snapshot, and the prompts that share the prefix wait for that and
start from a copy.

Lengths are characters of the rendered conversation: a cheap stand-in for tokens. A wrong guess costs time and
never changes what llama.cpp computes from, because it compares the tokens itself.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from hl.types import Message

COLD_CHARS = 400
"""An unread part longer than this (100 tokens, half a second) is worth a snapshot, or waiting for one."""
NEAR_CHARS = 64
"""Differences below this do not decide between slots."""


def render_messages(messages: Sequence[Message]) -> str:
    """A conversation as one text in which an equal beginning means equal beginning of the prompt."""
    return "".join(f"\x02{m.role}\x03{m.content}" for m in messages)


def shared_prefix(a: str, b: str) -> int:
    """Length of the longest common prefix."""
    low, high = 0, min(len(a), len(b))
    if a[:high] == b[:high]:
        return high
    while low < high:  # a[:low] == b[:low] always holds; the slices are compared by memcmp
        middle = (low + high + 1) // 2
        if a[low:middle] == b[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


@dataclass(slots=True)
class Snapshot:
    """The state of a slot after it read a prompt."""

    text: str
    """What was read."""
    handle: int
    """Where the state is kept; opaque here."""
    size: int
    """Bytes it takes."""
    used: int = 0
    """Clock of its last use."""


@dataclass(frozen=True, slots=True)
class Plan:
    """How one prompt is to be run."""

    slot: int
    """Where."""
    restore: Snapshot | None
    """State to put into the slot first."""
    lead: bool
    """Whether to read the prompt alone and keep a snapshot before generating."""


@dataclass(slots=True)
class SlotMap:
    """What every slot has read, which are idle, and the snapshots."""

    count: int
    """Number of slots."""
    budget_bytes: int
    """Snapshots together take no more than this; 0 turns them off."""
    discard: Callable[[int], None]
    """Frees a snapshot's handle."""
    texts: list[str] = field(init=False)
    """What each slot has read."""
    idle: dict[int, int] = field(init=False)
    """Idle slots with the clock of their last use."""
    leads: dict[int, str] = field(default_factory=dict[int, str])
    """Prompts being read for a snapshot, by slot."""
    snapshots: list[Snapshot] = field(default_factory=list[Snapshot])
    """Kept states."""
    clock: int = 0
    """Counts events."""

    def __post_init__(self) -> None:
        self.texts = [""] * self.count
        self.idle = dict.fromkeys(range(self.count), 0)

    def plan(self, text: str) -> Plan | None:
        """Take a slot for this prompt; None where it must wait: no idle slot, or a lead reads its prefix."""
        if not self.idle:
            return None
        warm = {slot: shared_prefix(text, self.texts[slot]) for slot in self.idle}
        in_slot = max(warm.values())
        snapshot = max(self.snapshots, key=lambda s: shared_prefix(text, s.text), default=None)
        in_snapshot = shared_prefix(text, snapshot.text) if snapshot is not None else 0
        known = max(in_slot, in_snapshot)
        if any(shared_prefix(text, lead) > known + COLD_CHARS for lead in self.leads.values()):
            return None
        if in_snapshot <= in_slot + NEAR_CHARS:
            snapshot = None
        # A restore overwrites what the slot had read: take the one that has been idle longest.
        near = [slot for slot in self.idle if snapshot is not None or warm[slot] >= in_slot - NEAR_CHARS]
        slot = min(near, key=lambda s: self.idle[s])
        lead = self.budget_bytes > 0 and len(text) - known > COLD_CHARS
        del self.idle[slot]
        self.clock += 1
        if snapshot is not None:
            snapshot.used = self.clock
        if lead:
            self.leads[slot] = text
        return Plan(slot, snapshot, lead)

    def keep(self, slot: int, handle: int, size: int) -> None:
        """A lead has been read: its snapshot may be used from now on."""
        self.clock += 1
        self.snapshots.append(Snapshot(self.leads[slot], handle, size, self.clock))
        self.end_lead(slot)
        while self.snapshots and sum(s.size for s in self.snapshots) > self.budget_bytes:
            oldest = min(self.snapshots, key=lambda s: s.used)
            self.snapshots.remove(oldest)
            self.discard(oldest.handle)

    def end_lead(self, slot: int) -> None:
        """A lead is over, with or without a snapshot. Nothing happens if there was none."""
        self.leads.pop(slot, None)

    def release(self, slot: int, text: str) -> None:
        """A slot is idle again and has read this text."""
        self.clock += 1
        self.end_lead(slot)
        self.texts[slot] = text
        self.idle[slot] = self.clock

    def clear(self) -> None:
        """Free all snapshots."""
        for snapshot in self.snapshots:
            self.discard(snapshot.handle)
        self.snapshots.clear()
