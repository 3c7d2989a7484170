"""Measurement <-> one line of the notes in `refs/notes/hl/evals`.

A line is JSON with short keys, `t` (the time) first and the others sorted, so that git's own `cat_sort_uniq` merge
sorts by time. Unknown keys are ignored. A line that cannot be read is somebody else's: it is kept, skipped, and
reported by `hl fsck`.
"""

import json
import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, cast

from hl.types import Measurement, Role

VERSION = 1
_ID_LENGTH = 16
_GRADES = {"0": 0.0, "1": 1.0, "-": None}


def render_line(m: Measurement) -> str:
    """One line, without the line break."""
    return json.dumps(to_json(m), separators=(",", ":"), allow_nan=False)


def to_json(m: Measurement) -> dict[str, Any]:
    """The line's object.

    | key | holds | key | holds |
    |---|---|---|---|
    | t, v | time, version | mode | raw or strict |
    | abl | ablation | n, mean, se | the score, for readers; not read back |
    | box | sandbox tier | q | digest of the question block |
    | calls, tok, s, cost | totals | rec | record address |
    | cls | failures by class | role | which question set |
    | cnt | attempts by status | sid, sn | solver digest and name |
    | g, ids | grades and question ids in set order | tools | attempts by tool error |
    | h | harness digest | tr, z | trials, zero-call share |
    | og | the grades that `mode` does not name | | |
    """
    score = m.score
    values: dict[str, Any] = {
        "abl": m.ablation,
        "box": m.sandbox,
        "calls": m.calls,
        "cls": dict(m.classes),
        "cnt": dict(m.counts),
        "cost": m.cost,
        "g": _render_grades(m.grades),
        "h": m.harness,
        "ids": _render_ids(m.ids),
        "mean": round(score.mean, 6),
        "mode": m.mode,
        "n": score.n,
        "og": _render_grades(m.other_grades),
        "q": m.questions,
        "rec": m.record,
        "role": m.role.value,
        "s": m.seconds,
        "se": round(score.se, 6),
        "sid": m.solver,
        "sn": m.solver_name,
        "tok": m.tokens,
        "tools": dict(m.tool_errors),
        "tr": m.trials,
        "v": VERSION,
        "z": m.zero_call_share,
    }
    kept = {k: values[k] for k in sorted(values) if k in _REQUIRED or values[k] not in ("", 0, {})}
    return {"t": m.time, **kept}


_REQUIRED = frozenset({"g", "h", "ids", "mean", "mode", "n", "q", "role", "se", "sid", "v"})


def parse_line(line: bytes | str) -> Measurement | None:
    """The measurement of a line, or None if it cannot be read as one."""
    try:
        return from_json(json.loads(line))
    except (ValueError, RecursionError):
        return None


def parse_lines(note: bytes) -> tuple[Measurement, ...]:
    """Every readable line of a note, in the note's order."""
    found = (parse_line(line) for line in note.split(b"\n") if line.strip())
    return tuple(m for m in found if m is not None)


def from_json(value: Any) -> Measurement:
    """The measurement of a line's object.

    Raises:
        ValueError: It is not one.
    """
    if not isinstance(value, dict):
        raise ValueError("not an object")
    try:
        return _decode(cast("dict[str, Any]", value))
    except (KeyError, TypeError) as error:
        raise ValueError(f"not a measurement: {error}") from None


def _decode(raw: Mapping[str, Any]) -> Measurement:
    grades = _parse_grades(raw["g"])
    ids = _parse_ids(raw["ids"])
    others = _parse_grades(raw.get("og", ""))
    for found in (grades, others) if others else (grades,):
        if len(ids) != len(found):
            raise ValueError(f"{len(ids)} question ids, {len(found)} grades")
    return Measurement(
        harness=_text(raw["h"]),
        role=Role(raw["role"]),
        questions=_text(raw["q"]),
        ids=ids,
        grades=grades,
        solver=_text(raw["sid"]),
        solver_name=_text(raw.get("sn", "")),
        mode=_text(raw["mode"]),
        counts=_counts(raw.get("cnt", {})),
        classes=_counts(raw.get("cls", {})),
        tool_errors=_counts(raw.get("tools", {})),
        trials=_whole(raw.get("tr", 0)),
        calls=_whole(raw.get("calls", 0)),
        tokens=_whole(raw.get("tok", 0)),
        seconds=_number(raw.get("s", 0.0)),
        zero_call_share=_number(raw.get("z", 0.0)),
        sandbox=_text(raw.get("box", "")),
        cost=_number(raw.get("cost", 0.0)),
        record=_text(raw.get("rec", "")),
        time=_text(raw["t"]),
        ablation=_text(raw.get("abl", "")),
        other_grades=others,
    )


def _render_grades(grades: Sequence[float | None]) -> str | list[float | int | None]:
    if all(g in (0.0, 1.0, None) for g in grades):
        return "".join("-" if g is None else "1" if g else "0" for g in grades)
    return [g if g is None or g != int(g) else int(g) for g in grades]


def _parse_grades(raw: Any) -> tuple[float | None, ...]:
    if isinstance(raw, str):
        return tuple(map(_GRADES.__getitem__, raw))
    if not isinstance(raw, list):
        raise ValueError("grades are neither text nor a list")
    grades = tuple(None if g is None else _number(g) for g in cast("list[Any]", raw))
    if any(g is not None and not 0 <= g <= 1 for g in grades):
        raise ValueError("a grade outside [0, 1]")
    return grades


def _render_ids(ids: Sequence[str]) -> str | list[str]:
    return "".join(ids) if all(len(i) == _ID_LENGTH for i in ids) else list(ids)


def _parse_ids(raw: Any) -> tuple[str, ...]:
    if isinstance(raw, str):
        return _split_ids(raw)
    if not isinstance(raw, list):
        raise ValueError("ids are neither text nor a list")
    return tuple(_text(i) for i in cast("list[Any]", raw))


@lru_cache(maxsize=64)
def _split_ids(joined: str) -> tuple[str, ...]:
    # A block's ids come again with every candidate that was measured on it.
    if len(joined) % _ID_LENGTH:
        raise ValueError("ids of uneven length")
    return tuple([joined[i : i + _ID_LENGTH] for i in range(0, len(joined), _ID_LENGTH)])


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f"not a text: {value!r:.40}")
    return value


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise ValueError(f"not a number: {value!r:.40}")
    return float(value)


def _whole(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError(f"not a whole number: {value!r:.40}")
    return value


def _counts(value: Any) -> Mapping[str, int]:
    if not isinstance(value, dict):
        raise ValueError(f"not an object: {value!r:.40}")
    counts = cast("dict[str, Any]", value)
    for count in counts.values():
        _whole(count)
    return counts
