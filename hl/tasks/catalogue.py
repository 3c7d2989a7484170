"""The catalogue of reasoning-gym families: what is known of each, measured facts beside the table of `families.py`.

Measured facts come from `catalogue.json`, which `scripts/measure_families.py` writes; roles from `tracks.py`. It reads
that one file and measures nothing.
"""

import difflib
import functools
import json
import math
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hl.errors import UsageError
from hl.tasks.families import FAMILIES, Family
from hl.tasks.tracks import ROLES, TRACKS, track

MEASURED = Path(__file__).parent / "catalogue.json"
LARGE = 0.98
"""Share of new questions among those drawn from which a space is called large."""
FEW = 1000
"""Families with fewer different questions have it among their defects: the default sets of ten rounds want 928."""
HIGH_FLOOR = 0.3
"""A constant answer that scores this much is listed among the defects."""
HASH_SEEDED = frozenset(
    ("isomorphic_strings", "knight_swap", "polynomial_multiplication", "ransom_note", "word_ladder")
)
"""Families whose questions depend on PYTHONHASHSEED: hl makes them in a process that fixes it, and keeps them."""
ENDLESS = frozenset(("number_sequence",))
"""Families whose generator does not come back from some seeds."""
NONSENSE = {"spell_backward": 0.5, "figlet_font": 0.5, "emoji_mystery": 0.1}
"""Families that pay for right characters in place: what nonsense can earn on one question. It earns 0 elsewhere."""


@dataclass(frozen=True, slots=True)
class Measured:
    """What `scripts/measure_families.py` found, with default parameters."""

    category: str
    """reasoning-gym's own."""
    drawn: int
    distinct: int
    """Canonically different questions among those drawn."""
    dropped: int
    """Of the distinct ones: without an answer that grades 1, so never asked."""
    exhausted: bool
    """Whether drawing ended because nothing new came."""
    per_second: float
    """Questions a second of one core, checked for a right answer; one machine, one significant digit."""
    floor_raw: float
    """Mean raw grade of the best constant answer."""
    floor_raw_answer: str
    floor_strict: float
    floor_strict_answer: str
    floor_n: int
    """Questions behind the floors; the constants came from others."""

    @property
    def size(self) -> int | None:
        """How many different questions there are, estimated from the repeats unless all were seen; None if large.

        The estimate takes every question for equally likely, so that it is rather too low.
        """
        if self.exhausted:
            return self.distinct
        if self.distinct >= LARGE * self.drawn:
            return None
        low, high = self.distinct, 1000 * self.drawn
        while high - low > 1:
            size = (low + high) // 2
            if size * (1 - math.exp(-self.drawn / size)) < self.distinct:
                low = size
            else:
                high = size
        return high

    @property
    def space(self) -> str:
        """`large`, `216` or `about 3,000`."""
        size = self.size
        if size is None:
            return "large"
        return f"{size:,}" if self.exhausted else f"about {float(f'{size:.1g}'):,.0f}"


@dataclass(frozen=True, slots=True)
class Listing:
    """One family of the catalogue."""

    family: Family
    measured: Measured | None
    """None for a refused family, and for one that did not end within the script's limits."""

    @property
    def defects(self) -> tuple[str, ...]:
        """What is wrong with it, one clause each; empty for a family that is sound throughout."""
        family, measured = self.family, self.measured
        found = [family.reason] if family.reason else []
        if family.name in HASH_SEEDED:
            found.append("its questions depend on PYTHONHASHSEED, which hl fixes")
        if family.name in ENDLESS:
            found.append("its generator searches for ever from some seeds, which hl leaves out")
        if not family.gold_visible:
            found.append("has no answer text to show: whatever satisfies the question is right")
        if self.nonsense:
            found.append(f"pays nonsense up to {self.nonsense:g} for characters that happen to be right")
        if measured is None and family.status != "refused":
            found.append("not measured: too slow for the limits of scripts/measure_families.py")
        if measured is not None:
            if measured.dropped:
                share = measured.dropped / measured.distinct
                found.append(f"{share:.2%} of its questions have no answer that grades 1; they are dropped")
            if measured.size is not None and measured.size < FEW:
                found.append(f"few different questions: {measured.space}")
            if measured.floor_raw >= HIGH_FLOOR:
                answer = json.dumps(measured.floor_raw_answer, ensure_ascii=False)
                found.append(f"the constant answer {answer} scores {measured.floor_raw:.2f}")
        return tuple(found)

    @property
    def nonsense(self) -> float:
        """The most that a text of nonsense earns on a question, raw."""
        return NONSENSE.get(self.family.name, 0.0)

    def role(self, track_name: str) -> str:
        """Its role on a track, or empty."""
        return TRACKS[track_name].role(self.family.name)


@functools.cache
def catalogue() -> dict[str, Listing]:
    """Every family by name, refused ones included."""
    rows: dict[str, Any] = json.loads(MEASURED.read_text(encoding="utf-8"))["families"]
    return {
        name: Listing(family, Measured(**rows[name]) if name in rows else None)
        for name, family in sorted(FAMILIES.items())
    }


def choose(*, track_name: str = "", role: str = "", cluster: str = "") -> tuple[Listing, ...]:
    """The families that fit every filter given, by name.

    Args:
        track_name: A track: its families only.
        role: One of `ROLES`, on that track or, without one, on any.
        cluster: A cluster.

    Raises:
        UsageError: An unknown track, role or cluster, with the nearest name.
    """
    if track_name:
        track(track_name)
    if role:
        _known("role", role, ROLES)
    if cluster:
        _known("cluster", cluster, sorted({family.cluster for family in FAMILIES.values()}))
    tracks = (track_name,) if track_name else tuple(TRACKS)

    def fits(listing: Listing) -> bool:
        roles = {listing.role(name) for name in tracks} - {""}
        return (
            (not track_name or bool(roles))
            and (not role or role in roles)
            and cluster in ("", listing.family.cluster)
        )

    return tuple(listing for listing in catalogue().values() if fits(listing))


def _known(what: str, name: str, names: Iterable[str]) -> None:
    choices = list(names)
    if name not in choices:
        near = difflib.get_close_matches(name, choices, n=1)
        meant = f"; did you mean {near[0]!r}?" if near else f"; there are {', '.join(choices)}."
        raise UsageError(f"{name!r} is not a {what} of families{meant}", hint="hl bench families")
