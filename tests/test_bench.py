"""The measurements measure what they say: a generated ledger that hl accepts, a loop in which every attempt counts."""

import sys
from pathlib import Path

import pytest

from bench import clock, ledger, loop, rewards, update
from bench.__main__ import main
from bench.lines import at_least, at_most
from hl.ledger import Ledger


def test_the_generated_ledger_is_a_ledger(tmp_path: Path) -> None:
    ledger.generate(tmp_path / "long", commits=6, proposals=3)
    opened = Ledger.open(tmp_path / "long")
    assert list(opened.fsck(["harness.py"], "harness.py")) == []
    entries = list(opened.log(files=["harness.py"], entry="harness.py"))
    assert [e.round for e in entries] == [5, 4, 3, 2, 1, 0]
    assert all(e.genuine and e.accepted for e in entries[:-1])
    assert all(e.measurements for e in entries)
    losers = [e for e in opened.log(files=["harness.py"], entry="harness.py", losers=True) if e.loser]
    assert len(losers) == 5 * 2
    assert opened.is_dirty(["harness.py", "hl.toml"]) == []


def test_the_loop_times_what_it_claims(tmp_path: Path) -> None:
    ran = loop.evaluate(tmp_path, candidates=2, count=4, calls=3, latency_s=0.01)
    assert (ran.attempts, ran.calls) == (8, 24)
    assert ran.wall_s > 0.03  # three calls, one after the other
    assert ran.host_cpu_s > 0


def test_processor_time_counts_children(tmp_path: Path) -> None:
    busy = "import time\nwhile time.process_time() < 0.2: pass"
    took = clock.least({"busy": [sys.executable, "-c", busy]}, cwd=tmp_path, env={}, repeats=1)["busy"]
    assert took.cpu_s >= 0.2 and took.wall_s >= 0.2
    with pytest.raises(RuntimeError, match="ended with 3"):
        clock.run([sys.executable, "-c", "raise SystemExit(3)"], cwd=tmp_path, env={})


def test_a_small_corpus_is_indexed_searched_and_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["corpus", "--passages", "2000"]) == 0
    out, err = capsys.readouterr()
    assert "index 2,000 passages" in out and "peak memory" in out and "queries a second" in out
    assert "found again by six of their words" in out and "2,000 generated passages" in err


def test_lines_say_pass_or_miss(capsys: pytest.CaptureFixture[str]) -> None:
    assert at_least("rate", 250.0, "250/s", 250.0).render().endswith(">= 250       pass")
    assert at_most("ratio", 8.01, "8.01 x", 8.0).render().endswith("<= 8         MISS")
    assert main(["start", "--repeats", "1"]) == 0
    out, err = capsys.readouterr()
    assert "hl --help over python -c pass" in out and "# start: processor time" in err


def test_rewards_are_timed_against_what_their_solver_takes_at_least(tmp_path: Path) -> None:
    ran = rewards.run(tmp_path, contexts=5, generations=2, questions=2, concurrency=2)
    assert (ran.candidates, ran.calls) == (10, 20)  # no two alike, every call paid for
    assert ran.ideal_s == pytest.approx(20 * 0.05 / 2) and ran.ratio > 1
    assert 0 <= ran.idle <= 1
    assert ran.bound(4) == pytest.approx(2 * ran.bound(2))


@pytest.mark.slow
def test_an_update_is_told_in_its_parts(tmp_path: Path) -> None:
    pytest.importorskip("trl")
    parts, last = update.run(tmp_path)
    assert list(parts) == ["contexts", "generation", "reward", "update"]
    assert parts["generation"] > 0 and parts["update"] > 0 and last["step"] == update.UPDATES
    assert last["hl/outcome/scored"] > 0  # there were candidates to run
