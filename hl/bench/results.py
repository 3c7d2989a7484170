"""A run's rows -> its `table.md` and pictures; and runs read back for `hl bench show`."""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, cast

from hl.bench import manifest as manifests
from hl.bench.compare import models_of
from hl.bench.markdown import render_page
from hl.bench.plots import draw
from hl.bench.rows import Row, in_grade, load_rows
from hl.bench.table import Table
from hl.bench.tables import all_tables
from hl.config.trust import write_file

TABLE = "table.md"


@dataclass(frozen=True, slots=True)
class Results:
    """A run as `show` sees it."""

    name: str
    manifest: Mapping[str, Any]
    """Its `grade` is the one that is shown."""
    rows: tuple[Row, ...]
    """In that grade."""
    grades: tuple[str, ...]
    """Of the tables: that one, and for QA the other too unless one was asked for."""

    @property
    def tables(self) -> list[Table]:
        """What its rows give so far."""
        found: list[Table] = []
        for grade in self.grades:
            found += [t for t in all_tables({**self.manifest, "grade": grade}, self.rows) if t not in found]
        return found

    @property
    def unfinished(self) -> str:
        """`unfinished: 3 of 8 cells`; empty for a whole run."""
        done, planned = len({r.cell for r in self.rows}), _planned(self.manifest)
        return f"unfinished: {done} of {planned} cells" if done < planned else ""


def _planned(manifest: Mapping[str, Any]) -> int:
    s = manifest["settings"]
    blocks = s["chains"] + bool(s["independent"]) if s["rounds"] else s["contexts"]
    return len(manifest["tasks"]) * len(manifest["solvers"]) * len(manifest["proposers"]) * blocks


def read_results(run: Path, grade: str = "") -> Results:
    """A run from its directory, which may come from elsewhere: its texts are made printable.

    Args:
        run: Where.
        grade: `raw` or `strict`; empty for the one that made its scores.

    Raises:
        RepositoryError: It is none.
    """
    manifest = _printable(manifests.load(run))
    own = str(manifest["grade"])
    both = (own, "strict" if own == "raw" else "raw") if manifest["benchmark"] == "qa" else (own,)
    shown = grade or own
    names = [f.name for f in fields(Row) if f.type is str]
    rows = [replace(r, **{n: _printable(getattr(r, n)) for n in names}) for r in load_rows(run)]
    return Results(
        _printable(run.resolve().name or "run"),
        {**manifest, "grade": shown},
        in_grade(rows, shown),
        (grade,) if grade else both,
    )


def _printable(value: Any) -> Any:
    """The same JSON value without control and format characters in its texts, keys included."""
    if isinstance(value, str):
        return value if value.isprintable() else "".join(c if c.isprintable() else "\ufffd" for c in value)
    if isinstance(value, dict):
        table = cast("dict[str, Any]", value)
        return {_printable(key): _printable(item) for key, item in table.items()}
    return [_printable(item) for item in cast("list[Any]", value)] if isinstance(value, list) else value


def write_results(run: Path) -> Results:
    """Write tables and pictures beside the rows; an unfinished run says so in its heading."""
    results = read_results(run)
    heading = f"hl bench {results.manifest['benchmark']}: {models_of(results.manifest)}"
    if results.unfinished:
        heading += f" ({results.unfinished})"
    write_file(run / TABLE, render_page(results.tables, heading))
    draw(run, results.manifest, results.rows)
    return results
