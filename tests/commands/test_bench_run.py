"""`hl bench` from the command line, with scripted models, the real sandbox and real repositories."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hl.bench.results import write_results
from tests.commands.conftest import Result, Run

GOOD = """Work it out in Python

<<<<<<< SEARCH
def solve(model, question):
    return extract(ask(model, question))
=======
def solve(model, question):
    import math

    numbers = [int(n) for n in re.findall(r"-?[0-9]+", question.split("Example")[-1])]
    if "Divisor" in question:
        return str(math.gcd(*numbers))
    ask(model, question)
    return "0"
>>>>>>> REPLACE
"""
IDLE = """Ask politely

<<<<<<< SEARCH
    return model(question + "\\n\\n" + INSTRUCTION)
=======
    return model("Please: " + question + "\\n\\n" + INSTRUCTION)
>>>>>>> REPLACE
"""
LOST = """Ask the oracle

<<<<<<< SEARCH
    return oracle(question)
=======
    return model(question)
>>>>>>> REPLACE
"""
SIZES = [
    "--families",
    "gcd,lcm",
    "--feedback",
    "2",
    "--scoring",
    "3",
    "--evaluation",
    "6",
    "--proposals",
    "4",
]


def write_scripts(folder: Path, *, delay_s: float = 0.0) -> list[str]:
    """Scripts of both models; returns the options that name them."""
    solver = {"rules": [{"when": "", "replies": ["no idea"], "delay_s": delay_s}], "log": "solver.log"}
    proposer = {"rules": [{"when": "", "replies": [GOOD, IDLE, LOST, GOOD]}], "log": "proposer.log"}
    (folder / "solver.json").write_text(json.dumps(solver))
    (folder / "proposer.json").write_text(json.dumps(proposer))
    return ["--solver", "s=scripted:solver.json", "--proposer", "p=scripted:proposer.json"]


def bench(folder: Path, *arguments: str) -> Result:
    done = subprocess.run(
        [sys.executable, "-m", "hl.cli", "bench", *arguments],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=240,
    )
    return Result(done.returncode, done.stdout.decode(), done.stderr.decode())


def rows(run: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (run / "rows.jsonl").read_text().splitlines()]


def unpaid(row: dict[str, Any]) -> dict[str, Any]:
    """A row without its commit, and without what was paid."""
    took = {k: v for k, v in row.get("took", {}).items() if not k.startswith("paid")}
    return {**row, "commit": "", "took": took}


def asked(folder: Path, name: str = "solver.log") -> list[str]:
    """Every call that a scripted engine was asked, in order."""
    path = folder / name
    return path.read_text().splitlines() if path.exists() else []


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with a finished run of two families in `one`."""
    folder = tmp_path_factory.mktemp("bench")
    done = bench(
        folder, "reasoning-gym", *SIZES, *write_scripts(folder), "--baselines", "cot", "--out", "one"
    )
    assert done.code == 0, done.err
    (folder / "out.txt").write_text(done.out)
    yield folder


def test_two_families_end_to_end(finished: Path) -> None:
    run = finished / "one"
    assert sorted(p.name for p in (run / "cells").iterdir()) == ["gcd-1", "lcm-1"]
    for name in (
        "manifest.json",
        "rows.jsonl",
        "table.md",
        "bars-unseen-families.png",
        "bars-unseen-families.svg",
    ):
        assert (run / name).stat().st_size > 0
    proposals = [r for r in rows(run) if r["kind"] == "proposal" and r["family"] == "gcd"]
    # Each reply's place depends on its seed; what they come to does not.
    outcomes = sorted(r["outcome"] for r in proposals)
    assert outcomes == ["duplicate", "not_found", "scored", "scored"]
    best = max((r for r in proposals if "evaluation" in r), key=lambda r: sum(r["evaluation"]["raw"]))
    assert (
        best["evaluation"]["raw"] == best["evaluation"]["strict"] == [1.0] * 6
        and best["evaluation"]["zero_call_share"] == 1.0
    )
    kinds = {(r["kind"], r.get("name", "")) for r in rows(run)}
    assert {("again", "seed"), ("again", "winner"), ("baseline", "cot")} <= kinds
    out = " ".join((finished / "out.txt").read_text().split())
    # One good candidate and its repeat of four on gcd: mean (1 + 1 + 0 + 0) / 4, over both families a quarter.
    assert "mean of 4, failures 0 0.250" in out
    assert "25% (not_found 2)" in out and "best of 4 chosen on scoring 0.500" in out
    assert "A/A noise floor" in out and "cot" in out


def test_a_cell_is_an_ordinary_repository(finished: Path) -> None:
    cell = finished / "one" / "cells" / "gcd-1"
    command = [sys.executable, "-m", "hl.cli", "log", "--all", "--json"]
    done = subprocess.run(command, cwd=cell, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert "Work it out in Python" in done.stdout
    fsck = subprocess.run(
        [sys.executable, "-m", "hl.cli", "fsck"], cwd=cell, capture_output=True, text=True, timeout=60
    )
    assert fsck.returncode == 0, fsck.stdout + fsck.stderr


def test_a_finished_run_costs_nothing_more_and_another_run_is_refused(finished: Path) -> None:
    before, calls = (finished / "one" / "rows.jsonl").read_bytes(), len(asked(finished))
    options = [*SIZES, *write_scripts(finished), "--baselines", "cot", "--out", "one"]
    again = bench(finished, "reasoning-gym", *options)
    assert again.code == 0 and again.out == (finished / "out.txt").read_text()
    assert (finished / "one" / "rows.jsonl").read_bytes() == before and len(asked(finished)) == calls
    other = bench(finished, "reasoning-gym", *options, "--seed", "cot")
    assert other.code == 1
    assert 'settings.seed is "minimal" there and "cot" here' in other.err and "--out" in other.err
    for families, says in (
        ("gcd,chain_sum", 'tasks.2.name is "reasoning-gym:lcm" there and "reasoning-gym:chain_sum" here'),
        ("gcd", "tasks.2 is {"),
    ):
        other = bench(finished, "reasoning-gym", *options, "--families", families)
        assert other.code == 1 and says in other.err, other.err


def test_a_run_says_what_made_it_and_goes_on_with_nothing_else(finished: Path, tmp_path: Path) -> None:
    manifest = json.loads((finished / "one" / "manifest.json").read_text())
    assert manifest["sandbox"] == "bwrap+landlock+seccomp" or manifest["sandbox"] == "landlock+seccomp"
    assert sorted(manifest["cells"]["gcd-1"]) == ["confirmation", "evaluation", "feedback", "scoring"]
    log = subprocess.run(
        [sys.executable, "-m", "hl.cli", "show", "HEAD", "--json"],
        cwd=finished / "one" / "cells" / "gcd-1",
        capture_output=True,
        text=True,
        timeout=60,
    )
    # The identity by which scores are compared.
    assert manifest["evaluators"]["reasoning-gym:gcd"]["s"] in log.stdout, log.stderr

    folder = tmp_path / "moved"
    shutil.copytree(finished, folder)
    options = [*SIZES, *write_scripts(folder), "--baselines", "cot", "--out", "one"]
    moved = manifest["solvers"]["s"]["path"].replace(str(finished), str(folder))
    for section, name, path in (
        ("solvers", "s", moved),
        ("proposers", "p", moved.replace("solver", "proposer")),
    ):
        manifest[section][name]["path"] = path
    (folder / "one" / "manifest.json").write_text(json.dumps(manifest))
    assert bench(folder, "reasoning-gym", *options, "--dry-run").out.count("as measured in one") == 1

    def refused(*more: str) -> str:
        before = {p: p.read_bytes() for p in (folder / "one").rglob("*") if p.is_file() and p.name != "lock"}
        done = bench(folder, "reasoning-gym", *options, *more)
        assert done.code in (1, 4), (done.code, done.err)
        dry = bench(folder, "reasoning-gym", *options, *more, "--dry-run")
        assert (dry.code, dry.err) == (done.code, done.err)
        assert before == {
            p: p.read_bytes() for p in (folder / "one").rglob("*") if p.is_file() and p.name != "lock"
        }
        return done.err

    assert 'sandbox is "' in refused("--unsafe-no-sandbox") and 'and "unsafe" here' in refused(
        "--unsafe-no-sandbox"
    )
    script = folder / "solver.json"
    kept = script.read_text()
    script.write_text(kept.replace("no idea", "an idea"))
    assert "solvers.s.identity.digest is" in refused()
    script.write_text(kept)
    for changed in ("versions", "evaluators"):
        (folder / "one" / "manifest.json").write_text(json.dumps({**manifest, changed: {}}))
        assert f"{changed}." in refused()
    (folder / "one" / "manifest.json").write_text(json.dumps(manifest))
    questions = folder / "one" / "questions" / "gcd" / "scoring.jsonl"
    kept = questions.read_text()
    questions.write_text("")
    assert "scoring.jsonl does not match its hash" in refused()
    questions.write_text(kept)
    # The rows of a cell are lost, and its repository holds another's questions.
    lines = (folder / "one" / "rows.jsonl").read_text().splitlines(keepends=True)
    (folder / "one" / "rows.jsonl").write_text("".join(line for line in lines if '"lcm-1"' not in line))
    cells = folder / "one" / "cells"
    shutil.move(cells / "lcm-1" / "questions", folder / "aside")
    shutil.copytree(cells / "gcd-1" / "questions", cells / "lcm-1" / "questions")
    assert "lcm-1 holds other questions than its run" in refused()
    shutil.rmtree(cells / "lcm-1" / "questions")
    shutil.move(folder / "aside", cells / "lcm-1" / "questions")
    # What its hl.toml says does not count.
    with (cells / "lcm-1" / "hl.toml").open("a") as stream:
        stream.write("\n[attempt]\ncalls = 0\n[report]\ngold = false\n")
    toml = (cells / "lcm-1" / "hl.toml").read_text().replace("[task]", '[task]\ngrade = "strict"')
    (cells / "lcm-1" / "hl.toml").write_text(toml)
    calls = len(asked(folder))
    again = bench(folder, "reasoning-gym", *options)
    assert again.code == 0 and len(asked(folder)) == calls, again.err
    assert again.out == (finished / "out.txt").read_text()


def test_two_starts_at_once_and_what_a_kill_leaves(tmp_path: Path) -> None:
    options = ["reasoning-gym", *SIZES, *write_scripts(tmp_path, delay_s=0.05), "--out", "deep/one"]
    command = [sys.executable, "-m", "hl.cli", "bench", *options]
    both = [
        subprocess.Popen(
            command, cwd=tmp_path, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        for _ in range(2)
    ]
    said = [process.communicate(timeout=120)[1].decode() for process in both]
    assert sorted(process.returncode for process in both) == [0, 5], said
    assert sum("another hl works on" in text for text in said) == 1
    assert sorted(p.name for p in (tmp_path / "deep").iterdir()) == ["one"]
    # A kill while the run was made, and one between the check and the lock.
    for left in (tmp_path / "deep" / ".one.new", tmp_path / "deep" / ".two.new"):
        (left / "questions" / "gcd").mkdir(parents=True)
        (left / "lock").write_text("1\n")
        (left / "questions" / "gcd" / "manifest.json").write_text("half")
    assert bench(tmp_path, *options).code == 0
    assert bench(tmp_path, *options[:-1], "deep/two", "--families", "gcd").code == 0
    assert sorted(p.name for p in (tmp_path / "deep").iterdir()) == ["one", "two"]
    assert sorted(p.name for p in (tmp_path / "deep" / "two" / "questions").iterdir()) == ["gcd"]


def test_show_compares_and_prints_the_paper(finished: Path) -> None:
    alone = bench(finished, "show", "one", "--paper", "--plots", "pictures")
    assert alone.code == 0
    assert "solver s = scripted" in alone.out and "One step, unseen families" in alone.out
    assert "0.317 ± 0.057" in alone.out and "second-hand" in alone.out
    assert (finished / "pictures" / "one" / "bars-unseen-families.svg").exists()
    machine = bench(finished, "show", "one", "one", "--json")
    table, difference = [json.loads(line) for line in machine.out.splitlines()]
    assert table["kind"] == "table" and [line["run"] for line in table["rows"]] == ["one", "one"]
    assert table["rows"][0]["score"]["mean"] == 0.25 and table["grade"] == "raw"
    assert difference["rows"][0]["difference"]["mean"] == 0.0
    strict = bench(finished, "show", "one", "--grade", "strict")
    assert strict.code == 0 and "One step, unseen families; strict grades" in strict.out
    assert bench(finished, "show", "one", "--grade", "exact").code == 2
    beside = bench(finished, "reasoning-gym", "--paper", "--out", "one")
    assert beside.code == 0 and "p on s" in beside.out and "0.623 ± 0.059" in beside.out
    (finished / "one-copy").mkdir()
    (finished / "one-copy" / "manifest.json").write_bytes((finished / "one" / "manifest.json").read_bytes())
    (finished / "one-copy" / "rows.jsonl").write_text('{"cell": 1}\n')
    damaged = bench(finished, "show", "one-copy")
    assert damaged.code == 4 and "rows.jsonl:1" in damaged.err
    first = (finished / "one" / "rows.jsonl").read_bytes().split(b"\n")[0]
    (finished / "one-copy" / "rows.jsonl").write_bytes(first + b"\n" + first.replace(b"gcd", b"g\xff"))
    damaged = bench(finished, "show", "one-copy")
    assert damaged.code == 4 and "rows.jsonl:2 is not a row" in damaged.err and "0xff" in damaged.err


def test_a_run_from_elsewhere_steers_nothing(finished: Path, tmp_path: Path) -> None:
    evil = "../a|b`c`<script>x</script>\x1b[31m\n# H [l](u) $\\frac$ *b* \u202e"
    manifest = json.loads((finished / "one" / "manifest.json").read_text())
    manifest |= {"benchmark": evil}
    manifest["solvers"] = {evil: manifest["solvers"]["s"] | {"path": evil}}
    manifest["settings"]["report"] = evil
    run = tmp_path / "a|b\n\x1b[31m"
    run.mkdir()
    (run / "manifest.json").write_text(json.dumps(manifest))
    made = [
        {**row, "solver": evil, "cell": row["cell"] + evil, "family": row["family"] + evil}
        | ({"outcome": evil} if row.get("outcome") == "not_found" else {})
        for row in rows(finished / "one")
    ]
    (run / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in made))
    done = bench(tmp_path, "show", run.name, "--plots", "pictures")
    assert done.code == 0, done.err
    assert all(line.isprintable() for line in (done.out + done.err).splitlines())
    assert not any(line.lstrip().startswith("# H") for line in done.out.splitlines())
    assert [p.name for p in (tmp_path / "pictures").iterdir()] == ["a-b-31m"]
    write_results(run)
    page = (run / "table.md").read_text()
    assert "\\<script\\>" in page and "<script>" not in page
    assert all(line.isprintable() for line in page.splitlines())
    (tmp_path / "file").write_text("mine")
    done = bench(tmp_path, "show", run.name, "--plots", "file")
    assert done.code == 1 and "--plots file cannot be written: Not a directory" in done.err
    # Well-formed and senseless: one sentence, whatever breaks.
    for row in made:
        if "evaluation" in row:
            row["evaluation"] = {**row["evaluation"], "raw": [], "strict": []}
    (run / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in made))
    done = bench(tmp_path, "show", run.name, "--plots", "pictures")
    assert done.code in (0, 4), done.err
    (run / "manifest.json").write_text(json.dumps(manifest | {"grade": evil}))
    done = bench(tmp_path, "show", run.name)
    assert done.code == 4 and "its grade is neither raw nor strict" in done.err


def test_a_run_as_json_is_its_rows_and_then_its_tables(finished: Path) -> None:
    options = [*SIZES, *write_scripts(finished), "--baselines", "cot", "--out", "one", "--json"]
    done = bench(finished, "reasoning-gym", *options)
    assert done.code == 0, done.err
    lines = [json.loads(line) for line in done.out.splitlines()]
    assert [line["row"] for line in lines if line["kind"] == "row"] == rows(finished / "one")
    tables = [line["name"] for line in lines if line["kind"] != "row"]
    assert tables[:2] == ["one_step", "by_family"] and {line["kind"] for line in lines} == {"row", "table"}


def test_a_killed_run_goes_on_and_asks_nothing_twice(finished: Path, tmp_path: Path) -> None:
    options = [*SIZES, *write_scripts(tmp_path), "--baselines", "cot", "--out", "one"]
    stopped = bench(tmp_path, "reasoning-gym", *options, "--max-calls", "7")
    assert stopped.code == 3
    assert "7 of 7 calls" in stopped.err and "the same command with a higher limit goes on" in stopped.err
    assert len(asked(tmp_path)) + len(asked(tmp_path, "proposer.log")) == 7
    assert "(unfinished: 0 of 2 cells)" in (tmp_path / "one" / "table.md").read_text().splitlines()[0]
    process = subprocess.Popen(
        [sys.executable, "-m", "hl.cli", "bench", "reasoning-gym", *options],
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    deadline = time.monotonic() + 60
    while len(asked(tmp_path)) < 30 and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert 30 <= len(asked(tmp_path)) < len(asked(finished))
    ended = bench(tmp_path, "reasoning-gym", *options)
    assert ended.code == 0, ended.err

    # Scripted replies take no time: at most the call under way at the kill was not recorded.
    calls = asked(tmp_path)
    assert len(calls) - len(set(calls)) <= 1
    assert set(calls) == set(asked(finished))
    replies = asked(tmp_path, "proposer.log")
    assert len(replies) - len(set(replies)) <= 1
    # The scripts lie elsewhere, which hl.toml says, so that commits have other ids; all else is the same.
    # So does what the ledger says was paid for a round: the part that was left of it.
    assert list(map(unpaid, rows(tmp_path / "one"))) == list(map(unpaid, rows(finished / "one")))
    assert ended.out == (finished / "out.txt").read_text()
    paid = [json.loads((run / "one" / "spent.json").read_text()) for run in (tmp_path, finished)]
    assert paid[0]["calls"] == paid[1]["calls"] and paid[0]["prompt_tokens"] == paid[1]["prompt_tokens"]


def test_chains_and_their_control(tmp_path: Path) -> None:
    options = [*SIZES[2:], *write_scripts(tmp_path), "--families", "gcd", "--out", "chains"]
    done = bench(tmp_path, "reasoning-gym", *options, "--rounds", "2", "--chains", "1", "--independent", "3")
    assert done.code == 0, done.err
    run = tmp_path / "chains"
    assert sorted(p.name for p in (run / "cells").iterdir()) == [
        "gcd-chain-1",
        "gcd-independent",
    ]
    heads = [r for r in rows(run) if r["kind"] == "head"]
    assert [(r["block"], r["round"]) for r in heads] == [(1, 1), (1, 2)]
    assert all(r["evaluation"]["raw"] == [1.0] * 6 for r in heads)
    assert [r["name"] for r in rows(run) if r["kind"] == "again"] == ["seed", "head"]
    table = " ".join(done.out.split())
    assert "p 0 0.000 ± 0.000 - - - - - 0.000 ± 0.000 0.000 ± 0.000" in table
    # Of a solver that always says the same, the second measurement shows no noise.
    gain = "+1.000 ± 0.000 [+1.000, +1.000] - (1 cluster) 0.000 yes"
    assert f"p 1 1.000 ± 0.000 {gain} 1.000 ± 0.000 1.000 ± 0.000" in table
    assert "p 3 independent - - - - - - 1.000 ± 0.000 1.000 ± 0.000" in table
    assert "share of the head's total gain that round 1 took: 100%" in table
    took = [r["took"] for r in rows(run) if r["kind"] == "round" and r["protocol"] == "chain"]
    # Round 1: 2 feedback and 3 scoring questions of the seed; its first candidate asks no model, its second once each.
    assert next(t["calls"] for t in took) == 2 + 3 + 3
    assert next(t["paid_calls"] for t in took) == 2 + 3 + 3 + 4
    assert (run / "curves-unseen-families.png").exists()


def test_the_report_control_reaches_the_proposer(tmp_path: Path) -> None:
    options = [
        *SIZES,
        *write_scripts(tmp_path),
        "--proposals",
        "1",
        "--report",
        "shuffled",
        "--out",
        "shuffled",
    ]
    done = bench(tmp_path, "reasoning-gym", *options)
    assert done.code == 0, done.err
    assert "control: the proposer's report was shuffled" in done.out
    cell = tmp_path / "shuffled" / "cells" / "gcd-1"
    log = subprocess.run(["git", "log", "--all", "--format=%B"], cwd=cell, capture_output=True, text=True)
    assert "(shuffled report)" in log.stdout


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["--families", "gdc"], 2, "did you mean 'gcd'?"),
        (["--families", "sokoban?colour=1"], 2, "colour"),
        (["--families", ","], 2, "no name is left"),
        (["--track", "tinny"], 2, "did you mean 'tiny'?"),
        (["--contexts", "0"], 2, "--contexts 0"),
        (["--evaluation", "0"], 2, "--evaluation 0"),
        (["--chains", "2"], 2, "--chains belongs to chains"),
        (["--baselines", "cott"], 2, "did you mean 'cot'?"),
        (["--report", "shuffle"], 2, "did you mean 'shuffled'?"),
        (["--families", "gcd", "--report", "shuffled"], 2, "there is only one"),
        (["--solver", "s=llama:x"], 2, "'llama' is not an engine"),
        (["--max-calls", "0"], 2, "--max-calls 0"),
        (["--out", "taken"], 4, "is not empty and holds no bench run"),
        (["--out", "."], 2, "the directory you stand in"),
        (["--roles", ""], 2, "no name is left"),
        (["--contexts", "100000000"], 2, "--contexts 100000000: must lie between 1 and 1000"),
        (["--proposer", "x=openai:m"], 2, "needs an address"),
        (["--proposer", "x=openai:m@http://u:geheim@h/v1"], 2, "has a user or password in it"),
        (["--proposer", "x=llamacpp:smolm2"], 2, "did you mean 'smollm2'?"),
        (["--proposer", "x=scripted:taken/thesis.txt"], 2, "is not a rules file"),
    ],
)
def test_wrong_input_is_one_sentence_and_leaves_nothing(
    arguments: list[str], code: int, says: str, hl: Run, tmp_path: Path
) -> None:
    """And a dry run refuses what the run refuses."""
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "thesis.txt").write_text("mine")
    given = [*([] if "--solver" in arguments else ["--solver", "r=scripted:reader"]), *arguments]
    done, dry = (hl("bench", "reasoning-gym", *given, *more) for more in ([], ["--dry-run"]))
    assert done.code == code, done.err
    assert says in done.err and done.err.startswith("error: ") and "geheim" not in done.err
    assert (dry.code, dry.err) == (done.code, done.err)
    assert sorted(p.name for p in tmp_path.rglob("*")) == ["taken", "thesis.txt"]


@pytest.mark.parametrize("place", ["nowhere", "."])
def test_show_wants_a_run(place: str, hl: Run) -> None:
    done = hl("bench", "show", place)
    assert done.code == 4 and "manifest.json" in done.err and "hl bench show DIR" in done.err


def test_a_dry_run_says_what_it_would_need_and_does_nothing(hl: Run, tmp_path: Path) -> None:
    solver = ["--solver", "r=scripted:reader"]
    done = hl("bench", "reasoning-gym", "--families", "gcd", *solver, "--dry-run")
    # 8 + 16 x 9 + 32 x 9 + 2 x 32.
    assert done.code == 0, done.err
    assert "1 cell, at most 504 attempts; at least one call an attempt" in done.out
    missing = hl("bench", "qa", "--dataset", "musique?path=nowhere.jsonl", *solver, "--dry-run")
    assert missing.code != 0 and "nowhere.jsonl" in missing.err
    assert list(tmp_path.iterdir()) == []
    paper = hl("bench", "qa", "--paper")
    assert paper.code == 0 and "MuSiQue EM by round" in paper.out


def test_on_qa_the_passages_reach_the_answer_and_the_curve_says_so(hl: Run, tmp_path: Path) -> None:
    sizes = ["--proposals", "4", "--feedback", "4", "--scoring", "8", "--evaluation", "16"]
    options = [*sizes, "--solver", "reader=scripted:reader", "--out", "qa"]
    done = hl("bench", "qa", "--dataset", "tiny", "--rounds", "1", "--chains", "1", *options)
    assert done.code == 0, done.err
    (head,) = [r for r in rows(tmp_path / "qa") if r["kind"] == "head"]
    (seed,) = [r for r in rows(tmp_path / "qa") if r["kind"] == "seed"]
    assert sum(head["evaluation"]["strict"]) >= sum(seed["evaluation"]["strict"]) + 4
    assert "share of the head's total gain that round 1 took: 100%" in done.out
    # Both grades of the scores; costs have none.
    assert "Chains; EM grades" in done.out and "Chains; F1 grades" in done.out
    assert done.out.count("What a chain took\n") == 1
    # The score is exact match; F1 is not measured again but stands below.
    assert done.out.index("; EM grades") < done.out.index("; F1 grades")
    scoring = seed["scoring"]
    assert all(f1 >= em for f1, em in zip(scoring["raw"], scoring["strict"], strict=True))
    assert scoring["grade"] == "strict"
    manifest = json.loads((tmp_path / "qa" / "manifest.json").read_text())
    assert manifest["settings"]["seed"] == "retrieval" and manifest["settings"]["select"] == "best"
