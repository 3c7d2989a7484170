"""`hl train data` from the command line: scripted teacher and solver, the real sandbox, real repositories."""

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hl.ledger import Ledger
from tests.commands.conftest import Result
from tests.loop import GOOD, IDLE, LOST, calls, write_loop

# The feedback questions are among these: knowing all of them scores, and the screen has something to see.
KNOWN = {f"What is {n} + {n * 7}?": str(n * 8) for n in range(1, 60)}
CHEAT = f"""\
Know some answers

<<<<<<< SEARCH
def solve(model, question):
=======
KNOWN = {KNOWN}


def solve(model, question):
    if question in KNOWN:
        return KNOWN[question]
>>>>>>> REPLACE
"""


def train(folder: Path, *arguments: str, more: tuple[str, ...] = ()) -> Result:
    chosen = (
        "solver.engine=scripted",
        "solver.path=solver.json",
        "tasks.sft=['jsonl:sums.jsonl?grader=number']",
        "tasks.seed=seed.py",
        "tasks.feedback=2",
        "tasks.scoring=4",
        "tasks.fresh=6",
        *more,
    )
    options = [part for text in chosen for part in ("-c", text)]
    done = subprocess.run(
        [sys.executable, "-m", "hl.cli", *options, "train", "data", *arguments],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=240,
    )
    return Result(done.returncode, done.stdout.decode(), done.stderr.decode())


TEACHER = ("--track", "tiny", "--teacher", "p=scripted:proposer.json", "--contexts", "2", "--proposals", "4")


def rows(out: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (out / "rows.jsonl").read_text().splitlines()]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with a finished data set in `rows`."""
    folder = tmp_path_factory.mktemp("train")
    write_loop(folder, [GOOD, IDLE, LOST, CHEAT])
    done = train(folder, *TEACHER, "--out", "rows")
    assert done.code == 0, done.err
    (folder / "out.txt").write_text(done.out)
    yield folder


def test_rows_say_what_became_of_every_revision(made: Path) -> None:
    found = rows(made / "rows")
    assert sorted(r["verdict"] for r in found) == sorted(["kept", "no gain", "not applied", "screened"] * 2)
    kept = next(r for r in found if r["verdict"] == "kept")
    assert kept["reply"] == GOOD and kept["teacher"] == "p" and kept["pattern"] == "other"
    assert kept["gain"]["mean"] == kept["fresh"]["mean"] == 1.0 and kept["fresh"]["n"] == 6
    assert kept["context"]["task"].startswith("jsonl:") and kept["context"]["report"]["failures"]
    screened = next(r for r in found if r["verdict"] == "screened")
    assert "feedback question" in screened["detail"] and screened["tags"] == ["feedback demonstrations"]
    assert {r["context"]["block"] for r in found} == {0, 1}
    assert len((made / "rows" / "contexts.jsonl").read_text().splitlines()) == 2
    out = (made / "out.txt").read_text()
    assert "kept                   2    25%" in out and "+1.000 on fresh ones" in out and "48%" in out


def test_the_same_command_pays_nothing_more_and_writes_the_same(made: Path) -> None:
    before, paid = (made / "rows" / "rows.jsonl").read_bytes(), calls(made)
    again = train(made, *TEACHER, "--out", "rows")
    assert again.code == 0 and again.out == (made / "out.txt").read_text()
    assert (made / "rows" / "rows.jsonl").read_bytes() == before and calls(made) == paid
    manifest = json.loads((made / "rows" / "manifest.json").read_text())
    assert (
        len(manifest["commands"]) == 1
        and manifest["kept"] == 2
        and manifest["settings"]["tasks"]["fresh"] == 6
    )
    other = train(made, *TEACHER, "--out", "rows", more=("tasks.scoring=5",))
    assert other.code == 2 and "[tasks]" in other.err


def test_rows_come_to_what_they_claim_and_forged_ones_do_not(made: Path) -> None:
    good = train(made, *TEACHER, "--out", "rows", "--verify")
    assert good.code == 0, good.err
    assert "6 rows applied again, 6 scored again: 6 same" in good.out
    forged = made / "forged"
    shutil.copytree(made / "rows", forged)
    text = (forged / "rows.jsonl").read_text()
    (forged / "rows.jsonl").write_text(text.replace("please guess", "carefully"))
    lied = train(made, *TEACHER, "--out", "forged", "--verify")
    assert lied.code == 1 and "2 does not apply" in lied.out and "2 of 6 rows" in lied.err
    claims = [json.loads(line) for line in text.splitlines()]
    for row in claims:
        if row["verdict"] == "no gain":
            row["gain"]["mean"] = 0.75
    (forged / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in claims))
    lied = train(made, *TEACHER, "--out", "forged", "--verify", "--json")
    states = [json.loads(line)["state"] for line in lied.out.splitlines()]
    assert lied.code == 1 and sorted(states) == ["differs"] * 2 + ["same"] * 4


def test_the_most_frequent_kept_reply_is_a_proposer(made: Path) -> None:
    assert json.loads((made / "rows" / "constant.json").read_text())["rules"][0]["replies"] == [GOOD]
    manifest = json.loads((made / "rows" / "manifest.json").read_text())
    assert "constant.json" in manifest["sha256"]
    options = (
        *("bench", "reasoning-gym", "--track", "tiny", "--families", "gcd", "--seed", "seed.py"),
        *("--contexts", "1", "--proposals", "3", "--feedback", "2", "--scoring", "2", "--evaluation", "2"),
        *("--solver", "s=scripted:solver.json", "--proposer", "constant=scripted:rows/constant.json"),
        *("--out", "benched"),
    )
    done = subprocess.run(
        [sys.executable, "-m", "hl.cli", *options], cwd=made, capture_output=True, text=True, timeout=240
    )
    assert done.returncode == 0, done.stderr
    benched = [json.loads(line) for line in (made / "benched" / "rows.jsonl").read_text().splitlines()]
    proposals = [row for row in benched if row["kind"] == "proposal"]
    assert [row["outcome"] for row in proposals] == ["scored", "duplicate", "duplicate"]
    assert {row["proposer"] for row in proposals} == {"constant"}
    (cell,) = (made / "benched" / "cells").iterdir()
    log = subprocess.run(["git", "log", "--all", "-p"], cwd=cell, capture_output=True, text=True, check=True)
    assert '+    return model("carefully: " + question)' in log.stdout


def test_statistics_need_no_settings(made: Path) -> None:
    done = train(made, "rows", "--stats", "--json")
    stats = json.loads(done.out)
    assert (stats["kept"], stats["rows"], stats["verdicts"]["screened"]) == (2, 8, 2)
    assert stats["paper"] == {"rows": 432, "interpreter loop": 0.48}
    assert train(made, "nowhere", "--stats").code == 2


def test_a_ledger_is_training_data_and_what_is_missing_is_said(made: Path) -> None:
    cell = next((made / "rows" / "run" / "cells").iterdir())
    done = train(made, "--from-history", str(cell), "--out", "mined")
    assert done.code == 0, done.err
    found = rows(made / "mined")
    assert sorted(r["verdict"] for r in found) == ["kept", "no gain", "not applied", "screened"]
    assert not (made / "mined" / "run").exists() and found[0]["teacher"].startswith("llm scripted")
    bare = made / "bare"
    subprocess.run(["git", "clone", "-q", str(cell), str(bare)], check=True)
    refs = "+refs/hl/*:refs/hl/*"
    subprocess.run(
        ["git", "-C", str(bare), "fetch", "-q", "origin", refs, "+refs/notes/*:refs/notes/*"], check=True
    )
    assert list(Ledger.open(bare).rounds())
    lost = train(made, "--from-history", str(bare), "--out", "lost")
    assert lost.code == 0 and "4 proposals are no rows: the report's record is not here" in lost.err
    assert rows(made / "lost") == []


def test_stopped_early_it_keeps_what_is_done_and_goes_on(tmp_path: Path) -> None:
    write_loop(tmp_path, [GOOD, IDLE, LOST, CHEAT])
    stopped = train(tmp_path, *TEACHER, "--out", "rows", "--max-calls", "30")
    assert stopped.code == 3 and "the same command with a higher limit goes on" in stopped.err
    paid = calls(tmp_path)
    assert paid > 0 and len(rows(tmp_path / "rows")) in (0, 4)
    done = train(tmp_path, *TEACHER, "--out", "rows")
    assert done.code == 0 and len(rows(tmp_path / "rows")) == 8
    whole = tmp_path / "whole"
    write_loop(whole, [GOOD, IDLE, LOST, CHEAT])
    assert train(whole, *TEACHER, "--out", "rows").code == 0
    assert calls(tmp_path) == calls(whole)
    # Not by id: a report says how long attempts took.
    one, two = ([(r["candidate"], r["verdict"]) for r in rows(f / "rows")] for f in (whole, tmp_path))
    assert one == two


def test_overlapping_clusters_a_full_folder_and_a_wrong_teacher_are_refused(tmp_path: Path) -> None:
    write_loop(tmp_path)
    overlap = train(tmp_path, "--track", "tiny", "--out", "rows", more=("tasks.sft=gcd",))
    assert overlap.code == 2 and "cluster number theory" in overlap.err
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine.txt").write_text("mine")
    assert train(tmp_path, *TEACHER, "--out", "full").code == 4
    assert "no file" in train(tmp_path, "--teacher", "p=scripted:none.json", "--out", "rows").err
    dry = train(tmp_path, *TEACHER, "--out", "rows", "--dry-run", "--json")
    assert json.loads(dry.out)["attempts"] == 104 and not (tmp_path / "rows").exists()
