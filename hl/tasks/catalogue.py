"""The catalogue of reasoning-gym families: what is known of each, measured facts beside the table of `families.py`.

Measured facts come from `catalogue.json`, which `scripts/measure_families.py` writes; roles from `tracks.py`. It reads
that one file and measures nothing.
"""

import difflib
import functools
import json
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
HIGH_FLOOR = 0.3
"""A constant answer that scores this much is listed among the defects."""
HASH_SEEDED = frozenset(
    ("isomorphic_strings", "knight_swap", "polynomial_multiplication", "ransom_note", "word_ladder")
)
"""Families whose questions depend on PYTHONHASHSEED: hl makes them in a process that fixes it, and keeps them."""


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
    def space(self) -> str:
        """`large`, or how many different questions there are."""
        if self.exhausted:
            return f"{self.distinct:,}"
        return "large" if self.distinct >= LARGE * self.drawn else f"over {self.distinct:,}"


@dataclass(frozen=True, slots=True)
class Listing:
    """One family of the catalogue."""

    family: Family
    measured: Measured | None
    """None for a refused family."""

    @property
    def defects(self) -> tuple[str, ...]:
        """What is wrong with it, one clause each; empty for a family that is sound throughout."""
        family, measured = self.family, self.measured
        found = [family.reason] if family.reason else []
        if family.name in HASH_SEEDED:
            found.append("its questions depend on PYTHONHASHSEED, which hl fixes")
        if not family.gold_visible:
            found.append("has no answer text to show: whatever satisfies the question is right")
        if measured is not None:
            if measured.dropped:
                share = measured.dropped / measured.distinct
                found.append(f"{share:.2%} of its questions have no answer that grades 1; they are dropped")
            if measured.space != "large":
                found.append(f"few different questions: {measured.space}")
            if measured.floor_raw >= HIGH_FLOOR:
                answer = json.dumps(measured.floor_raw_answer, ensure_ascii=False)
                found.append(f"the constant answer {answer} scores {measured.floor_raw:.2f}")
        return tuple(found)

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
