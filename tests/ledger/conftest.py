"""One repository to work on."""

from pathlib import Path

import pytest

from hl.ledger import Ledger
from tests.ledger import kit


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    """A repository with a seed harness."""
    return kit.new(tmp_path / "agent")
