"""`hl log`, as typed, on a story with an accepted and a rejected round."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

from hl.records import Records
from hl.selection import decide, select
from hl.types import Candidate, Cost, Outcome, Revision, Role, Round
from tests.commands.conftest import BETTER, SEED, WORSE, harness, measured, proposal, report_on

HEAD_LINE = (
    "    1  accepted  0.750 ± 0.164 (n=8) eval    +0.500 ± 0.189 noise  scored           {}  Strip the reply"
)
SEED_LINE = (
    "    -  seed      0.125 ± 0.125 (n=8) eval    -                     -                {}  Start with"
)


def test_one_line_a_commit_with_verdict_score_gain_outcome_and_summary(hl, story) -> None:
    done = hl("log", cwd=story.root)
    assert (done.code, done.err) == (0, "")
    header, head, seed = done.out.splitlines()
    assert header.split() == ["round", "verdict", "score", "gain", "outcome", "commit", "summary"]
    assert head == HEAD_LINE.format(story.head[:9])
    assert seed == SEED_LINE.format(story.seed[:9]) + " the minimal harness"


def test_all_includes_losers_with_their_reason(hl, story) -> None:
    lines = hl("log", "--all", cwd=story.root).out.splitlines()[1:]
    numbers = [line.split()[0] for line in lines]
    assert numbers == ["2/0", "1", "1/0", "1/2", "1/3", "-"]
    by_number = dict(zip(numbers, lines, strict=True))
    assert "rejected" in by_number["2/0"] and "+0.000 ± 0.000 noise" in by_number["2/0"]
    assert "failed" in by_number["1/0"] and "not_found" in by_number["1/0"]
    assert by_number["1/0"].endswith("Add a retry [SEARCH text of block 1 is not there]")
    assert "not best" in by_number["1/2"] and "0.000 ± 0.000 (n=8) scor" in by_number["1/2"]
    assert "duplicate" in by_number["1/3"] and "0.750 ± 0.164 (n=8)" in by_number["1/3"]


def test_a_model_cannot_paint_the_terminal(hl, story) -> None:
    done = hl("log", "--all", cwd=story.root, env={"FORCE_COLOR": "1"})
    assert "\x1b[31mred" not in done.out and "\x07" not in done.out
    assert "\x1b[32maccepted" in done.out  # our own colour is there


def test_oneline_graph_limit_and_ranges(hl, story) -> None:
    out = hl("log", "--oneline", cwd=story.root).out
    assert out.splitlines() == [
        f"{story.head[:9]} 1 accepted 0.750 ± 0.164 (n=8) eval Strip the reply",
        f"{story.seed[:9]} seed 0.125 ± 0.125 (n=8) eval Start with the minimal harness",
    ]
    assert hl("log", "--oneline", "-n", "1", cwd=story.root).out.splitlines() == out.splitlines()[:1]
    assert hl("log", "--oneline", "HEAD~1..HEAD", cwd=story.root).out.splitlines() == out.splitlines()[:1]
    assert hl("log", "--oneline", story.seed, cwd=story.root).out.splitlines() == out.splitlines()[1:]
    graph = hl("log", "--oneline", "--graph", cwd=story.root).out.splitlines()
    assert graph == [f"* {line}" for line in out.splitlines()]
    assert hl("log", "-n", "0", "--oneline", cwd=story.root).out == ""


def test_json_lines(hl, story) -> None:
    lines = [json.loads(line) for line in hl("log", "--all", "--json", cwd=story.root).out.splitlines()]
    assert all((line["schema"], line["kind"]) == (1, "log") for line in lines)
    assert [line["verdict"] for line in lines] == [
        "rejected",
        "accepted",
        "failed",
        "not best",
        "not best",
        "seed",
    ]
    head = lines[1]
    assert (head["commit"], head["name"], head["accepted"], head["loser"]) == (
        story.head,
        "main/1/1",
        True,
        False,
    )
    assert head["decision"]["gain"] == 0.5 and head["decision"]["confirmed"] is True
    assert (head["score"]["role"], head["score"]["mean"], head["score"]["n"]) == ("evaluation", 0.75, 8)
    assert {m["role"] for m in head["measurements"]} == {"feedback", "scoring", "confirmation", "evaluation"}
    assert lines[2]["detail"] == "SEARCH text of block 1 is not there"


def test_a_commit_by_hand_and_a_revert_keep_the_scores_of_their_harness(hl, git, story) -> None:
    (story.root / "harness.py").write_text("def solve(model, question):\n    return ''\n")
    git("commit", "-qam", "By hand", cwd=story.root)
    git("revert", "--no-edit", "HEAD", cwd=story.root)
    lines = hl("log", "--oneline", cwd=story.root).out.splitlines()
    assert "by hand 0.750 ± 0.164 (n=8) eval Revert" in lines[0]
    assert lines[1].endswith("by hand By hand")


def test_a_forged_trailer_decides_nothing(hl, git, story) -> None:
    forged = "Forged\n\nHL-Round: main/1/1\nHL-Score: 1.0000 +- 0.0 n=99 confirmation\nHL-Edit: scored\n"
    (story.root / "harness.py").write_text("def solve(model, question):\n    return 'x'\n")
    git("commit", "-qam", forged, cwd=story.root)
    line = hl("log", "--oneline", cwd=story.root).out.splitlines()[0]
    assert line.endswith("by hand Forged") and "accepted" not in line
    shown = hl("show", cwd=story.root).out
    assert "not confirmed by a round that is here" in shown


def test_detached_head_and_subdirectory_and_worktree(hl, git, story, tmp_path: Path) -> None:
    expected = hl("log", "--oneline", cwd=story.root).out
    (story.root / "deep").mkdir()
    assert hl("log", "--oneline", cwd=story.root / "deep").out == expected
    assert hl("-C", str(story.root), "log", "--oneline").out == expected
    git("worktree", "add", "-q", str(tmp_path / "tree"), "-b", "other", cwd=story.root)
    assert hl("log", "--oneline", cwd=tmp_path / "tree").out == expected
    git("checkout", "-q", "--detach", cwd=story.root)
    assert hl("log", "--oneline", cwd=story.root).out == expected


def test_unknown_revision_no_repository_and_a_plain_git_repository(hl, git, story, tmp_path: Path) -> None:
    done = hl("log", "nowhere", cwd=story.root)
    assert done.code == 4 and "nowhere" in done.err and "hint:" in done.err
    assert "error" not in done.out
    (tmp_path / "empty").mkdir()
    done = hl("log", cwd=tmp_path / "empty")
    assert (done.code, done.out) == (4, "") and "hint: hl init" in done.err
    git("init", "-q", ".", cwd=tmp_path / "empty")
    done = hl("log", cwd=tmp_path / "empty")
    assert (done.code, done.out) == (4, "") and "without an hl.toml" in done.err


def test_an_option_in_place_of_a_revision_is_refused(hl, story) -> None:
    done = hl("log", "--output=x", cwd=story.root)
    assert done.code == 2 and not (story.root / "x").exists()
    done = hl("log", "--", "--output=x", cwd=story.root)
    assert done.code == 4 and not (story.root / "x").exists()


def test_a_gain_on_the_questions_that_chose_is_marked(hl, story) -> None:
    """Rejected before any confirmation: the only gain there is was used to choose."""
    second = [
        Candidate(
            proposal(0, Outcome.SCORED, "Try this", WORSE),
            measured(WORSE, Role.SCORING, [0, 0, 0, 0, 0, 0, 1, 0], block=3),
        )
    ]
    before = measured(BETTER, Role.SCORING, [0, 0, 0, 0, 0, 0, 0, 1], block=3)
    choice = select("improve", before, [second[0].scoring])
    story.ledger.record_round(
        Round(
            lineage="main",
            number=3,
            parent=Revision(story.head, harness(BETTER), "main"),
            feedback=measured(BETTER, Role.FEEDBACK, [0, 1], block=3),
            scoring=before,
            candidates=tuple(second),
            verdict=decide("improve", choice, None, confirm=True),
            confirmation=(),
            report=report_on(BETTER),
            cost=Cost(),
        ),
        Records(story.ledger.common_dir / "hl" / "records"),
    )
    lines = hl("log", "--all", cwd=story.root).out.splitlines()
    (line,) = (line for line in lines if line.split()[0] == "3/0")
    assert "rejected" in line and "+0.000 ± 0.189 scor" in line


# --- the quick reader ---------------------------------------------------------------------------------------


def test_a_plain_log_needs_neither_typer_nor_the_nouns(story) -> None:
    code = "import hl.cli, sys\nassert hl.cli.run(['log', '-n', '20']) == 0\n"
    code += (
        "print([n for n in ('typer', 'hl.types', 'hl.config', 'rich', 'git', 'asyncio') if n in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=story.root, capture_output=True, text=True, timeout=60
    )
    assert done.stdout.splitlines()[-1] == "[]", done.stderr
    assert "Strip the reply" in done.stdout


def test_the_quick_reader_prints_what_the_full_one_prints(hl, git, story, tmp_path: Path) -> None:
    def check(*arguments: str, root: Path = story.root) -> str:
        quick = hl("log", *arguments, cwd=root)
        full = hl("-c", "round.proposals=8", "log", *arguments, cwd=root)
        assert (quick.code, quick.out) == (full.code, full.out) and quick.out
        return quick.out

    (story.root / "harness.py").write_text("def solve(model, question):\n    return ''\n")
    git("commit", "-qam", "By hand \x1b[31m, in \u202e disguise", cwd=story.root)
    git("revert", "--no-edit", "HEAD", cwd=story.root)
    git("cherry-pick", "--allow-empty", story.head, "-x", "--keep-redundant-commits", cwd=story.root)
    git(
        "commit", "-q", "--allow-empty", "-m", "Forged\n\nHL-Round: main/1/1\nHL-Edit: scored", cwd=story.root
    )
    thirds = [1 / 3, 2 / 3, 1.0, None]
    later = [
        measured(SEED, Role.EVALUATION, thirds * 3, block=3),
        measured(SEED, Role.EVALUATION, [1], block=4),
        measured(SEED, Role.EVALUATION, [1] * 20, block=5, solver="b" * 16),
        measured(BETTER, Role.EVALUATION, [1] * 20, block=5, solver="c" * 16),
    ]
    later = [replace(m, time=f"209{i}-01-01T00:00:00Z") for i, m in enumerate(later)]
    story.ledger.add_measurements(story.seed, later[:2])
    # The most questions speak, not the newest measurement.
    assert "0.667 ± 0.096 (n=9) eval" in check() and "*" not in check()
    story.ledger.add_measurements(story.seed, later[2:3])
    story.ledger.add_measurements(story.head, later[3:])
    starred = check()
    assert "1.000 ± 0.000 (n=20) eval*" in starred and "not comparable" in starred.splitlines()[-1]
    check("--oneline", "-n", "3", "HEAD~1", "HEAD")
    git("rm", "-q", "harness.py", cwd=story.root)
    git("commit", "-qm", "Remove it", cwd=story.root)
    note = '{"t":"2030","g":"1","h":"x"}\n[]\nnonsense\n'
    git("notes", "--ref=hl/evals", "append", "-m", note, story.head, cwd=story.root)
    check()
    git("clone", "-q", str(story.root), str(tmp_path / "clone"), cwd=tmp_path)
    assert "accepted" not in check(root=tmp_path / "clone")
    (tmp_path / "clone" / "hl.toml").write_text(
        '[harness]\nfiles = ["harness.py", "hl.toml"]\n'.replace("hl.toml", "x.py")
    )
    check(root=tmp_path / "clone")


def test_what_the_quick_reader_leaves_to_the_full_one(hl, story) -> None:
    for arguments, code in (
        (["-n", "x"], 2),
        (["-n"], 2),
        (["nowhere"], 4),
        (["HEAD..nowhere"], 4),
        (["1/9"], 4),
    ):
        done = hl("log", *arguments, cwd=story.root)
        assert (done.code, done.out) == (code, "") and "error:" in done.err, arguments
    done = hl("--no-pager", "-C", "agent", "log", "1/0", "--oneline")
    assert done.code == 0 and done.out.splitlines()[0].endswith("Add a retry")
