"""A run's rows -> its `table.md` and pictures; and runs read back for `hl bench show`."""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, cast

from hl.bench import manifest as manifests
from hl.bench.markdown import render_page
from hl.bench.plots import draw
from hl.bench.rows import Row, load_rows
from hl.bench.tables import Table, all_tables, models_of
from hl.config.trust import write_file

TABLE = "table.md"


@dataclass(frozen=True, slots=True)
class Results:
    """A run as `show` sees it."""

    name: str
    manifest: Mapping[str, Any]
    rows: tuple[Row, ...]

    @property
    def tables(self) -> list[Table]:
        """What its rows give so far."""
        return all_tables(self.manifest, self.rows)


def read_results(run: Path) -> Results:
    """A run from its directory, which may come from elsewhere: its texts are made printable.

    Raises:
        RepositoryError: It is none.
    """
    names = [f.name for f in fields(Row) if f.type is str]
    rows = tuple(replace(r, **{n: _printable(getattr(r, n)) for n in names}) for r in load_rows(run))
    return Results(_printable(run.resolve().name or "run"), _printable(manifests.load(run)), rows)


def _printable(value: Any) -> Any:
    """The same JSON value without control and format characters in its texts, keys included."""
    if isinstance(value, str):
        return value if value.isprintable() else "".join(c if c.isprintable() else "\ufffd" for c in value)
    if isinstance(value, dict):
        table = cast("dict[str, Any]", value)
        return {_printable(key): _printable(item) for key, item in table.items()}
    return [_printable(item) for item in cast("list[Any]", value)] if isinstance(value, list) else value


def write_results(run: Path) -> Results:
    """Write tables and pictures beside the rows."""
    results = read_results(run)
    heading = f"hl bench {results.manifest['benchmark']}: {models_of(results.manifest)}"
    write_file(run / TABLE, render_page(results.tables, heading))
    draw(run, results.manifest, results.rows)
    return results


def missing(results: Results) -> str:
    """What a run still lacks, in one phrase; empty if every task has rows."""
    tasks = [t["name"] for t in results.manifest["tasks"]]
    done = {r.task for r in results.rows}
    return f"{len(done)} of {len(tasks)} tasks have rows" if len(done) < len(tasks) else ""
