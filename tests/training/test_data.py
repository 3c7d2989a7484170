"""Rows: there and back, what they count as, and what a canonical reply is."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hl.edits import EditError, apply_edits, parse_reply
from hl.errors import RepositoryError, UsageError
from hl.types import Gain, Score
from tests.proposer.kit import case, one_file, report
from training.contexts import Context
from training.data import KEPT, NO_GAIN, VERDICTS, Row, load_rows, save_rows, stats_of
from training.families import check_clusters
from training.mining import canonical
from training.settings import load_settings

PARENT = one_file("def solve(model, question):\n    return model(question)\n")
TOLD = replace(report([case("1 + 1", "2", "3")]), harness=PARENT.digest)
HERE = Context(
    "reasoning-gym:gcd", "gcd", "number theory", "sft", PARENT, TOLD, 1, 0, "f", "s", Score(0.0, 0.0, 4)
)
EDIT = """\
<<<<<<< SEARCH
    return model(question)
=======
    return model(question).strip()
>>>>>>> REPLACE
"""


def gain(mean: float) -> Gain:
    return Gain(mean, 0.1, 8, 3, 1, 4, 0.6, 0.3)


def row(**changes: object) -> Row:
    return replace(
        Row(HERE, "catalog", EDIT, "Strip", "c" * 64, KEPT, pattern="extraction", tokens=30), **changes
    )


def test_the_id_of_a_context_follows_content_and_not_the_time_that_runs_took() -> None:
    slow = replace(TOLD, seconds_per_attempt=TOLD.seconds_per_attempt + 1.0)
    case = replace(slow.failures[0], trace=tuple(replace(e, seconds=9.0) for e in slow.failures[0].trace))
    assert replace(HERE, report=replace(slow, failures=(case,))).id == HERE.id
    assert replace(HERE, report=replace(TOLD, zero_call_share=1.0)).id != HERE.id
    assert replace(HERE, scoring="other").id != HERE.id


def test_rows_come_back_as_they_were(tmp_path: Path) -> None:
    rows = (
        row(gain=gain(0.5), fresh=gain(0.25), tags=("a",)),
        row(verdict=NO_GAIN, reply="", detail="why\ud800"),
    )
    save_rows(tmp_path, rows)
    assert load_rows(tmp_path) == rows
    first = (tmp_path / "rows.jsonl").read_bytes()
    save_rows(tmp_path, load_rows(tmp_path))
    assert (tmp_path / "rows.jsonl").read_bytes() == first
    assert json.loads(first.splitlines()[0])["id"] == rows[0].id != rows[1].id


@pytest.mark.parametrize("line", ["{}", "[1]", "\x00", '{"verdict": "kept"}', "[" * 5000])
def test_what_is_no_row_is_named_by_its_line(tmp_path: Path, line: str) -> None:
    save_rows(tmp_path, [row()])
    path = tmp_path / "rows.jsonl"
    path.write_text(path.read_text() + line + "\n")
    with pytest.raises(RepositoryError, match="2 is not a row"):
        load_rows(tmp_path)


def test_a_verdict_of_ones_own_is_no_verdict(tmp_path: Path) -> None:
    save_rows(tmp_path, [row(verdict="splendid")])
    with pytest.raises(RepositoryError, match="its verdict is 'splendid'"):
        load_rows(tmp_path)


def test_counts_are_over_kept_rows_and_say_what_choosing_added() -> None:
    other = replace(HERE, family="lcm")
    stats = stats_of(
        [
            row(gain=gain(0.5), fresh=gain(0.25), tags=("t",), pattern="interpreter loop"),
            row(gain=gain(0.3), fresh=gain(0.15), tokens=50, pattern="voting", context=other),
            row(gain=gain(-0.1), verdict=NO_GAIN, tokens=900, teacher="big"),
        ]
    )
    assert (stats.rows, stats.kept, stats.contexts) == (3, 2, 1)  # a family's name is no part of a context
    assert stats.patterns == {"interpreter loop": 1, "voting": 1} and stats.tags == {"t": 1}
    assert stats.teachers == {"big": (0, 1), "catalog": (2, 2)} and stats.families == {
        "gcd": (1, 2),
        "lcm": (1, 1),
    }
    assert stats.gain == pytest.approx(0.4) and stats.fresh == pytest.approx(0.2)
    assert stats.tokens == (30, 40, 50) and list(stats.verdicts) == list(VERDICTS)
    assert stats_of([]).gain is None


def test_a_canonical_reply_is_one_line_and_the_blocks() -> None:
    wordy = f"<think>\nhm ======= \n</think>\n# Strip it\n\nBecause.\n\n```python\n{EDIT}```\nDone!"
    reply, summary, candidate = canonical(PARENT, wordy)
    assert reply == f"Strip it\n\n{EDIT}" and summary == "Strip it"
    assert candidate.text("harness.py").endswith("model(question).strip()\n")
    for broken in ("no edit", EDIT.replace("return model", "return oracle", 1), f"{EDIT}\n{EDIT}"):
        with pytest.raises(EditError):
            canonical(PARENT, broken)


@given(st.text(max_size=200), st.text("ab \n#<=>`", max_size=60))
def test_canonical_replies_make_the_same_candidate(prose: str, comment: str) -> None:
    reply = f"{prose}\n\n{EDIT}".replace(".strip()", f".strip()  # {' '.join(comment.split())}")
    try:
        short, _, candidate = canonical(PARENT, reply)
    except EditError:
        return
    assert apply_edits(PARENT, parse_reply(short)).digest == candidate.digest
    assert canonical(PARENT, short)[0] == short


def test_the_tiny_track_takes_less_unless_told() -> None:
    small = load_settings(None, ["tasks.track=tiny", "tasks.fresh=50"])
    assert (small.tasks.feedback, small.tasks.scoring, small.tasks.fresh, small.data.contexts) == (
        8,
        16,
        50,
        2,
    )
    full = load_settings(None)
    assert (full.tasks.feedback, full.tasks.scoring, full.tasks.fresh, full.data.contexts) == (16, 32, 64, 8)


def test_clusters_that_serve_two_parts_are_refused() -> None:
    with pytest.raises(UsageError, match="number theory"):
        check_clusters(load_settings(None, ["tasks.track=tiny", "tasks.sft=gcd"]).tasks)


def test_the_constant_reply_is_the_commonest_of_those_kept() -> None:
    from training.dataset import constant_reply

    kept = row()
    other = replace(kept, reply="another edit")
    dropped = replace(kept, reply="what gained nothing", verdict="no gain")
    assert constant_reply([kept, other, other, *[dropped] * 3]) == "another edit"
    assert constant_reply([kept, other]) == kept.reply  # the first met
    assert constant_reply([dropped]) == ""
