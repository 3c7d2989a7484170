"""What a context says about the parent, as the catalog reads it: counts, flags, and what the chain already tried.

Earlier proposals are recognised by their summaries: `name + name: words`. Only the names are read.
"""

import ast
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from hl.proposer.catalog.source import Source, entry_source
from hl.types import Case, FailureClass, HistoryEntry, Outcome, ProposalContext

NAME_ERRORS = frozenset({"NameError", "ImportError", "ModuleNotFoundError", "UnboundLocalError"})
SYNTAX_ERRORS = frozenset({"SyntaxError", "IndentationError"})


def summary_names(summary: str) -> frozenset[str]:
    """The revision names at the head of a summary."""
    return frozenset(part.strip() for part in summary.split(":", 1)[0].split(" + "))


@dataclass(frozen=True)
class Evidence:
    """One proposal context, read."""

    context: ProposalContext
    source: Source

    @cached_property
    def runs_code(self) -> bool:
        """Whether the harness has programs run: by its text, or by its traces."""
        calls = bool(self.source.calls("python"))
        return calls or any(event.kind == "python" for case in self.cases for event in case.trace)

    @cached_property
    def writes_notes(self) -> bool:
        """Whether some run asked the model for something between a search and its last call."""
        for case in self.cases:
            kinds = [event.kind for event in case.trace]
            if "search" in kinds and kinds[kinds.index("search") :].count("chat") > 1:
                return True
        return False

    @cached_property
    def cases(self) -> tuple[Case, ...]:
        """All feedback cases."""
        return (*self.context.report.failures, *self.context.report.successes)

    @cached_property
    def failed(self) -> int:
        """Feedback questions that failed."""
        return max(1, len(self.context.report.failures))

    def failures(self, *classes: FailureClass) -> int:
        """Failed feedback attempts of these classes."""
        counts = self.context.report.classes
        return sum(counts.get(str(c), 0) for c in classes)

    def tool_errors(self, names: frozenset[str]) -> int:
        """Feedback attempts whose last program ended in one of these errors."""
        return sum(n for name, n in self.context.report.tool_errors.items() if name in names)

    # --- history -----------------------------------------------------------------------------------------------

    @cached_property
    def on_this_parent(self) -> tuple[HistoryEntry, ...]:
        """Entries of the rounds since the last accepted one: they revised this same harness."""
        history = self.context.report.history
        last = max((h.round for h in history if h.accepted), default=0)
        return tuple(h for h in history if h.round > last)

    @cached_property
    def siblings(self) -> tuple[HistoryEntry, ...]:
        """Entries that revised this harness, and those of the round that made it."""
        history = self.context.report.history
        last = max((h.round for h in history if h.accepted), default=0)
        return tuple(h for h in history if h.round >= last)

    @cached_property
    def tried(self) -> frozenset[frozenset[str]]:
        """Combinations of revisions that this parent was already given."""
        return frozenset(
            summary_names(h.summary) for h in self.on_this_parent if h.outcome is not Outcome.LOST
        )

    @cached_property
    def rejected_before(self) -> Counter[frozenset[str]]:
        """Combinations that failed on earlier parents of the chain."""
        return Counter(
            summary_names(h.summary)
            for h in self.context.report.history
            if not h.accepted and h not in self.on_this_parent
        )

    def entries_with(self, *names: str) -> tuple[HistoryEntry, ...]:
        """Rejected entries of the whole chain whose combination holds one of these revisions."""
        history = self.context.report.history
        return tuple(h for h in history if not h.accepted and summary_names(h.summary) & set(names))

    @staticmethod
    def count(entries: tuple[HistoryEntry, ...], names: frozenset[str], *, of: str) -> int:
        """Scoring attempts of rejected candidates by error or class name.

        Args:
            entries: From the history.
            names: Error or class names.
            of: `tool_errors` or `classes`.
        """
        tables: list[Mapping[str, int]] = [
            h.tool_errors if of == "tool_errors" else h.classes for h in entries
        ]
        return sum(n for table in tables for name, n in table.items() if name in names)

    @cached_property
    def unfenced(self) -> int:
        """Failures in which a reply holds code that never ran, or only an empty program ran."""
        found = 0
        for case in self.context.report.failures:
            ran = any(e.kind == "python" and e.request.strip() for e in case.trace)
            wrote = any(e.kind == "chat" and ("print(" in e.reply or "```" in e.reply) for e in case.trace)
            found += wrote and not ran
        return found

    @cached_property
    def has_demonstrations(self) -> bool:
        """Whether the harness keeps question -> program pairs in a list that can be exchanged."""
        node = self.source.definition("DEMONSTRATIONS")
        return isinstance(node, ast.Assign) and isinstance(node.value, (ast.List, ast.Tuple))


def read_evidence(context: ProposalContext) -> Evidence | None:
    """The context, read; None if the entry file is no program that can be changed safely."""
    source = entry_source(context.harness)
    return None if source is None else Evidence(context, source)
