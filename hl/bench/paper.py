"""The paper's own numbers (arXiv:2609.35738), as data. Each has its source and its mark; none was measured by hl."""

from dataclasses import dataclass

PAPER, SECOND_HAND = "paper", "second-hand"
"""`paper`: a review of the paper or its project page says so. `second-hand`: a third party's summary, unchecked."""

PAGE = "project page"
REVIEW = "a review of the paper"
SUMMARY = "a third party's summary"

MODELS = (
    "reasoning: proposer and solver Qwen3.5-4B; QA: proposer Qwen3-4B, solver Qwen3-8B; "
    "teacher of 35 billion parameters (second-hand)"
)
"""Who made them."""


@dataclass(frozen=True, slots=True)
class Figure:
    """One number of the paper."""

    benchmark: str
    """`reasoning-gym` or `qa`."""
    proposer: str
    measure: str
    value: float
    se: float | None
    """Standard error, where it is given."""
    source: str
    mark: str


@dataclass(frozen=True, slots=True)
class Curve:
    """Scores by round, from round 0."""

    benchmark: str
    proposer: str
    measure: str
    values: tuple[float, ...]
    source: str
    mark: str


UNSEEN = "mean of 8, failures 0, 21 unseen families"
ALL = "mean of 8, failures 0, all 26 families"
FAILED = "share of failed proposals, unseen families"
FIVE = "five rounds"

FIGURES = (
    Figure("reasoning-gym", "base", UNSEEN, 0.317, 0.057, PAGE, PAPER),
    Figure("reasoning-gym", "SFT", UNSEEN, 0.42, None, REVIEW, PAPER),
    Figure("reasoning-gym", "SFT", ALL, 0.415, None, REVIEW, PAPER),
    Figure("reasoning-gym", "single-step RL", UNSEEN, 0.623, 0.059, PAGE, PAPER),
    Figure("reasoning-gym", "35B teacher", UNSEEN, 0.56, None, REVIEW, PAPER),
    Figure("reasoning-gym", "base", FAILED, 0.38, None, SUMMARY, SECOND_HAND),
    Figure("reasoning-gym", "single-step RL", FAILED, 0.08, None, SUMMARY, SECOND_HAND),
    Figure("reasoning-gym", "single-step RL", f"{FIVE}, canonical", 0.699, None, SUMMARY, SECOND_HAND),
    Figure("reasoning-gym", "single-step RL", f"{FIVE}, format-varied", 0.725, None, SUMMARY, SECOND_HAND),
    Figure("qa", "RL", "one of 80 independent revisions, MuSiQue EM", 0.15, None, PAGE, PAPER),
    Figure("qa", "RL", "ten rounds, MuSiQue EM", 0.27, None, PAGE, PAPER),
)

_EM = "MuSiQue EM by round, mean of four chains"
CURVES = (
    Curve(
        "qa",
        "RL",
        _EM,
        (0.143, 0.190, 0.209, 0.245, 0.242, 0.247, 0.266, 0.266, 0.273, 0.261, 0.268),
        PAGE,
        PAPER,
    ),
    Curve(
        "qa",
        "base",
        _EM,
        (0.143, 0.088, 0.103, 0.142, 0.161, 0.151, 0.191, 0.142, 0.145, 0.129, 0.138),
        PAGE,
        PAPER,
    ),
)
