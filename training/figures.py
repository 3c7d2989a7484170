"""What one update came to, kept between judging it and writing it down: a line of `metrics.jsonl`, and TRL's tables."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from training import record
from training.contexts import Context
from training.groups import by_family, figures
from training.rewards import Judged


class Figures:
    """Of the latest update."""

    def __init__(self) -> None:
        self._groups: dict[str, float] = {}
        self._families: dict[str, float] = {}
        self._seconds: dict[str, float] = {}

    def take(
        self,
        judged: Sequence[Judged],
        contexts: Sequence[Context],
        generations: int,
        seconds: Mapping[str, float],
    ) -> None:
        """Take an update.

        Args:
            judged: All replies, group by group.
            contexts: Those that they revise, at least.
            generations: Replies a group.
            seconds: Part -> how long it took.
        """
        self._groups = figures(judged, generations)
        self._families = by_family(judged, {c.id: c.family for c in contexts})
        self._seconds = dict(seconds)

    def tell_trl(self, columns: Mapping[str, Any]) -> None:
        """What its tables and trackers show beside its own figures; called as `reward_functions` calls."""
        for name in ("context", "outcome", "candidate", "detail"):
            columns["log_extra"](name, [row.get(name, "") for row in columns["judged"]])
        for name, value in self._groups.items():
            columns["log_metric"](f"hl/{name}", value)
        for name, value in self._families.items():
            columns["log_metric"](f"hl/J/{name}", value)

    def write(self, out: Path, step: int, logs: Mapping[str, Any]) -> None:
        """Write the line of an update.

        Args:
            out: The run's directory.
            step: Number of the update.
            logs: What the trainer logs of it.
        """
        seconds = dict(self._seconds)
        whole = logs.get("step_time")
        if isinstance(whole, float):
            seconds["update"] = max(0.0, whole - sum(seconds.values()))
        kept = {k: v for k, v in logs.items() if not k.startswith(("hl/", "epoch"))}
        record.append_metrics(
            out,
            {
                "step": step,
                "seconds": {k: round(v, 3) for k, v in seconds.items()},
                "families": self._families,
                **kept,
                **{f"hl/{k}": v for k, v in self._groups.items()},
            },
        )
