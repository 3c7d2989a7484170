"""Room 1, read, and room 8, record: harnesses, scores and rounds in git. The only room that speaks git.

repository.py  Ledger: what the rest of hl uses     names.py      references, candidate names
revisions.py   name -> commit -> Harness            lines.py      Measurement <-> JSON line
notes.py       append, merge, list notes            index.py      digest -> measurements (disposable)
messages.py    commit messages and trailers         rounds.py     round.json
recording.py   the order of writes, and recovery    worktree.py   clean? bring along
log.py         what `hl log` shows                  chain.py      history, known programs
founding.py    new repositories, first commit       locks.py      file locks
transport.py   push and fetch                       fsck.py       what does not add up
quick.py       a plain `hl log`, for its start-up
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hl.ledger.repository import Ledger as Ledger

__all__ = ["Ledger"]


def __getattr__(name: str) -> Any:
    # Loaded when asked for: a plain `hl log` reads through quick.py alone.
    if name == "Ledger":
        from hl.ledger.repository import Ledger

        return Ledger
    raise AttributeError(f"module 'hl.ledger' has no attribute {name!r}")
