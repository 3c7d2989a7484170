"""A run's rows -> its `table.md` and pictures; and runs read back for `hl bench show`."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hl.bench import manifest as manifests
from hl.bench.compare import models_of
from hl.bench.plots import draw
from hl.bench.rows import Row, load_rows
from hl.bench.table import Table, markdown
from hl.bench.tables import all_tables
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
    """A run from its directory.

    Raises:
        RepositoryError: It is none.
    """
    return Results(run.resolve().name or str(run), manifests.load(run), load_rows(run))


def write_results(run: Path) -> Results:
    """Write tables and pictures beside the rows."""
    results = read_results(run)
    heading = f"hl bench {results.manifest['benchmark']}: {models_of(results.manifest)}"
    write_file(run / TABLE, markdown(results.tables, heading))
    draw(run, results.manifest, results.rows)
    return results


def missing(results: Results) -> str:
    """What a run still lacks, in one phrase; empty if every task has rows."""
    tasks = [t["name"] for t in results.manifest["tasks"]]
    done = {r.task for r in results.rows}
    return f"{len(done)} of {len(tasks)} tasks have rows" if len(done) < len(tasks) else ""
