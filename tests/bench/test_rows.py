"""Rows on disk: what was written is read back, and what cannot be a row is named by its line."""

import json
from pathlib import Path
from typing import Any

import pytest

from hl.bench.rows import FILE, load_rows, write_rows
from hl.errors import RepositoryError
from tests.bench.kit import scored, seed


def test_rows_are_read_back(tmp_path: Path) -> None:
    rows = (seed([0, 1, None]), scored(0, [1, 0.5, 0], [1, 0]))
    write_rows(tmp_path, rows)
    assert load_rows(tmp_path) == rows


@pytest.mark.parametrize(
    ("evaluation", "says"),
    [
        ({"raw": [float("nan"), 0.0]}, "a grade lies outside 0 to 1"),
        ({"raw": [float("inf"), 0.0]}, "a grade lies outside 0 to 1"),
        ({"strict": [1e308, 0.0]}, "a grade lies outside 0 to 1"),
        ({"raw": [10**400, 0.0]}, "evaluation.raw[0]: the number is too large"),
        ({"strict": [1.0]}, "raw grades of other questions than strict ones"),
    ],
)
def test_a_grade_that_is_none_is_refused_with_its_line(
    evaluation: dict[str, Any], says: str, tmp_path: Path
) -> None:
    write_rows(tmp_path, [seed([0, 1]), seed([0, 1])])
    first, second = (tmp_path / FILE).read_text().splitlines()
    record = json.loads(second)
    record["evaluation"] |= evaluation
    (tmp_path / FILE).write_text(first + "\n" + json.dumps(record) + "\n")
    with pytest.raises(RepositoryError) as caught:
        load_rows(tmp_path)
    assert f"{FILE}:2 is not a row of a bench run" in caught.value.message and says in caught.value.message
