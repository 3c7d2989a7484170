"""`hl train sft` and `hl train grpo` from the command line: output, exit codes, and going on after a stop."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.commands.conftest import Result
from tests.training.kit import as_toml, small_run
from training.settings import recipes


def train(folder: Path, *arguments: str) -> Result:
    done = subprocess.run(
        [sys.executable, "-m", "hl.cli", "train", *arguments],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=240,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )
    return Result(done.returncode, done.stdout.decode(), done.stderr.decode())


@pytest.mark.slow
def test_from_rows_to_an_adapter_that_grpo_goes_on_from(tmp_path: Path) -> None:
    pytest.importorskip("trl")
    from tests.loop import GOOD, IDLE
    from tests.training.test_sft import context
    from tests.training.tiny import write_tiny
    from training.data import KEPT, Row, save_rows

    model = write_tiny(tmp_path / "model")
    more = ("sft.epochs=1", "sft.batch=2", "model.context_tokens=2048", "model.reply_tokens=32")
    settings = small_run(tmp_path / "task", model, *more)
    (tmp_path / "run.toml").write_text(as_toml(settings))
    rows = [Row(context("sums", n), "catalog", GOOD, "Ask carefully", "x", KEPT) for n in range(4)]
    dropped = Row(context("sums", 9), "catalog", IDLE, "Ask politely", "x", "no gain")
    (tmp_path / "rows").mkdir()
    save_rows(tmp_path / "rows", [*rows, dropped])

    sft = train(tmp_path, "sft", "run.toml", "--data", "rows", "--out", "sft")
    assert sft.code == 0, sft.err
    assert "rows: 4 in 2 updates; validation families: none" in sft.out
    assert "reply tokens: least 2, median 2, most 2" in sft.out and "adapter: sft/adapter" in sft.out
    assert "next: hl train grpo --adapter sft/adapter" in sft.err

    asked = ("grpo", "run.toml", "--adapter", "sft/adapter", "--out", "rl")
    stopped = train(tmp_path, *asked, "--max-calls", "30")
    assert stopped.code == 3 and "the same command with a higher limit goes on" in stopped.err
    done = train(tmp_path, *asked, "--json")
    assert done.code == 0, done.err
    record = json.loads(done.out)
    assert record["kind"] == "trained" and record["updates"] == 2 and record["adapter"] == "rl/adapter"
    assert (tmp_path / "rl/adapter/adapter_model.safetensors").is_file()
    other = train(tmp_path, "grpo", "run.toml", "--out", "rl")
    assert other.code == 2 and "holds another run: adapter is" in other.err


def test_a_dry_run_makes_nothing_and_says_what_is_an_estimate(tmp_path: Path) -> None:
    done = train(tmp_path, "grpo", "--mode", "multi", "--dry-run")
    assert done.code == 0 and not list(tmp_path.iterdir())
    assert done.out.startswith("16 updates over 5,120 rows\n")
    assert sum(line.startswith("estimate: ") for line in done.out.splitlines()) == 4
    assert sum(line.startswith("assumed: ") for line in done.out.splitlines()) == 5
    told = json.loads(train(tmp_path, "grpo", "--dry-run", "--json").out)
    assert told["kind"] == "estimate" and told["updates"] == 16 and told["rows"] == 5120


@pytest.mark.parametrize("mode", ["single", "multi"])
@pytest.mark.parametrize("name", recipes())
def test_every_recipe_says_what_it_would_need(tmp_path: Path, name: str, mode: str) -> None:
    done = train(tmp_path, "grpo", name, "--mode", mode, "--dry-run", "--json")
    assert done.code == 0, done.err
    told = json.loads(done.out)
    assert told["updates"] == 16 and told["rows"] == 5120 and told["attempts"] > 5120 * 32
    assert 20 < told["memory_gb"] < 80  # one H100
    hours = told["hours"]
    assert all(0.1 < hours[part] < 10 for part in ("sampling", "solver", "updates"))
    assert any("prime-rl" in text for text in told["assumed"])


def test_the_recipe_of_the_paper_learns_from_rows(tmp_path: Path) -> None:
    from tests.loop import GOOD
    from tests.training.test_sft import context
    from training.data import KEPT, Row, save_rows

    rows = [Row(context("sums", n), "catalog", GOOD, "Ask", "x", KEPT) for n in range(432)]
    (tmp_path / "rows").mkdir()
    save_rows(tmp_path / "rows", rows)
    done = train(tmp_path, "sft", "reasoning-qwen3.5-4b", "--data", "rows", "--dry-run", "--json")
    assert done.code == 0, done.err
    told = json.loads(done.out)
    assert told["updates"] == 75 and told["hours"]["sampling"] == 0 and told["hours"]["updates"] > 0.1
    assert not (tmp_path / "sft").exists()


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        (("grpo",), 2, "--out is missing"),
        (("sft", "--out", "x"), 2, "--data is missing"),
        (("sft", "--data", "none", "--out", "x"), 4, "cannot be read"),
        (("grpo", "--mode", "both", "--out", "x"), 2, "grpo.mode"),
        (("grpo", "--max-calls", "0", "--out", "x"), 2, "must be above 0"),
        (("grpo", "none.toml", "--out", "x"), 2, "there is no settings file none.toml, and no recipe"),
    ],
)
def test_what_cannot_be_done_is_refused(
    tmp_path: Path, arguments: tuple[str, ...], code: int, told: str
) -> None:
    done = train(tmp_path, *arguments)
    assert done.code == code and told in done.err and done.out == "", done.err
    assert not (tmp_path / "x").exists()
