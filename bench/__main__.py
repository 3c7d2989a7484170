"""Runs the measurements and prints one line each, with the value to reach for and whether it was reached.

The exit code is 0 whatever came out: a busy machine is no defect. Every line says what was run; run it on a quiet one.
"""

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import hl
from bench import clock, corpus, ledger, loop, rewards, tokens, update
from bench.lines import Line, at_least, at_most
from hl.engines.weights import locate
from hl.errors import HlError

CANDIDATES, QUESTIONS, CALLS = 8, 64, 3
"""A round's work: K candidates, a large scoring block, a few calls an attempt."""
CONTEXTS, PROPOSALS, SCORED, SERVED = 40, 8, 16, 4
"""An update of the paper's size: contexts, replies to each, questions each; calls that the solver serves at once, for
each processor here: few enough for the solver to be the bound."""
PARTS = ("attempts", "latency", "engine", "start", "log", "corpus", "rewards", "update")


def attempts(repeats: int) -> Iterator[Line]:
    """Attempts a second when the model answers at once."""
    for calls, limit in ((1, 250.0), (CALLS, 250.0)):
        ran = [_evaluate(calls, 0.0) for _ in range(repeats)]
        rates = sorted(r.attempts / r.wall_s for r in ran)
        host_ms, inside_ms = (
            1000 * min(t) for t in zip(*((r.host_cpu_s, r.sandbox_cpu_s) for r in ran), strict=True)
        )
        n = ran[0].attempts
        _note(
            f"attempts: {n} of {CANDIDATES} harnesses x {QUESTIONS} questions x {calls} calls at 0 s, {repeats} runs: "
            f"{[round(r) for r in rates]} a second, sandbox {ran[0].tier}, {ran[0].memory_mb} MiB each; processor time "
            f"an attempt: {host_ms / n:.2f} ms in hl's own process, {inside_ms / n:.2f} ms in the sandbox"
        )
        what = f"attempts a second, model at 0 s, {calls} call{'s' if calls > 1 else ''} each"
        yield at_least(what, rates[-1], f"{rates[-1]:.0f}/s", limit)


def latency(repeats: int) -> Iterator[Line]:
    """Wall time over the ideal: all calls, so many at a time, each exactly its latency."""
    for latency_s in (0.05, 1.0):
        ran = [_evaluate(CALLS, latency_s) for _ in range(repeats if latency_s < 1 else 1)]
        ideal = ran[0].calls * latency_s / loop.CONCURRENCY
        ratio = min(r.wall_s for r in ran) / ideal
        _note(
            f"latency: {ran[0].calls} calls of {latency_s:g} s, {loop.CONCURRENCY} at once: ideal {ideal:.2f} s, "
            f"took {', '.join(f'{r.wall_s:.2f}' for r in ran)} s"
        )
        what = f"wall over ideal at {latency_s:g} s a call"
        shown = f"{ratio:.3f} x"
        yield at_most(what, ratio, shown, 1.1) if latency_s >= 1 else Line(what, ratio, shown)


def engine(repeats: int) -> Iterator[Line]:
    """Tokens a second through hl over llama.cpp alone, on the same prompts."""
    try:
        locate("smollm2")
    except HlError as error:
        _note(f"engine: not measured: {error.message} ({error.hint})")
        return
    _note(
        f"engine: {tokens.COUNT} prompts, {tokens.REPLY_TOKENS} tokens each, SmolLM2-135M, {tokens.SLOTS} slots, "
        f"{tokens.THREADS} threads, best of {repeats} on each side"
    )
    yield from tokens.lines(repeats)


def start(repeats: int) -> list[Line]:
    """`hl --help` over a bare interpreter's start."""
    with tempfile.TemporaryDirectory(prefix="hl-bench-") as folder:
        took = clock.least(
            {
                "python": [sys.executable, "-c", "pass"],
                "help": [_hl(), "--help"],
                "version": [_hl(), "--version"],
            },
            cwd=Path(folder),
            env=_environment(Path(folder)),
            repeats=repeats,
        )
    _note(f"start: processor time, least of {repeats} in turns: {_all(took)}")
    ratio = took["help"].cpu_s / took["python"].cpu_s
    return [at_most("hl --help over python -c pass", ratio, f"{ratio:.2f} x", 6.0)]


def log(repeats: int, commits: int, folder: Path | None) -> list[Line]:
    """`hl log` on a long ledger over a bare interpreter's start and over git's own log."""
    with tempfile.TemporaryDirectory(prefix="hl-bench-") as temporary:
        path = folder or Path(temporary) / "ledger"
        if not (path / ".git").exists():
            _note(f"log: making a ledger of {commits:,} commits, 8 candidates a round, at {path}")
            ledger.generate(path, commits=commits)
        count = subprocess.run(
            ["git", "rev-list", "--count", "HEAD"], cwd=path, capture_output=True, text=True, check=True
        ).stdout.strip()
        env = _environment(Path(temporary))
        short = clock.least(
            {"python": [sys.executable, "-c", "pass"], "log -n 20": [_hl(), "log", "-n", "20"]},
            cwd=path,
            env=env,
            repeats=repeats,
        )
        git = ["git", "--no-pager", "log", "--format=%h %s%n%N", "--notes=refs/notes/hl/evals"]
        full = clock.least(
            {"git log with notes": git, "hl log --oneline": [_hl(), "log", "--oneline"]},
            cwd=path,
            env=env,
            repeats=min(repeats, 3),
        )
    _note(
        f"log: {count} commits on main; least of {repeats} in turns: {_all(short)}; of {min(repeats, 3)}: {_all(full)}"
    )
    ratio = short["log -n 20"].cpu_s / short["python"].cpu_s
    whole = full["hl log --oneline"].cpu_s / full["git log with notes"].cpu_s
    wall = full["hl log --oneline"].wall_s / full["git log with notes"].wall_s
    return [
        at_most(f"hl log -n 20 of {int(count):,} commits over python -c pass", ratio, f"{ratio:.2f} x", 8.0),
        Line("hl log --oneline over git log with notes, processor time", whole, f"{whole:.2f} x"),
        Line("hl log --oneline over git log with notes, wall time", wall, f"{wall:.2f} x"),
    ]


def search(passages: int) -> Iterator[Line]:
    """Index and search a generated corpus, in a process of its own."""
    with tempfile.TemporaryDirectory(prefix="hl-bench-") as folder:
        path = Path(folder)
        corpus.write_corpus(path / "corpus.jsonl", passages)
        done = subprocess.run(
            [sys.executable, "-m", "bench.corpus", folder],
            capture_output=True,
            text=True,
            check=True,
            env=os.environ | {"OMP_NUM_THREADS": "1"},
        )
    _note(
        f"corpus: {passages:,} generated passages of {corpus.LENGTH} words, {corpus.QUERIES} queries of six words"
    )
    yield from corpus.lines(json.loads(done.stdout))


def reward_wall() -> Iterator[Line]:
    """The rewards of one update of the paper's size over the ideal of its solver."""
    processors = len(os.sched_getaffinity(0))
    served = SERVED * processors
    with tempfile.TemporaryDirectory(prefix="hl-bench-") as folder:
        ran = rewards.run(
            Path(folder), contexts=CONTEXTS, generations=PROPOSALS, questions=SCORED, concurrency=served
        )
    bound = ran.bound(processors)
    _note(
        f"rewards: {ran.candidates} candidates x {SCORED} questions, {ran.calls:,} calls of {rewards.LATENCY_S:g} s, "
        f"{served} at once ({SERVED} a processor): ideal {ran.ideal_s:.2f} s, took {ran.wall_s:.2f} s; processor time "
        f"{1000 * ran.host_cpu_s / ran.calls:.2f} ms a call in hl's own process, "
        f"{1000 * ran.sandbox_cpu_s / ran.calls:.2f} ms in the sandbox; the machine was idle for {ran.idle:.0%} of it"
    )
    what = f"rewards of {ran.candidates} candidates, wall over ideal"
    yield at_most(what, ran.ratio, f"{ran.ratio:.3f} x", 1.15)
    yield Line("calls served at once where the machine is the bound", bound, f"{bound:.0f}")


def update_split() -> Iterator[Line]:
    """Where the seconds of a GRPO update go."""
    try:
        with tempfile.TemporaryDirectory(prefix="hl-bench-") as folder:
            parts, last = update.run(Path(folder))
    except HlError as error:
        _note(f"update: not measured: {error.message} ({error.hint})")
        return
    whole = sum(parts.values())
    _note(
        f"update: {update.CONTEXTS} contexts x {update.GENERATIONS} replies x {update.QUESTIONS} questions at "
        f"{update.DELAY_S:g} s a call, a random model of two layers, mean of {update.UPDATES - 1} updates; "
        f"{last.get('hl/outcome/scored', 0.0):.0%} of the replies scored; `reward` is what is left after generation"
    )
    for part, seconds in parts.items():
        yield Line(f"GRPO update: {part}", seconds, f"{seconds:.2f} s {seconds / whole:4.0%}")


def _evaluate(calls: int, latency_s: float) -> loop.Ran:
    with tempfile.TemporaryDirectory(prefix="hl-bench-") as folder:
        return loop.evaluate(
            Path(folder), candidates=CANDIDATES, count=QUESTIONS, calls=calls, latency_s=latency_s
        )


def _hl() -> str:
    beside = Path(sys.executable).parent / "hl"
    found = str(beside) if beside.exists() else shutil.which("hl")
    if found is None:
        raise SystemExit("error: the hl program is not installed here\nhint: make env")
    return found


def _environment(folder: Path) -> dict[str, str]:
    """No settings of the user's, and bytecode as an installed program has it: kept, but outside the checkout."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "HL_", "GIT_"))}
    return {
        **kept,
        "GIT_CONFIG_GLOBAL": os.devnull,
        "HL_CONFIG_DIR": str(folder / "config"),
        "LC_ALL": "C.UTF-8",
        "OMP_NUM_THREADS": "1",
        "PYTHONPYCACHEPREFIX": str(folder / "bytecode"),
    }


def _all(took: "clock.Mapping[str, clock.Took]") -> str:
    return ", ".join(
        f"{name} {1000 * t.cpu_s:.0f} ms ({1000 * t.wall_s:.0f} wall)" for name, t in took.items()
    )


def _note(text: str) -> None:
    sys.stderr.write(f"# {text}\n")
    sys.stderr.flush()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the parts that were asked for and print their lines."""
    parser = argparse.ArgumentParser(prog="python -m bench", description="Measure hl itself.")
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"{', '.join(PARTS)} (all by default)")
    parser.add_argument("--repeats", type=int, default=7, help="runs of each start-up measurement")
    parser.add_argument("--commits", type=int, default=10_000, help="of the generated ledger")
    parser.add_argument("--ledger", type=Path, help="where to make the ledger, or where one was made before")
    parser.add_argument("--passages", type=int, default=200_000, help="of the generated corpus")
    options = parser.parse_args(arguments)
    unknown = sorted(set(options.parts) - set(PARTS))
    if unknown:
        parser.error(f"unknown part {unknown[0]!r}; there are {', '.join(PARTS)}")
    git = subprocess.run(["git", "--version"], capture_output=True, text=True, check=True).stdout.split()[-1]
    busy = os.getloadavg()[0]
    _note(
        f"python -m bench {' '.join(sys.argv[1:])}".rstrip()
        + f": hl {hl.__version__}, Python {platform.python_version()}, git {git}, Linux {platform.release()}, "
        f"{len(os.sched_getaffinity(0))} processors, load {busy:.1f}"
    )
    if busy > 0.5:
        _note("something else is running: ratios of processor time hold, wall times and rates do not")
    few = min(3, options.repeats)
    run: dict[str, Callable[[], Iterable[Line]]] = {
        "attempts": lambda: attempts(few),
        "latency": lambda: latency(few),
        "engine": lambda: engine(min(2, few)),
        "start": lambda: start(options.repeats),
        "log": lambda: log(options.repeats, options.commits, options.ledger),
        "corpus": lambda: search(options.passages),
        "rewards": reward_wall,
        "update": update_split,
    }
    for name in options.parts or PARTS:
        for line in run[name]():
            sys.stdout.write(line.render() + "\n")
            sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
