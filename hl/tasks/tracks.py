"""Tracks: which reasoning-gym families train a proposer, which test it, and which stay out. A table and nothing else.

Families are split by cluster (`families.py`), never by question: the clusters of `sft`, `rl` and `unseen` are pairwise
disjoint, and on the paper's track `unseen` shares none with `excluded` either.
"""

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field

from hl.errors import UsageError
from hl.tasks.families import FAMILIES

SFT, RL, UNSEEN, NEAR, EXCLUDED = ROLES = ("sft", "rl", "unseen", "near", "excluded")
"""What a family may be for on a track."""


@dataclass(frozen=True, slots=True)
class Track:
    """A split of families."""

    name: str
    sft: tuple[str, ...]
    """A teacher's revisions on these are what supervised training learns from."""
    rl: tuple[str, ...]
    """Reinforcement trains on these."""
    unseen: tuple[str, ...]
    """Tests transfer. In the order in which a shorter run takes them."""
    near: tuple[str, ...]
    """Untrained families of training clusters: a table of its own, no evidence of transfer between clusters."""
    excluded: Mapping[str, str] = field(default_factory=dict[str, str])
    """Family -> why it is in none of these."""

    def role(self, family: str) -> str:
        """`sft`, `rl`, `unseen`, `near`, `excluded`, or empty where the track does not name the family."""
        for role, names in zip(
            ROLES, (self.sft, self.rl, self.unseen, self.near, self.excluded), strict=True
        ):
            if family in names:
                return role
        return ""


BOUNDARY = (
    "excluded by the paper: a table of its own (`--excluded`), where revision was found to stop helping"
)
CONSTANT = "a constant answer scores about as much as SmolLM2-135M can be brought to"
NO_HEADROOM = "three rounds with the catalog left SmolLM2-135M at its seed's score (docs/experiments.md)"
COMPOSITE = {"composite": FAMILIES["composite"].reason}

PAPER = Track(
    name="paper",
    # The paper does not say which families its teacher wrote for: these are ours, of clusters that no table tests.
    sft=(
        "circuit_logic",
        "fraction_simplification",
        "mahjong_puzzle",
        "needle_haystack",
        "tsumego",
    ),
    rl=("codeio", "maze", "rotten_oranges", "simple_geometry", "tower_of_hanoi"),
    # Ours: one a cluster, none of the training clusters or of those of the excluded five; low floors were preferred.
    unseen=(
        "arc_1d",
        "base_conversion",
        "basic_arithmetic",
        "caesar_cipher",
        "countdown",
        "cryptarithm",
        "dice",
        "family_relationships",
        "game_of_life",
        "graph_color",
        "group_anagrams",
        "gsm_symbolic",
        "knights_knaves",
        "list_functions",
        "mini_sudoku",
        "number_sorting",
        "polynomial_multiplication",
        "prime_factorization",
        "sentence_reordering",
        "simple_integration",
        "time_intervals",
    ),
    near=("advanced_geometry", "bf", "binary_matrix", "jugs", "largest_island", "shortest_path"),
    excluded={
        **dict.fromkeys(("ab", "knight_swap", "letter_jumble", "modulo_grid", "sokoban"), BOUNDARY),
        **COMPOSITE,
    },
)

TINY = Track(
    name="tiny",
    sft=("count_bits", "letter_counting", "number_format"),
    rl=("spell_backward", "number_filtering"),
    unseen=(
        "gcd",
        "decimal_chain_sum",
        "products",
        "chain_sum",
        "lcm",
        "decimal_arithmetic",
        "prime_factorization",
        "fraction_simplification",
    ),
    near=("base_conversion", "bitwise_arithmetic", "group_anagrams", "word_sequence_reversal"),
    excluded={
        **dict.fromkeys(
            ("calendar_arithmetic", "course_schedule", "isomorphic_strings", "syllogism"), CONSTANT
        ),
        **dict.fromkeys(
            ("caesar_cipher", "complex_arithmetic", "leg_counting", "number_sorting", "simple_geometry"),
            NO_HEADROOM,
        ),
        **COMPOSITE,
    },
)

TRACKS: dict[str, Track] = {track.name: track for track in (PAPER, TINY)}
"""By name."""


def track(name: str) -> Track:
    """The track of that name.

    Raises:
        UsageError: There is none; with the nearest.
    """
    if name in TRACKS:
        return TRACKS[name]
    near = difflib.get_close_matches(name, TRACKS, n=1)
    meant = f"; did you mean {near[0]!r}?" if near else f"; there are {', '.join(TRACKS)}."
    raise UsageError(f"{name!r} is not a track{meant}", hint="hl bench families --track tiny")
