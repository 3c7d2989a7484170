"""A repository with many accepted rounds, written by the ledger's own code in one go.

Each round has K candidates: the winner, one that was scored and lost, and others that did not apply; references,
notes, trailers and `round.json` are the ones that `hl revise` leaves. Bulk records are not written: `hl log` reads
none. The objects go in as one pack; `git gc` then leaves the repository as its owner would find it.
"""

import hashlib
import os
import subprocess
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, cast

from hl.git import Batch, Identity, Objects
from hl.ledger import Ledger
from hl.ledger.lines import render_line
from hl.ledger.names import NOTES, round_ref
from hl.ledger.notes import append
from hl.ledger.rounds import Addresses, build
from hl.selection import decide, select
from hl.stats import paired_gain
from hl.types import (
    Candidate,
    Cost,
    Edit,
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
)

START = 1_767_225_600
"""2026-01-01, the time of the first commit."""
SIZES = {Role.FEEDBACK: 16, Role.SCORING: 32, Role.CONFIRMATION: 32}
BLOCKS = 16
"""Question blocks that the rounds take turns in."""
SEED = '''\
"""Ask once."""


def solve(model, question):
    # revision 0
    limit = 1000
    return model(question, max_tokens=limit).strip()
'''
MANIFEST = '[task]\nname = "reasoning-gym:chain_sum"\n'


class _Memory:
    """The part of `hl.git.Batch` that building a round needs, over objects that are not stored yet."""

    def __init__(self, objects: Objects, trees: Mapping[str, str]) -> None:
        self._objects = objects._objects  # pyright: ignore[reportPrivateUsage]
        self._trees = trees

    def get(self, name: str) -> tuple[str, str, bytes] | None:
        oid = self._trees.get(name.removesuffix("^{tree}"), name)
        kind, data = self._objects[oid]
        return oid, {1: "commit", 2: "tree", 3: "blob"}[kind], data


@cache
def _ids(role: Role, block: int) -> tuple[str, ...]:
    texts = (f"{role} {block} {i}" for i in range(SIZES[role]))
    return tuple(hashlib.sha256(text.encode()).hexdigest()[:16] for text in texts)


def _measured(harness: Harness, role: Role, at: int, share: float, time: str) -> Measurement:
    n = SIZES[role]
    grades = tuple(float((i * 7 + at) % n < share * n) for i in range(n))
    return Measurement(
        harness=harness.digest,
        role=role,
        questions=f"{at % BLOCKS:064x}",
        ids=_ids(role, at % BLOCKS),
        grades=grades,
        solver="0123456789abcdef",
        solver_name="scripted",
        mode="raw",
        counts={"ok": n},
        classes={"wrong": grades.count(0.0)},
        tool_errors={},
        trials=1,
        calls=n,
        tokens=120 * n,
        seconds=0.5 * n,
        zero_call_share=0.0,
        sandbox="bwrap+landlock+seccomp",
        record=f"{at:064x}",
        time=time,
    )


def _round(number: int, parent: Revision, proposals: int, time: str) -> Round:
    old = parent.harness.files[0][1]

    def edited(limit: int) -> tuple[Edit, Harness]:
        before = old.splitlines(keepends=True)
        search = "".join(before[4:6])
        new = f"    # revision {number}\n    limit = {limit}\n"
        return Edit(None, search, new, 3), Harness((("harness.py", old.replace(search, new)),))

    reply = Reply("An edit.", prompt_tokens=2000, completion_tokens=200)
    scoring = _measured(parent.harness, Role.SCORING, number, 0.4, time)
    candidates: list[Candidate] = []
    for index, share in ((0, 0.5), (1, 0.3)):
        edit, harness = edited(1000 + 2 * number + index)
        summary = f"Allow {1000 + 2 * number + index} tokens so that longer sums are not cut"
        proposal = Proposal(index, "bench", reply, Outcome.SCORED, "", summary, (edit,), harness)
        candidates.append(Candidate(proposal, _measured(harness, Role.SCORING, number, share, time)))
    for index in range(2, proposals):
        detail = "block 1 (reply line 3): SEARCH is not in harness.py."
        candidates.append(
            Candidate(Proposal(index, "bench", reply, Outcome.NOT_FOUND, detail, "Vote of five"), None)
        )
    winner = cast(Harness, candidates[0].proposal.candidate)
    confirmation = (
        _measured(parent.harness, Role.CONFIRMATION, number, 0.4, time),
        _measured(winner, Role.CONFIRMATION, number, 0.45, time),
    )
    before, after = ([g for g in m.grades if g is not None] for m in confirmation)
    selection = select("improve", scoring, [c.scoring for c in candidates])
    return Round(
        lineage="main",
        number=number,
        parent=parent,
        feedback=_measured(parent.harness, Role.FEEDBACK, number, 0.4, time),
        scoring=scoring,
        candidates=tuple(candidates),
        verdict=decide("improve", selection, paired_gain(before, after), confirm=True),
        confirmation=confirmation,
        report=Report(TaskSpec("bench", ""), "", Score(0, 0, 0), {}, {}, {}, (), (), 1.0, 1.0, 1.0, 0.0),
        cost=Cost(calls=500, prompt_tokens=50_000, completion_tokens=9_000, seconds=100.0),
        settings={"select": "improve", "proposals": str(proposals)},
    )


def generate(path: Path, *, commits: int, proposals: int = 8) -> None:
    """Make a repository whose branch `main` has this many commits, all but the first of them accepted rounds."""
    ledger = Ledger.create(path)
    objects = Objects(ledger.algorithm)
    who = Identity("Ada Bench <ada@example.org>", "Ada Bench <ada@example.org>", START, "+0000", False)
    harness = Harness((("harness.py", SEED),))
    trees: dict[str, str] = {}
    blobs = {b"harness.py": objects.blob(SEED.encode()), b"hl.toml": objects.blob(MANIFEST.encode())}
    batch = cast(Batch, _Memory(objects, trees))
    tree = objects.graft(batch, None, blobs)
    head = objects.commit(tree, [], who, "Start from the minimal seed\n")
    trees[head] = tree
    lines: defaultdict[str, list[str]] = defaultdict(list)
    refs: list[str] = []
    for number in range(1, commits):
        who = replace(who, seconds=START + 600 * number)
        time = f"2026-01-01T00:00:00.{number:06d}Z"
        done = _round(number, Revision(head, harness, "main"), proposals, time)
        record = build(done, Addresses("", {}), batch, objects, who, time)
        for commit, measured in record.measured().items():
            lines[commit] += [render_line(m) for m in measured]
        accepted = record.accepted
        assert accepted is not None
        head, harness = accepted.commit, cast(Harness, done.candidates[accepted.index].proposal.candidate)
        data = objects._objects[head][1]  # pyright: ignore[reportPrivateUsage]
        trees[head] = data[5 : data.index(b"\n")].decode()
        refs.append(f"create {round_ref('main', number)} {record.commit}\n")
    notes_tree = append(batch, objects, None, lines, ledger.oid_bytes)
    assert notes_tree is not None
    refs.append(f"create {NOTES} {objects.commit(notes_tree, [], who, 'Add measurements')}\n")
    refs.append(f"create refs/heads/main {head}\n")
    _git(path, "index-pack", "--stdin", stdin=objects.pack())
    _git(path, "update-ref", "--stdin", stdin="".join(refs).encode())
    _git(path, "reset", "--quiet", "--hard")
    _git(path, "gc", "--quiet")


def _git(path: Path, *args: str, stdin: bytes = b"") -> None:
    quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "check": True}
    subprocess.run(["git", *args], cwd=path, input=stdin, env=dict(os.environ), **quiet)
