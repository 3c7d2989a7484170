"""Git, spoken to as a program. Below the ledger, which alone uses it.

Promises: every command runs with fixed options and a clean environment, takes bytes and gives bytes, never
prompts and never reads untrusted text as an option; objects are built here and stored in one step; references
move only by compare-and-swap. Reading streams from the git binary, writing goes through GitPython's command
facade (which is slow to import). Does not know what a harness, a score or a round is.

    command.py  running git, references, identity
    batch.py    many objects by name
    objects.py  blobs, trees and commits to be stored
"""

from hl.git.batch import Batch
from hl.git.command import Git, GitFailed, RefMovedError, RefUpdate
from hl.git.objects import Identity, Objects, TreeEntry, parse_tree

__all__ = [
    "Batch",
    "Git",
    "GitFailed",
    "Identity",
    "Objects",
    "RefMovedError",
    "RefUpdate",
    "TreeEntry",
    "parse_tree",
]
