"""A whole run against a real server that misbehaves: the scores are those of a run without faults."""

import contextlib
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.commands.conftest import Run
from tests.loop import calls, write_loop

FAULTS = "500:0.08,429:0.08,hang:0.04,reset:0.07,broken:0.07"
"""About a third of the tries."""


@contextlib.contextmanager
def serve(script: Path, *options: str) -> Iterator[str]:
    """The test kit's server as a process; gives its URL."""
    command = [sys.executable, "-m", "hl.engines.scripted", "--serve", str(script), "--port", "0", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.terminate()
            process.wait(timeout=30)


def start(hl: Run, folder: Path, url: str) -> Path:
    """A repository whose solver is that server."""
    options = write_loop(folder / "kit")
    values = {
        "solver.engine": "openai",
        "solver.model": "scripted",
        "solver.base_url": url,
        "solver.timeout_s": "1",
        "solver.retries": "4",
        "round.proposals": "2",
    }
    options += [part for key, value in values.items() for part in ("-c", f"{key}={value}")]
    task, seed = f"jsonl:{folder / 'kit' / 'sums.jsonl'}", str(folder / "kit" / "seed.py")
    done = hl(*options, "init", "agent", "--task", task, "--seed", seed, cwd=folder)
    assert done.code == 0, done.err
    return folder / "agent"


def test_faults_on_a_third_of_the_calls_change_no_score(hl: Run, tmp_path: Path) -> None:
    write_loop(tmp_path / "a" / "kit")
    told: list[object] = []
    for name, faults in (("a", ()), ("b", ("--faults", FAULTS, "--fault-seed", "7"))):
        write_loop(tmp_path / name / "kit")
        with serve(tmp_path / name / "kit" / "solver.json", *faults) as url:
            agent = start(hl, tmp_path / name, url)
            done = hl("revise", "--rounds", "1", "--json", cwd=agent)
        assert done.code == 0, done.err
        result, summary = (json.loads(line) for line in done.out.splitlines())
        told.append(
            (
                result["verdict"],
                [(c["outcome"], c["score"]) for c in result["candidates"]],
                [summary[k] for k in ("before", "after", "gain", "outcomes", "accepted")],
            )
        )
    assert told[0] == told[1]


def test_a_server_that_stays_down_ends_with_7_and_loses_nothing(hl: Run, tmp_path: Path) -> None:
    kit = tmp_path / "kit"
    write_loop(kit)
    with serve(kit / "solver.json", "--down-after", "14") as url:
        agent = start(hl, tmp_path, url)
        done = hl("revise", "--rounds", "1", cwd=agent)
    assert done.code == 7 and url.removesuffix("/v1") in done.err, done.err
    before = calls(kit)
    assert before > 8
    with serve(kit / "solver.json") as url:
        # The address is a guarded key, so it may change from the command line; it is no part of a solver's identity.
        assert hl("-c", f"solver.base_url={url}", "status", cwd=agent).code == 0
        done = hl("-c", f"solver.base_url={url}", "revise", "--continue", cwd=agent)
    assert done.code == 0, done.err
    answered = [json.loads(line) for line in (kit / "solver.log").read_text().splitlines()]
    assert len({json.dumps(a, sort_keys=True) for a in answered}) == len(answered)  # none was asked twice
