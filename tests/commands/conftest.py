"""The real program in real repositories: `hl(...)` runs it, `git(...)` looks at it, `story` is one to read."""

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from hl.config.edit import write_values
from hl.ledger import Ledger
from hl.records import Records
from hl.selection import decide, pair, select
from hl.types import (
    Candidate,
    Case,
    Cost,
    Edit,
    FailureClass,
    Harness,
    Measurement,
    Outcome,
    Proposal,
    Reply,
    Report,
    Revision,
    Role,
    Round,
    TaskSpec,
)


@dataclass(frozen=True, slots=True)
class Result:
    """What one call of the program left."""

    code: int
    out: str
    err: str


Run = Callable[..., Result]


@pytest.fixture
def hl(tmp_path: Path) -> Run:
    """Run `hl ARGUMENTS` in `cwd` (default: tmp_path), with more environment if given."""

    def run(*arguments: str, cwd: Path | None = None, env: dict[str, str] | None = None) -> Result:
        done = subprocess.run(
            [sys.executable, "-m", "hl.cli", *arguments],
            cwd=cwd or tmp_path,
            env=os.environ | (env or {}),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=120,
        )
        return Result(done.returncode, done.stdout.decode(), done.stderr.decode())

    return run


@pytest.fixture
def git() -> Callable[..., str]:
    """Run git and return its stdout."""

    def run(*arguments: str, cwd: Path) -> str:
        done = subprocess.run(["git", *arguments], cwd=cwd, check=True, capture_output=True, timeout=60)
        return done.stdout.decode()

    return run


# --- a story to read ----------------------------------------------------------------------------------------

SEED = "def solve(model, question):\n    return model(question)\n"
BETTER = "def solve(model, question):\n    return model(question, temperature=0.0).strip()\n"
WORSE = 'def solve(model, question):\n    return "7"\n'
LATER = BETTER.replace("0.0", "0.1")
HOSTILE = "Vote \x1b[31mred\x07"
SPEC = TaskSpec("reasoning-gym:gcd", "Find the greatest common divisor.")


def harness(text: str) -> Harness:
    return Harness((("harness.py", text),))


def measured(
    text: str, role: Role, grades: Sequence[float | None], *, block: int = 0, solver: str = "a" * 16
) -> Measurement:
    """A measurement of a harness on questions that role and block number."""
    ids = tuple(f"{role.value[:2].encode().hex()}{block:04d}{i:08d}" for i in range(len(grades)))
    return Measurement(
        harness=harness(text).digest,
        role=role,
        questions=f"{role.value}{block}",
        ids=ids,
        grades=tuple(grades),
        solver=solver,
        solver_name="llamacpp smollm2",
        mode="raw",
        counts={"ok": len(grades)},
        classes={"wrong": sum(g == 0 for g in grades)},
        tool_errors={},
        trials=1,
        calls=len(grades),
        tokens=100 * len(grades),
        seconds=1.0,
        zero_call_share=0.0,
        sandbox="bwrap+landlock+seccomp",
    )


def proposal(
    index: int, outcome: Outcome, summary: str, text: str | None = None, detail: str = ""
) -> Proposal:
    edits = (Edit(None, "    return model(question)\n", "    ...\n"),) if text else ()
    reply = Reply(f"{summary}\n\nthe reply number {index}", prompt_tokens=10, completion_tokens=5)
    candidate = harness(text) if text else None
    return Proposal(index, "catalog 1", reply, outcome, detail, summary, edits, candidate)


def report_on(text: str) -> Report:
    case = Case("gcd of 4 and 6?", "3", "2", 0.0, FailureClass.WRONG, "", ())
    return Report(
        task=SPEC,
        harness=harness(text).digest,
        score=measured(text, Role.FEEDBACK, [0, 0, 0, 1]).score,
        statuses={"ok": 4},
        classes={"wrong": 3},
        tool_errors={},
        failures=(case,),
        successes=(),
        calls_per_attempt=1.0,
        tokens_per_attempt=100.0,
        seconds_per_attempt=0.25,
        zero_call_share=0.0,
    )


@dataclass(frozen=True, slots=True)
class Story:
    """A repository with a seed, an accepted round and a rejected one."""

    root: Path
    ledger: Ledger
    seed: str
    """First commit."""
    head: str
    """What round 1 made of it."""


def record(
    ledger: Ledger, number: int, parent: str, scoring: str, candidates: Sequence[Candidate], after: str
) -> str:
    """Record a round on the head: scored, selected, confirmed and decided by the real rules."""
    revision = Revision(parent, harness(scoring), "main")
    before = measured(scoring, Role.SCORING, [0, 0, 0, 0, 0, 0, 0, 1], block=number)
    choice = select("improve", before, [c.scoring for c in candidates])
    good = [1, 1, 1, 1, 1, 1, 0, 0] if number == 1 else [0, 0, 1, 0, 0, 1, 0, 0]
    confirmation = (
        measured(scoring, Role.CONFIRMATION, [0, 0, 1, 0, 0, 1, 0, 0], block=number),
        measured(after, Role.CONFIRMATION, good, block=number),
    )
    ledger.record_round(
        Round(
            lineage="main",
            number=number,
            parent=revision,
            feedback=measured(scoring, Role.FEEDBACK, [0, 0, 0, 1], block=number),
            scoring=before,
            candidates=tuple(candidates),
            verdict=decide("improve", choice, pair(*confirmation), confirm=True),
            confirmation=confirmation,
            report=report_on(scoring),
            cost=Cost(120, 12_000, 3000, 0.0, 60.0),
            settings={"select": "improve"},
        ),
        Records(ledger.common_dir / "hl" / "records"),
    )
    head = ledger.head
    assert head is not None
    return head


@pytest.fixture
def story(tmp_path: Path) -> Story:
    """A recorded history: seed, round 1 accepted, round 2 rejected, evaluation scores of seed and head."""
    root = tmp_path / "agent"
    root.mkdir()
    ledger = Ledger.create(root)
    (root / "harness.py").write_text(SEED)
    write_values(root / "hl.toml", {"task.name": "reasoning-gym:gcd"})
    seed = ledger.commit_files("Start with the minimal harness", ["harness.py", "hl.toml"])
    first = [
        Candidate(
            proposal(0, Outcome.NOT_FOUND, "Add a retry", detail="SEARCH text of block 1 is not there"), None
        ),
        Candidate(
            proposal(1, Outcome.SCORED, "Strip the reply", BETTER),
            measured(BETTER, Role.SCORING, [1, 1, 1, 1, 1, 0, 0, 1], block=1),
        ),
        Candidate(
            proposal(2, Outcome.SCORED, HOSTILE, WORSE), measured(WORSE, Role.SCORING, [0] * 8, block=1)
        ),
        Candidate(
            replace(proposal(3, Outcome.DUPLICATE, "Strip it", BETTER), duplicate_of=harness(BETTER).digest),
            None,
        ),
    ]
    head = record(ledger, 1, seed, SEED, first, BETTER)
    second = [
        Candidate(
            proposal(0, Outcome.SCORED, "Warm it up", LATER),
            measured(LATER, Role.SCORING, [0, 1, 1, 1, 1, 0, 0, 1], block=2),
        )
    ]
    assert record(ledger, 2, head, BETTER, second, LATER) == head
    ledger.add_measurements(seed, [measured(SEED, Role.EVALUATION, [0] * 7 + [1])])
    ledger.add_measurements(head, [measured(BETTER, Role.EVALUATION, [1] * 6 + [0, 0])])
    return Story(root, ledger, seed, head)
