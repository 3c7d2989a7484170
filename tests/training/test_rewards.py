"""What a reply earns: real candidates in the real sandbox, a scripted solver, values worked by hand."""

import asyncio
import time
from pathlib import Path

import pytest

from hl.errors import StoppedEarly
from hl.solver import RunLimits
from hl.types import Outcome, Reply
from tests.training.kit import ROWS, edit, judging, write_settings
from training.rewards import Judge, Judged, Parts

CALL = '    return model("guess: " + question)'
SOLVE = "    return ask(model, question).strip()"
REAL = 'if question != "What is 2 + 2?":'
"""True of the task's questions, false of the one of the stubbed call."""


GOOD = edit(CALL, '    return model("carefully: " + question)')
HALF_CRASHES = edit(
    CALL,
    '    if "What is" in question and int(question.split()[2]) % 2:\n        raise KeyError(question)\n'
    '    return model("carefully: " + question)',
)

# (name, reply, outcome, parts worked by hand, their sum)
TABLE = [
    ("solves all", GOOD, Outcome.SCORED, Parts(1, 1, 1, 1), 1.30),
    (
        "solves none",
        edit(CALL, '    return model("guess again: " + question)'),
        Outcome.SCORED,
        Parts(0, 1, 1, 1),
        0.30,
    ),
    (
        "crashes on every question",
        edit(SOLVE, f"    {REAL}\n        raise KeyError(1)\n{SOLVE}"),
        Outcome.SCORED,
        Parts(0, 1, 1, 0),
        0.15,
    ),
    ("span not found", edit("    return oracle()", "    return 1"), Outcome.NOT_FOUND, Parts(parse=1), 0.05),
    ("span found twice", edit("", ""), Outcome.EMPTY_SEARCH, Parts(), 0.0),
    ("no block", Reply("I would not change a thing."), Outcome.NO_EDIT, Parts(), 0.0),
    ("cut inside a block", Reply("<<<<<<< SEARCH\n    return", "length"), Outcome.TRUNCATED, Parts(), 0.0),
    ("no divider", Reply("<<<<<<< SEARCH\nx\n>>>>>>> REPLACE\n"), Outcome.MALFORMED, Parts(), 0.0),
    ("same text", edit(CALL, CALL), Outcome.NOOP, Parts(), 0.0),
    ("only a comment", edit(CALL, f"    # hm\n{CALL}"), Outcome.NOOP, Parts(), 0.0),
    ("not Python", edit(CALL, "    return model("), Outcome.SYNTAX, Parts(parse=1), 0.05),
    (
        "no solve",
        edit("def solve(model, question):", "def salve(model, question):"),
        Outcome.CONTRACT,
        Parts(parse=1),
        0.05,
    ),
    (
        "does not import",
        edit("def solve(model, question):", "import numpy\n\n\ndef solve(model, question):"),
        Outcome.IMPORT,
        Parts(parse=1),
        0.05,
    ),
    (
        "crashes on the stub",
        edit(SOLVE, "    return question[999]"),
        Outcome.CRASH,
        Parts(parse=1),
        0.05,
    ),
    ("returns no text", edit(SOLVE, "    return 7"), Outcome.CRASH, Parts(parse=1), 0.05),
]


def test_every_outcome_earns_its_exact_parts(tmp_path: Path) -> None:
    settings = write_settings(tmp_path / "task")
    with judging(tmp_path / "run", settings) as (background, rooms, judge, (context,)):
        assert context.parent.mean == 0.0 and context.parent.n == ROWS

        async def all_at_once() -> list[Judged]:
            replies = [HALF_CRASHES, *(row[1] for row in TABLE)]
            return list(await asyncio.gather(*(judge.submit(context, r) for r in replies)))

        half, *judged = background.run(all_at_once())
        for (name, _, outcome, parts, total), found in zip(TABLE, judged, strict=True):
            assert (found.outcome, found.parts) == (outcome, parts), (name, found)
            assert found.reward == pytest.approx(total), name
        questions = rooms.of(context).block(context).questions
        share = sum(int(q.text.split()[2]) % 2 == 0 for q in questions) / ROWS
        assert half.parts == Parts(share, 1, 1, share)
        assert half.reward == pytest.approx(share + 0.05 + 0.10 + 0.15 * share)
        assert half.strict == share and (half.classes or {}).get("crash", 0) == ROWS * (1 - share)

        # The proposer's engine failed: no reward at all, and not zero.
        lost = background.run(judge.submit(context, Reply("", error="connection refused")))
        assert (lost.outcome, lost.parts, lost.reward) == (Outcome.LOST, None, None)


def test_an_edit_that_changes_nothing_can_earn_what_the_parent_earns(tmp_path: Path) -> None:
    settings = write_settings(tmp_path / "task", "grpo.noop=parent")
    with judging(tmp_path / "run", settings) as (background, rooms, judge, (context,)):
        paid = rooms.machines.meter.cost.calls
        found = background.run(judge.submit(context, edit(CALL, CALL)))
        assert (found.outcome, found.parts) == (Outcome.NOOP, Parts(0, 1, 1, 1))
        # The parent's attempts are known.
        assert rooms.machines.meter.cost.calls == paid


def test_replies_that_come_to_one_candidate_are_run_once_and_earn_the_same(tmp_path: Path) -> None:
    settings = write_settings(tmp_path / "task", delay_s=0.05)
    with judging(tmp_path / "run", settings) as (background, rooms, judge, (context,)):
        before = rooms.machines.meter.cost.calls

        async def eight() -> list[Judged]:
            return list(await asyncio.gather(*(judge.submit(context, GOOD) for _ in range(8))))

        judged = background.run(eight())
        assert [j.parts for j in judged] == [Parts(1, 1, 1, 1)] * 8
        assert rooms.machines.meter.cost.calls - before == ROWS


def test_a_candidate_that_hangs_is_cut_and_the_rest_counts_as_not_completed(tmp_path: Path) -> None:
    settings = write_settings(tmp_path / "task")
    hangs = edit(SOLVE, f"    {REAL}\n        while True:\n            pass\n{SOLVE}")
    with judging(tmp_path / "run", settings) as (background, rooms, _, (context,)):
        judge = Judge(rooms, candidate_s=1.5, cut=tmp_path / "cut.jsonl")
        began = time.monotonic()
        found = background.run(judge.submit(context, hangs))
        assert time.monotonic() - began < 30
        assert found.cut and found.outcome is Outcome.SCORED
        assert found.parts == Parts(0, 1, 1, 0) and found.reward == pytest.approx(0.15)
        assert (found.classes or {})["timeout"] == ROWS
        # Another judge of the same run, after an interruption, finds what was found, and runs nothing.
        judge = Judge(rooms, candidate_s=60, cut=tmp_path / "cut.jsonl")
        again = background.run(judge.submit(context, hangs))
        assert again == found
        # It left nothing behind: the next one runs.
        assert background.run(judge.submit(context, GOOD)).reward == pytest.approx(1.30)


def test_waiting_behind_others_does_not_count_as_a_candidates_time(tmp_path: Path) -> None:
    settings = write_settings(
        tmp_path / "task", "grpo.candidate_s=2", "solver.deterministic=true", delay_s=0.3
    )
    with judging(tmp_path / "run", settings) as (background, rooms, judge, (context,)):
        rooms.machines.slots._value = 1
        variants = [edit(CALL, f'    return model("{n} carefully: " + question)') for n in range(3)]

        async def together() -> list[Judged]:
            return list(await asyncio.gather(*(judge.submit(context, v) for v in variants)))

        judged = background.run(together())
        assert not any(j.cut for j in judged)
        assert all(j.parts == Parts(1, 1, 1, 1) for j in judged)


def test_a_solver_that_is_down_gives_no_reward_in_any_part(tmp_path: Path) -> None:
    settings = write_settings(tmp_path / "task")
    script = tmp_path / "task" / "solver.json"
    text = script.read_text()
    with judging(tmp_path / "run", settings) as (background, rooms, judge, (context,)):
        engine = rooms.machines.engine._engine
        from hl.engines.scripted import parse_script

        engine.script = parse_script('{"rules": [{"fail": "no route to host"}]}')
        found = background.run(judge.submit(context, GOOD))
        assert (found.outcome, found.parts) == (Outcome.LOST, None)
        assert "no route to host" in found.detail
        # What was lost is tried anew.
        engine.script = parse_script(text)
        assert background.run(judge.submit(context, GOOD)).reward == pytest.approx(1.30)


def test_a_limit_of_the_run_is_the_one_thing_that_ends_it(tmp_path: Path) -> None:
    settings = write_settings(tmp_path / "task")
    limits = RunLimits(calls=6)  # what measuring the parent takes: 2 + 4
    with (
        judging(tmp_path / "run", settings, limits=limits) as (background, _, judge, (context,)),
        pytest.raises(StoppedEarly),
    ):
        background.run(judge.submit(context, GOOD))


def test_questions_that_are_not_the_contexts_are_no_ground_for_a_reward(tmp_path: Path) -> None:
    from dataclasses import replace

    settings = write_settings(tmp_path / "task")
    with judging(tmp_path / "run", settings) as (background, _, judge, (context,)):
        other = replace(context, scoring="0" * 64)
        found = background.run(judge.submit(other, GOOD))
        assert found.parts is None and "does not hold the scoring questions" in found.detail
