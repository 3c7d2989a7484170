"""Processor time of child processes: steadier than wall time on a busy machine."""

import os
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Took:
    """One run of a command, or the least of several."""

    cpu_s: float
    """User and system time of the process and all that it waited for."""
    wall_s: float


def run(command: Sequence[str], *, cwd: Path, env: Mapping[str, str]) -> Took:
    """Run a command with its output thrown away.

    Raises:
        RuntimeError: It failed; the message holds its standard error.
    """
    started = time.perf_counter()
    with subprocess.Popen(
        command,
        cwd=cwd,
        env=dict(env),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stderr is not None
        said = process.stderr.read()
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    wall_s = time.perf_counter() - started
    if process.returncode:
        raise RuntimeError(
            f"{' '.join(command)} ended with {process.returncode}: {said.decode('utf-8', 'replace')}"
        )
    return Took(used.ru_utime + used.ru_stime, wall_s)


def least(
    commands: Mapping[str, Sequence[str]], *, cwd: Path, env: Mapping[str, str], repeats: int
) -> Mapping[str, Took]:
    """The least processor and wall time of each command, run in turns so that all meet the same weather."""
    runs: dict[str, list[Took]] = {name: [] for name in commands}
    for name, command in commands.items():
        run(command, cwd=cwd, env=env)  # fills the file cache and writes bytecode
        runs[name].clear()
    for _ in range(repeats):
        for name, command in commands.items():
            runs[name].append(run(command, cwd=cwd, env=env))
    return {
        name: Took(min(t.cpu_s for t in took), min(t.wall_s for t in took)) for name, took in runs.items()
    }


def machine_s() -> tuple[float, float]:
    """Seconds of all processors since the machine started: those that were idle, and all."""
    first = Path("/proc/stat").read_text(encoding="utf-8").partition("\n")[0].split()[1:9]
    ticks = [int(n) / os.sysconf("SC_CLK_TCK") for n in first]
    return ticks[3] + ticks[4], sum(ticks)


def descendants_s() -> float:
    """Processor time so far of the processes below this one, and of those that they waited for."""
    parents: dict[int, int] = {}
    used: dict[int, float] = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                fields = (
                    (folder / "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
                )
            except OSError:
                continue  # it has ended
            parents[int(folder.name)] = int(fields[1])
            used[int(folder.name)] = sum(int(ticks) for ticks in fields[11:15]) / os.sysconf("SC_CLK_TCK")
    below = {os.getpid()}
    while more := {pid for pid, parent in parents.items() if parent in below} - below:
        below |= more
    return sum(used[pid] for pid in below - {os.getpid()})
