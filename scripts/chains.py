"""Run one chain of revisions on each of several families, and print what came of it as a Markdown table.

    python scripts/chains.py [--rounds N] [--target SCORE] [--out DIR] FAMILY...

Each family gets a fresh repository in DIR (default: a new temporary directory), made with `--profile small`; the table
has the evaluation scores before and after, every accepted step, and the cost, as `hl revise --json` reported them. The
solver is the embedded SmolLM2-135M-Instruct, the proposer the catalog. Nothing is retried or left out.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any


def hl(*arguments: str, cwd: Path) -> list[dict[str, Any]]:
    """Run `hl` and return its JSON lines; its progress goes to our stderr."""
    done = subprocess.run(
        [sys.executable, "-m", "hl.cli", *arguments], cwd=cwd, stdout=subprocess.PIPE, check=True
    )
    return [json.loads(line) for line in done.stdout.decode().splitlines()]


def score(value: dict[str, Any]) -> str:
    """`0.812 ± 0.049`."""
    return f"{value['mean']:.3f} ± {value['se']:.3f}"


def chain(family: str, rounds: int, target: float | None, out: Path) -> str:
    """One family's row."""
    started = time.monotonic()
    hl("init", family, "--task", f"reasoning-gym:{family}", "--profile", "small", "--json", cwd=out)
    stop = [] if target is None else ["--target", str(target)]
    *results, summary = hl("revise", "--rounds", str(rounds), *stop, "--json", cwd=out / family)
    steps: list[str] = []
    for result in results:
        verdict = result["verdict"]
        winner = next((c for c in result["candidates"] if c["index"] == verdict["winner"]), None)
        if verdict["decision"] == "accepted" and winner is not None:
            gain = verdict["confirmed"]
            steps.append(f"{result['round']}: {winner['summary']} ({gain['mean']:+.3f} ± {gain['se']:.3f})")
    cost = summary["cost"]
    minutes = (time.monotonic() - started) / 60
    return (
        f"| {family} | {score(summary['before'])} | {score(summary['after'])} | {summary['after']['n']} "
        f"| {'; '.join(steps) or 'none'} | {cost['calls']:,} | {minutes:.1f} |"
    )


def main() -> None:
    """Print the table row by row, so that a stopped run keeps what it has."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--target", type=float, help="end a chain when the head's confirmed score is this good"
    )
    parser.add_argument("--out", type=Path)
    parser.add_argument("families", nargs="+", metavar="FAMILY")
    options = parser.parse_args()
    out = options.out or Path(tempfile.mkdtemp(prefix="hl-chains-"))
    out.mkdir(parents=True, exist_ok=True)
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], capture_output=True, check=False
    ).stdout.decode()
    until = "" if options.target is None else f" or until {options.target:g}"
    print(f"commit {commit.strip()}, {options.rounds} rounds{until}, profile small, repositories in {out}\n")
    print("| family | before | after | n | accepted steps (confirmed gain) | calls | minutes |")
    print("|---|---|---|---|---|---|---|", flush=True)
    for family in options.families:
        print(chain(family, options.rounds, options.target, out), flush=True)


if __name__ == "__main__":
    main()
