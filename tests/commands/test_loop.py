"""init, eval, run and revise as a user types them: real git, real sandbox, scripted model."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.commands.conftest import Run
from tests.loop import GOOD, IDLE, NONE, calls, write_loop

Git = Callable[..., str]


def init(hl: Run, tmp_path: Path, *more: str, replies: list[str] | None = None, delay_s: float = 0.0) -> Path:
    options = write_loop(tmp_path / "kit", replies, delay_s=delay_s)
    names = ("--task", "jsonl:kit/sums.jsonl", "--seed", "kit/seed.py")
    done = hl(*options, "init", "agent", *names, *more, cwd=tmp_path)
    assert done.code == 0, done.err
    return tmp_path / "agent"


def lines(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def test_init_makes_a_scored_repository(hl: Run, git: Git, tmp_path: Path) -> None:
    agent = init(hl, tmp_path)
    assert git("status", "--porcelain", cwd=agent) == ""
    assert "HL-" not in git("log", "-1", "--format=%B", cwd=agent)
    assert calls(tmp_path / "kit") == 8
    (head,) = lines(hl("eval", "--json", cwd=agent).out)
    assert head["role"] == "evaluation" and head["score"] == {"mean": 0.0, "se": 0.0, "n": 8}
    assert calls(tmp_path / "kit") == 8  # stored attempts cost nothing


def test_init_refuses_what_is_wrong_and_leaves_nothing(hl: Run, tmp_path: Path) -> None:
    options = write_loop(tmp_path / "kit")
    task = f"jsonl:{tmp_path / 'kit' / 'sums.jsonl'}"
    (tmp_path / "broken.py").write_text("def answer(model): pass\n")
    for arguments, code, word in (
        (["--task", "reasoning-gym:gdc"], 2, "gcd"),
        (["--task", "jsonl:nowhere.jsonl"], 2, "nowhere.jsonl"),
        (["--task", task, "--seed", "minimel"], 2, "minimal"),
        (["--task", task, "--seed", "broken.py"], 2, "broken.py"),
        (["--task", task, "--profile", "huge"], 2, "huge"),
    ):
        done = hl(*options, "init", "agent", *arguments)
        assert (done.code, word in done.err) == (code, True), done.err
        assert not (tmp_path / "agent").exists()


def test_init_does_not_touch_a_repository_that_is_there(hl: Run, git: Git, tmp_path: Path) -> None:
    agent = init(hl, tmp_path, "--no-score")
    before = git("rev-parse", "HEAD", cwd=agent)
    again = hl("init", "agent", "--task", "reasoning-gym:gcd", "--no-score")
    assert again.code == 4 and "already" in again.err
    assert git("rev-parse", "HEAD", cwd=agent) == before


def test_revise_moves_the_branch_to_what_gains(hl: Run, git: Git, tmp_path: Path) -> None:
    agent = init(hl, tmp_path)
    seed = git("rev-parse", "HEAD", cwd=agent)
    done = hl("revise", "--rounds", "2", "--json", cwd=agent)
    assert done.code == 0, done.err
    *rounds, summary = lines(done.out)
    assert [r["kind"] for r in rounds] == ["round", "round"]
    assert rounds[0]["verdict"]["decision"] == "accepted"
    assert summary["before"]["mean"] == 0.0 and summary["after"]["mean"] == 1.0
    assert summary["accepted"] == [1]
    assert sum(summary["outcomes"].values()) == 8
    assert git("rev-parse", "HEAD~1", cwd=agent) == seed
    assert git("status", "--porcelain", cwd=agent) == ""
    assert "carefully" in (agent / "harness.py").read_text()
    assert "HL-Score" in git("log", "-1", "--format=%B", cwd=agent)
    assert hl("fsck", cwd=agent).code == 0


def test_the_summary_tells_scores_cost_and_outcomes(hl: Run, tmp_path: Path) -> None:
    agent = init(hl, tmp_path)
    done = hl("revise", "--rounds", "1", cwd=agent)
    for word in ("0.000 ± 0.000 (n=8) before", "1.000 ± 0.000 (n=8) after", "calls", "scored", "accepted 1"):
        assert word in done.out, done.out


def test_a_dry_run_says_what_it_needs_and_does_nothing(hl: Run, git: Git, tmp_path: Path) -> None:
    agent = init(hl, tmp_path)
    made = calls(tmp_path / "kit")
    (needed,) = lines(hl("revise", "--rounds", "2", "--dry-run", "--json", cwd=agent).out)
    assert needed["attempts"] == 2 * (3 + 6 * 5 + 2 * 6) + 2 * 8
    assert needed["measured"] is True and needed["calls"] == needed["attempts"] + 2 * 4
    assert calls(tmp_path / "kit") == made
    assert git("for-each-ref", "refs/hl", cwd=agent) == ""


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["--rounds", "0"], "--rounds"),
        (["--max-calls", "-1"], "--max-calls"),
        (["--max-cost", "nan"], "--max-cost"),
        (["--target", "1.5"], "--target"),
        (["--select", "luckiest"], "luckiest"),
        (["--continue"], "no interrupted run"),
        (["--continue", "--rounds", "2"], "--continue"),
        (["--proposals", "many"], "many"),
    ],
)
def test_wrong_options_are_named_and_change_nothing(
    hl: Run, git: Git, tmp_path: Path, arguments: list[str], word: str
) -> None:
    agent = init(hl, tmp_path, "--no-score")
    done = hl("revise", *arguments, cwd=agent)
    assert done.code in (2, 4) and word in done.err, done.err
    assert git("for-each-ref", "refs/hl", cwd=agent) == ""
    assert calls(tmp_path / "kit") == 0


def test_a_dirty_harness_is_refused_with_the_way_out(hl: Run, tmp_path: Path) -> None:
    agent = init(hl, tmp_path, "--no-score")
    (agent / "harness.py").write_text("def solve(model, question):\n    return ''\n")
    done = hl("revise", "--rounds", "1", cwd=agent)
    assert done.code == 4 and "harness.py" in done.err and "git restore" in done.err


def test_patience_and_target_end_a_run(hl: Run, tmp_path: Path) -> None:
    agent = init(hl, tmp_path, "--no-score", replies=[NONE, IDLE])
    *rounds, summary = lines(hl("revise", "--rounds", "9", "--patience", "2", "--json", cwd=agent).out)
    assert len(rounds) == 2 and summary["reason"] == "2 rejected rounds in a row"


def test_a_target_ends_a_run(hl: Run, tmp_path: Path) -> None:
    agent = init(hl, tmp_path, "--no-score", replies=[GOOD])
    *rounds, summary = lines(hl("revise", "--rounds", "9", "--target", "0.9", "--json", cwd=agent).out)
    assert len(rounds) == 1 and summary["reason"].startswith("target")


MOVING = ("commit", "time", "seconds", "record", "parents", "name", "report", "reply")
"""What differs between two runs of the same story: object names, clocks, addresses of timed records."""


def settled(value: Any) -> Any:
    """A JSON value without what moves; measurements as a set, since their lines are sorted by what moves too."""
    if isinstance(value, dict):
        return {k: settled(v) for k, v in value.items() if k not in MOVING}
    if isinstance(value, list):
        items = [settled(v) for v in value]
        return sorted(items, key=json.dumps) if items and isinstance(items[0], dict) else items
    return value


def story(hl: Run, agent: Path) -> tuple[Any, Any]:
    """History and scores, which must not depend on an interruption."""
    (score,) = lines(hl("eval", "--json", cwd=agent).out)
    return settled(lines(hl("log", "--all", "--json", cwd=agent).out)), score["score"]


def test_a_limit_stops_and_continue_goes_on_without_repeating_a_call(hl: Run, tmp_path: Path) -> None:
    whole = init(hl, tmp_path / "whole")
    assert hl("revise", "--rounds", "2", cwd=whole).code == 0
    agent = init(hl, tmp_path / "parts")
    limit = calls(tmp_path / "parts" / "kit") + 1
    stopped = hl("revise", "--rounds", "2", "--max-calls", "7", cwd=agent)
    assert stopped.code == 3 and "--continue" in stopped.err
    assert hl("revise", "--rounds", "2", cwd=agent).code == 4  # a run is waiting
    again = hl("revise", "--continue", cwd=agent)
    assert again.code == 3  # the same limit still holds
    rules = hl("-c", "round.proposals=1", "revise", "--continue", cwd=agent)
    assert rules.code == 2 and "round.proposals=1" in rules.err
    # What is said once to a continued run holds for the next continuation too.
    assert hl("-c", "solver.retries=1", "revise", "--continue", cwd=agent).code == 3
    journal = json.loads((agent / ".git" / "hl" / "run.json").read_text())
    assert journal["options"]["overrides"] == ["solver.retries=1"]
    done = hl("revise", "--continue", "--max-calls", "5000", cwd=agent)
    assert done.code == 0, done.err
    assert story(hl, agent) == story(hl, whole)
    for log in ("solver.log", "proposer.log"):
        assert calls(tmp_path / "parts" / "kit", log) == calls(tmp_path / "whole" / "kit", log)
    assert limit <= calls(tmp_path / "parts" / "kit")


def test_fsck_finds_changed_questions(hl: Run, tmp_path: Path) -> None:
    agent = init(hl, tmp_path)
    path = agent / "questions" / "evaluation.jsonl"
    path.write_text(path.read_text().replace('"answer":"', '"answer":"1', 1))
    done = hl("fsck", cwd=agent)
    assert done.code == 1 and "damaged questions" in done.out and "evaluation.jsonl" in done.out


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_an_interrupted_run_continues_to_the_same_history(
    hl: Run, tmp_path: Path, how: signal.Signals
) -> None:
    whole = init(hl, tmp_path / "whole")
    assert hl("revise", "--rounds", "2", cwd=whole).code == 0
    agent = init(hl, tmp_path / "parts", delay_s=0.05)
    kit = tmp_path / "parts" / "kit"
    cut = 0
    for more in (4, 9, 25, 40):
        start = calls(kit)
        process = subprocess.Popen(
            [sys.executable, "-m", "hl.cli", "revise", *(["--continue"] if cut else ["--rounds", "2"])],
            cwd=agent,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        deadline = time.monotonic() + 60
        while process.poll() is None and calls(kit) < start + more and time.monotonic() < deadline:
            time.sleep(0.01)
        if process.poll() is None:
            os.kill(process.pid, how)
            cut += 1
        _, err = process.communicate(timeout=60)
        if process.returncode == 0:
            break
        if how is signal.SIGINT:
            assert process.returncode == 130 and b"--continue" in err, err
    assert cut >= 1
    if process.returncode != 0:
        done = hl("revise", "--continue", cwd=agent)
        assert done.code == 0, done.err
    assert hl("fsck", cwd=agent).code == 0
    assert story(hl, agent) == story(hl, whole)
    in_flight = 32  # at most the calls in flight are made again
    assert calls(kit) <= calls(tmp_path / "whole" / "kit") + cut * in_flight


@pytest.mark.parametrize(
    ("reply", "outcome"),
    [
        ("", "no_edit"),
        ("colourless green ideas sleep furiously", "no_edit"),
        (GOOD[: GOOD.index(">>>>>>>")], "malformed"),
        ("<<<<<<< SEARCH\n" + "x" * 10_000_000, "too_many"),
        ("\ud800\udfff <<<<<<< SEARCH \x00\n", "malformed"),
        (GOOD.replace("carefully: ", "carefully: \x00"), "syntax"),
    ],
    ids=["empty", "nonsense", "cut", "10 MB", "surrogates", "NUL"],
)
def test_whatever_a_proposer_replies_is_an_outcome(hl: Run, tmp_path: Path, reply: str, outcome: str) -> None:
    agent = init(hl, tmp_path, "--no-score", replies=[reply])
    done = hl("revise", "--rounds", "1", "--proposals", "1", "--json", cwd=agent)
    assert done.code == 0, done.err
    first = lines(done.out)[0]["candidates"][0]
    assert first["outcome"] in (outcome, "truncated", "malformed", "no_edit", "too_many", "syntax")
    assert first["score"] is None
    assert hl("log", "--all", cwd=agent).code == 0
    assert hl("fsck", cwd=agent).code == 0


def test_run_answers_one_question(hl: Run, tmp_path: Path) -> None:
    agent = init(hl, tmp_path, "--no-score")
    done = hl("run", "What is 1 + 7?", "--trace", cwd=agent)
    assert done.code == 0 and done.out.splitlines()[-1] == "no idea"
    assert "guess: What is 1 + 7?" in done.out
    assert hl("run", "nowhere", "What?", cwd=agent).code == 4


def test_run_says_why_a_harness_failed(hl: Run, git: Git, tmp_path: Path) -> None:
    agent = init(hl, tmp_path, "--no-score")
    (agent / "harness.py").write_text("def solve(model, question):\n    return 1 / 0\n")
    git("commit", "-qam", "Break it", cwd=agent)
    done = hl("run", "What?", cwd=agent)
    assert done.code == 1 and "ZeroDivisionError" in done.err


def test_eval_adds_and_never_overwrites(hl: Run, git: Git, tmp_path: Path) -> None:
    agent = init(hl, tmp_path)
    notes = git("notes", "--ref=hl/evals", "show", "HEAD", cwd=agent)
    assert hl("eval", "--set", "scoring", "-n", "5", cwd=agent).code == 0
    assert hl("eval", "--trials", str(10**12), cwd=agent).code == 2
    assert hl("eval", "--trials", "3", cwd=agent).code == 0
    after = git("notes", "--ref=hl/evals", "show", "HEAD", cwd=agent)
    assert set(notes.splitlines()) < set(after.splitlines())
    assert len(after.splitlines()) == len(notes.splitlines()) + 2


def test_eval_names_a_set_that_is_too_small_or_unknown(hl: Run, tmp_path: Path) -> None:
    agent = init(hl, tmp_path, "--no-score")
    assert "8 questions" in hl("eval", "-n", "99", cwd=agent).err
    assert hl("eval", "--set", "training", cwd=agent).code == 2
    assert hl("eval", "nowhere", cwd=agent).code == 4


def test_the_ablation_is_kept_apart_from_scores(hl: Run, tmp_path: Path) -> None:
    agent = init(hl, tmp_path, replies=[GOOD])
    assert hl("revise", "--rounds", "1", cwd=agent).code == 0
    made = calls(tmp_path / "kit")
    (ablated,) = lines(hl("eval", "--ablate-solver", "--json", cwd=agent).out)
    assert ablated["ablation"] == "empty" and ablated["score"]["mean"] == 0.0
    assert calls(tmp_path / "kit") == made
    assert "1.000" in hl("log", "-n", "1", cwd=agent).out


def test_a_solver_that_stays_down_ends_with_7_and_keeps_what_it_has(hl: Run, tmp_path: Path) -> None:
    agent = init(hl, tmp_path, "--no-score")
    script = tmp_path / "kit" / "solver.json"
    whole = script.read_text()
    script.write_text(
        json.dumps({"rules": [{"when": "", "fail": "the server is down"}], "log": "solver.log"})
    )
    done = hl("revise", "--rounds", "1", cwd=agent)
    assert done.code == 7 and "the server is down" in done.err
    script.write_text(whole)
    done = hl("revise", "--continue", cwd=agent)
    assert done.code == 0, done.err


def test_the_python_api_answers(tmp_path: Path, hl: Run) -> None:
    agent = init(hl, tmp_path, "--no-score")
    program = "import hl, sys; print(hl.load(sys.argv[1]).solve('What is 1 + 7?'))"
    done = subprocess.run(
        [sys.executable, "-c", program, str(agent)], capture_output=True, check=True, timeout=60
    )
    assert done.stdout.decode().strip() == "no idea"
