"""A run's rows -> its `table.md` and pictures; and runs read back for `hl bench show`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hl.bench import manifest as manifests
from hl.bench.plots import draw
from hl.bench.rows import Row, load_rows
from hl.bench.tables import Table, all_tables, markdown, models_of, paper_tables
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
    return Results(run.name or str(run), manifests.load(run), load_rows(run))


def write_results(run: Path, *, paper: bool = False) -> Results:
    """Write tables and pictures beside the rows.

    Args:
        run: The run's directory.
        paper: Whether the paper's numbers go into them too.
    """
    results = read_results(run)
    benchmark = str(results.manifest["benchmark"])
    tables = [*results.tables, *(paper_tables(benchmark) if paper else [])]
    heading = f"hl bench {benchmark}: {models_of(results.manifest)}"
    write_file(run / TABLE, markdown(tables, heading))
    draw(run, results.manifest, results.rows, paper=paper)
    return results


def unfinished(manifest: Mapping[str, Any], rows: Sequence[Row]) -> bool:
    """Whether a run has tasks without a row."""
    return bool({t["name"] for t in manifest["tasks"]} - {r.task for r in rows})
