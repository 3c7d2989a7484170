"""Gains, verdicts, revisions, and a round with all of it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from hl.types.attempts import Cost, Measurement
from hl.types.harness import Harness, Proposal
from hl.types.reports import Report


@dataclass(frozen=True, slots=True)
class Gain:
    """A paired comparison of two harnesses on the same questions."""

    mean: float
    """Mean of (candidate - parent)."""
    se: float
    n: int
    wins: int
    losses: int
    ties: int
    p_sign: float
    """Two-sided exact sign test over wins and losses."""
    p_greater: float
    """One-sided p that the candidate is better: paired sign-flip permutation test."""


class Decision(StrEnum):
    """Whether the branch moved."""

    ACCEPTED = "accepted"
    REJECTED = "rejected"


class Evidence(StrEnum):
    """Whether the gain stands out of the noise: separate from the decision."""

    GAIN = "gain"
    NOISE = "within noise"


@dataclass(frozen=True, slots=True)
class Verdict:
    """A round's result."""

    decision: Decision
    evidence: Evidence
    winner: int | None
    """Index of the proposal that was best on the scoring block, even if rejected; None if none was scored."""
    selection: Gain | None
    """Winner against parent on the scoring block: biased upwards, it was used to choose."""
    confirmed: Gain | None
    """Winner against parent on the confirmation block."""
    reason: str
    """One sentence."""


@dataclass(frozen=True, slots=True)
class Revision:
    """A harness in the ledger."""

    commit: str
    """Full object name."""
    harness: Harness
    lineage: str
    """Branch name."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """One proposal of a round with its measurement."""

    proposal: Proposal
    scoring: Measurement | None
    """On the round's scoring block, where it was scored."""
    behavioural_noop: bool = False
    """Its code differs, but no call on any question does."""


@dataclass(frozen=True, slots=True)
class Round:
    """One round, complete: what the ledger records."""

    lineage: str
    number: int
    """From 1."""
    parent: Revision
    feedback: Measurement
    scoring: Measurement
    """Parent on the scoring block."""
    candidates: tuple[Candidate, ...]
    verdict: Verdict
    confirmation: tuple[Measurement, ...]
    """Parent then winner on the confirmation block, or nothing."""
    report: Report
    cost: Cost
    """Spent in this round, cached replies not counted."""
    settings: Mapping[str, str] = field(default_factory=dict[str, str])
    """What decided: select rule, K, block sizes, seeds."""
