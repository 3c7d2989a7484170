"""The nouns of hl. Frozen values without behaviour beyond what is derived from their own fields.

Everything here is plain data: it imports nothing of ours but nothing else either, so every room can share it, and
takes it from here. Counts are integers, durations are seconds, grades lie in [0, 1].

    questions.py  tasks, questions, answers, grades
    harness.py    harnesses, edits, replies, proposals
    attempts.py   runs of harnesses, their costs and scores
    reports.py    what a proposer is told
    rounds.py     gains, verdicts, revisions, rounds
    seams.py      engines, proposers, graders
"""

from hl.types.attempts import (
    HAND_OVER,
    Attempt,
    Cost,
    FailureClass,
    Measurement,
    Score,
    Status,
    TraceEvent,
)
from hl.types.harness import (
    HARNESS_MAX_BYTES,
    Edit,
    Harness,
    Outcome,
    Proposal,
    Reply,
)
from hl.types.questions import (
    Gold,
    Grade,
    Question,
    QuestionSet,
    QuestionSets,
    Role,
    TaskSpec,
)
from hl.types.reports import (
    Case,
    HistoryEntry,
    Report,
)
from hl.types.rounds import (
    Candidate,
    Decision,
    Evidence,
    Gain,
    Revision,
    Round,
    Verdict,
)
from hl.types.seams import (
    ChatReply,
    ChatRequest,
    Engine,
    Grader,
    Message,
    ProposalContext,
    Proposer,
)

__all__ = [
    "HAND_OVER",
    "HARNESS_MAX_BYTES",
    "Attempt",
    "Candidate",
    "Case",
    "ChatReply",
    "ChatRequest",
    "Cost",
    "Decision",
    "Edit",
    "Engine",
    "Evidence",
    "FailureClass",
    "Gain",
    "Gold",
    "Grade",
    "Grader",
    "Harness",
    "HistoryEntry",
    "Measurement",
    "Message",
    "Outcome",
    "Proposal",
    "ProposalContext",
    "Proposer",
    "Question",
    "QuestionSet",
    "QuestionSets",
    "Reply",
    "Report",
    "Revision",
    "Role",
    "Round",
    "Score",
    "Status",
    "TaskSpec",
    "TraceEvent",
    "Verdict",
]
