"""Building blocks for ledger tests: real repositories, made-up measurements, rounds that need no model."""

import os
import subprocess
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from hl.ledger import Ledger
from hl.records import Records
from hl.types import (
    Candidate,
    Cost,
    Decision,
    Edit,
    Evidence,
    Gain,
    Harness,
    Measurement,
    Outcome,
    Proposal,
    Reply,
    Report,
    Revision,
    Role,
    Round,
    Score,
    TaskSpec,
    Verdict,
)

FILES = ("harness.py",)
ENTRY = "harness.py"
SEED = "def solve(model, question):\n    return model(question)\n"


SOLVER = "0123456789abcdef"
"""Under which everything here is measured."""


def sh(root: Path, *args: str, check: bool = True) -> str:
    """Run plain git, as a user does."""
    done = subprocess.run(["git", *args], cwd=root, capture_output=True, text=True, check=False)
    assert not check or done.returncode == 0, done.stderr
    return done.stdout.strip()


def new(root: Path, branch: str = "main") -> Ledger:
    """A repository with a seed harness."""
    ledger = Ledger.create(root, branch=branch)
    (root / "harness.py").write_text(SEED)
    (root / "hl.toml").write_text('[harness]\nfiles = ["harness.py"]\n')
    ledger.commit_files("Start with the minimal harness", ["harness.py", "hl.toml"])
    return ledger


def records(ledger: Ledger) -> Records:
    """Its record store."""
    return Records(ledger.folder / "records")


def read(ledger: Ledger, rev: str = "HEAD") -> Revision:
    """The harness at a revision."""
    return ledger.read(rev, FILES, ENTRY)


def variant(word: str) -> Harness:
    """A harness that differs from the seed by one word."""
    return Harness((("harness.py", f"def solve(model, question):\n    return model(question + {word!r})\n"),))


def measure(
    harness: Harness | str, role: Role, grades: Sequence[float | None], **other: object
) -> Measurement:
    """A measurement."""
    plain = Measurement(
        harness=harness if isinstance(harness, str) else harness.digest,
        role=role,
        questions=role.value[0] * 64,
        ids=tuple(f"{i:016x}" for i in range(len(grades))),
        grades=tuple(grades),
        solver=SOLVER,
        solver_name="scripted test",
        mode="strict",
        counts={"ok": len(grades)},
        classes={"wrong": sum(g == 0 for g in grades)},
        tool_errors={},
        trials=1,
        calls=len(grades),
        tokens=40,
        seconds=0.25,
        zero_call_share=0.0,
        sandbox="landlock+seccomp",
    )
    return replace(plain, **other)  # pyright: ignore[reportArgumentType]


def make_round(
    parent: Revision,
    number: int = 1,
    *,
    accept: bool = True,
    losers: int = 1,
    word: str = "",
    confirm: bool = True,
    summary: str = "Ask more loudly",
    lineage: str | None = None,
) -> Round:
    """A round with a winner (index 0), some scored losers, and one proposal that did not apply."""
    word = word or f"r{number}"
    scored = [variant(f"{word}-{i}") for i in range(1 + losers)]
    candidates = [
        Candidate(
            Proposal(
                index=i,
                proposer="catalog 1",
                reply=Reply(f"reply {i} of round {number}"),
                outcome=Outcome.SCORED,
                summary=summary if i == 0 else f"Another idea, {i}",
                edits=(Edit(None, "model(question)", "model(question + '!')"),),
                candidate=h,
            ),
            measure(h, Role.SCORING, [1, 1, 0, 0.5] if i == 0 else [0, 0, 0, 1]),
        )
        for i, h in enumerate(scored)
    ]
    failed = Proposal(
        len(candidates),
        "catalog 1",
        Reply("nothing"),
        Outcome.NOT_FOUND,
        detail="no such text",
        summary="Miss",
    )
    candidates.append(Candidate(failed, None))
    selection = Gain(0.5, 0.2, 4, 2, 0, 2, 0.5, 0.1)
    confirmed = Gain(0.25, 0.25, 4, 1, 0, 3, 1.0, 0.5) if accept and confirm else None
    decision = Decision.ACCEPTED if accept else Decision.REJECTED
    before = measure(parent.harness, Role.CONFIRMATION, [0, 1, 0, 0])
    after = measure(scored[0], Role.CONFIRMATION, [1, 1, 0, 0])
    return Round(
        lineage=parent.lineage if lineage is None else lineage,
        number=number,
        parent=parent,
        feedback=measure(parent.harness, Role.FEEDBACK, [0, 0, 1, 0]),
        scoring=measure(parent.harness, Role.SCORING, [0, 0, 0, 0.5]),
        candidates=tuple(candidates),
        verdict=Verdict(decision, Evidence.NOISE, 0, selection, confirmed, "It is better, within noise."),
        confirmation=(before, after) if confirmed else (),
        report=Report(
            TaskSpec("reasoning-gym:gcd", "Greatest common divisors."),
            parent.harness.digest,
            Score(0.25, 0.25, 4),
            {"ok": 4},
            {"wrong": 3},
            {},
            (),
            (),
            1.0,
            10.0,
            0.1,
            0.0,
        ),
        cost=Cost(12, 100, 20, 0.0, 1.5),
        settings={"select": "improve"},
    )


def play(ledger: Ledger, number: int = 1, **options: object) -> str | None:
    """Record a made-up round on the head."""
    result = make_round(read(ledger), number, **options)  # pyright: ignore[reportArgumentType]
    return ledger.record_round(result, records(ledger))


def serious(ledger: Ledger) -> list[str]:
    """What fsck finds serious, git's own included."""
    sh(ledger.root, "fsck", "--full", "--strict")
    found = ledger.fsck(FILES, ENTRY, records(ledger))
    return [f"{p.where}: {p.message}" for p in found if p.serious]


def spy(folder: Path) -> dict[str, str]:
    """Environment in which every call of git is counted, and one of them can kill its caller.

    The wrapper is the fault: nothing in the product knows of it. AT: number of the call at which the calling process
    is killed. MODE: `before`, git does not run; `during`, git runs on as an orphan.
    """
    folder.mkdir(parents=True, exist_ok=True)
    real = subprocess.run(["which", "git"], capture_output=True, text=True, check=True).stdout.strip()
    wrapper = folder / "git"
    wrapper.write_text(
        f"""#!/bin/sh
read n <{folder}/count
n=$((n + 1))
echo $n >{folder}/count
echo "$*" >>{folder}/calls
if [ "$n" = "$(cat {folder}/at)" ]; then
    kill -9 $PPID
    [ "$(cat {folder}/mode)" = before ] && exit 1
fi
exec {real} "$@"
"""
    )
    wrapper.chmod(0o755)
    return {"PATH": f"{folder}:{os.environ['PATH']}"}


def arm(folder: Path, at: int, mode: str = "before") -> None:
    """Set the wrapper off at a call; 0 for never."""
    (folder / "count").write_text("0\n")
    (folder / "calls").write_text("")
    (folder / "at").write_text(f"{at}\n")
    (folder / "mode").write_text(f"{mode}\n")


def calls(folder: Path) -> list[str]:
    """The calls of git since `arm`."""
    return (folder / "calls").read_text().splitlines()
