"""Room 4, apply: a proposer's reply becomes a candidate harness or a typed outcome.

Promises: pure functions on text; linear time on any reply; nothing of a reply is executed, imported or used
as a path; every span is resolved on the parent's text and must match exactly once; all blocks apply or none.
Only trailing blanks and a uniform difference of indentation are forgiven: similarity words hints, it never
applies an edit. Does not run anything: `import`, `crash` and `timeout` come from the smoke call, and `scored`
here means "ready to run".

    parse.py    reply text -> Edits            resolve.py  Edits + parent -> Harness
    program.py  is it a program, which one     hints.py    the closest real lines, for a repair turn
    propose.py  all of it -> Proposal
"""

from hl.edits.error import EditError
from hl.edits.parse import (
    MAX_BLOCKS,
    MAX_LINES,
    MAX_REPLY_CHARS,
    parse_reply,
    render_edits,
    summarise_reply,
)
from hl.edits.program import check_harness, program_digest
from hl.edits.propose import propose_from_reply
from hl.edits.resolve import apply_edits

__all__ = [
    "MAX_BLOCKS",
    "MAX_LINES",
    "MAX_REPLY_CHARS",
    "EditError",
    "apply_edits",
    "check_harness",
    "parse_reply",
    "program_digest",
    "propose_from_reply",
    "render_edits",
    "summarise_reply",
]
