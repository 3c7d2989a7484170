"""One printed line per measured value, with the value to reach for."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Line:
    """One measured value."""

    what: str
    value: float
    shown: str
    target: str = ""
    reached: bool | None = None
    """None where there is nothing to reach."""

    def render(self) -> str:
        """As printed."""
        verdict = "" if self.reached is None else ("pass" if self.reached else "MISS")
        return f"{self.what:<58} {self.shown:>16}  {self.target:<12} {verdict}".rstrip()


def at_least(what: str, value: float, shown: str, limit: float) -> Line:
    """A line whose value should not be lower."""
    return Line(what, value, shown, f">= {limit:g}", value >= limit)


def at_most(what: str, value: float, shown: str, limit: float) -> Line:
    """A line whose value should not be higher."""
    return Line(what, value, shown, f"<= {limit:g}", value <= limit)
