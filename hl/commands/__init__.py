"""One module per verb, and the table that names them. Importing this package loads no verb.

The table is what `hl --help` prints; a test compares it with the modules.
"""

GROUPS: tuple[tuple[str, tuple[tuple[str, str], ...]], ...] = (
    (
        "Start",
        (
            ("init", "Make a repository with a seed harness for a task, and score it"),
            ("model", "List, fetch and serve models"),
            ("config", "Show and change settings, and trust a repository's"),
            ("doctor", "Check what this machine can do, the sandbox first"),
        ),
    ),
    (
        "Improve",
        (
            ("revise", "Run rounds of proposed edits and keep what scores better"),
            ("eval", "Measure a revision; adds to what is known of it"),
            ("run", "Answer one question with a revision of the harness"),
            ("bench", "Run the paper's benchmarks on your models, and compare runs"),
            ("train", "Train the proposer on a teacher's edits, then on its own scores"),
        ),
    ),
    (
        "Look",
        (
            ("status", "Where the branch stands and what to type next"),
            ("log", "Rounds with verdict, score and gain"),
            ("show", "One edit: the diff, the reply, the verdict, the scores"),
            ("diff", "Compare two revisions, in code and question by question"),
            ("report", "What a proposer is told about a revision"),
            ("best", "Revisions by score"),
        ),
    ),
    (
        "Share and repair",
        (
            ("push", "Send branch, scores and rounds to another repository"),
            ("fetch", "Bring branches, scores and rounds from another repository"),
            ("fsck", "Check that rounds, scores and records fit together"),
        ),
    ),
)
"""Heading -> (verb, one line), in the order of `hl --help`."""

VERBS: dict[str, str] = {verb: line for _, verbs in GROUPS for verb, line in verbs}
"""Verb -> one line."""
