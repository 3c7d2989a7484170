"""`hl diff` and `hl best`, as typed, and what they choose to compare."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hl.types import Harness, Role
from hl.ui.compare import changed, comparable, harness_diff
from tests.commands.conftest import BETTER, LATER, SEED, Run, Story, harness, measured
from tests.loop import write_loop

Git = Callable[..., str]


def test_diff_prints_the_code_and_the_paired_comparison(hl: Run, story: Story) -> None:
    done = hl("diff", "HEAD~1", "HEAD", cwd=story.root)
    assert (done.code, done.err) == (0, "")
    code, _, scores = done.out.partition("\n\n")
    assert (
        code.startswith("--- a/harness.py\n+++ b/harness.py\n") and "+    return model(question, temp" in code
    )
    assert "HEAD~1  0.125 ± 0.125 (n=8)  evaluation set, llamacpp smollm2\n" in scores
    assert "gain    +0.625 ± 0.263       paired on 8 questions; exact sign test p = 0.125\n" in scores
    assert "6 won, 1 lost, 1 as before\n" in scores
    assert scores.count("\n  won  0.00 -> 1.00  ") == 6 and scores.count("\n  lost 1.00 -> 0.00  ") == 1


def test_defaults_ranges_and_limits(hl: Run, story: Story) -> None:
    whole = hl("diff", "HEAD~1", "HEAD", cwd=story.root).out
    assert hl("diff", cwd=story.root).out == whole
    assert hl("diff", "HEAD~1", cwd=story.root).out == whole
    assert hl("diff", "HEAD~1..", cwd=story.root).out == whole.replace("HEAD~1", "HEAD~1")
    few = hl("diff", "-n", "2", cwd=story.root).out
    assert few.count("  won  0.00") == 2 and "  won  and 4 more\n" in few
    for arguments in (["a", "b", "c"], ["HEAD~1...HEAD"], ["--set", "nothing"]):
        assert hl("diff", *arguments, cwd=story.root).code == 2


def test_losers_are_compared_on_the_set_that_they_share(hl: Run, story: Story) -> None:
    line = json.loads(hl("diff", "1/0", "1/2", "--json", cwd=story.root).out)
    assert (line["kind"], line["scores"][0]["role"], line["gain"]["n"]) == ("diff", "scoring", 8)
    assert line["won"] == [] and line["lost"][0]["before"] == 1.0
    assert '+    return "7"' in line["diff"]
    line = json.loads(hl("diff", "HEAD~1", "HEAD", "--set", "confirmation", "--json", cwd=story.root).out)
    assert line["scores"][0]["role"] == "confirmation" and line["gain"]["mean"] == 0.5


def test_the_same_harness_differs_in_nothing(hl: Run, story: Story) -> None:
    assert hl("diff", "HEAD", "1/3", cwd=story.root).out == "the harnesses are the same\n"


def test_stored_refuses_where_nothing_is_shared(hl: Run, story: Story) -> None:
    done = hl("diff", "HEAD~1", "2/0", "--stored", "--set", "evaluation", cwd=story.root)
    assert done.code == 1 and "never asked the same questions" in done.err and "hint: hl diff" in done.err
    assert "+++ b/harness.py" in done.out  # the code is compared all the same


def test_both_are_measured_where_nothing_is_shared(hl: Run, git: Git, tmp_path: Path) -> None:
    options = write_loop(tmp_path / "kit")
    task, seed = f"jsonl:{tmp_path / 'kit' / 'sums.jsonl'}", str(tmp_path / "kit" / "seed.py")
    agent = tmp_path / "agent"
    assert hl(*options, "init", "agent", "--task", task, "--seed", seed).code == 0
    text = (agent / "harness.py").read_text()
    (agent / "harness.py").write_text(text + "\n\nUNUSED = 1\n")
    git("commit", "-qam", "By hand", cwd=agent)
    done = hl("diff", cwd=agent)
    assert done.code == 0 and "measuring both on the evaluation set" in done.err, done.err
    assert "0 won, 0 lost, 8 as before" in done.out
    again = hl("diff", "--stored", cwd=agent)
    assert (again.code, again.out) == (0, done.out)  # the scores were kept


def test_best_ranks_by_evaluation_then_confirmed_and_names_each_harness_once(hl: Run, story: Story) -> None:
    done = hl("best", "--all", cwd=story.root)
    assert (done.code, done.err) == (0, "")
    table = [line.split("  ") for line in done.out.splitlines()]
    assert [row[0] for row in table] == ["1", "2", "3"]
    assert [row[1] for row in table] == ["0.750 ± 0.164 (n=8)", "0.250 ± 0.164 (n=8)", "0.125 ± 0.125 (n=8)"]
    assert story.head[:9] in done.out.splitlines()[0] and "round main/2/0" in done.out.splitlines()[1]
    assert len(hl("best", cwd=story.root).out.splitlines()) == 2
    line = json.loads(hl("best", "-n", "1", "--json", cwd=story.root).out)
    assert (line["kind"], line["rank"], line["commit"], line["score"]["role"]) == (
        "best",
        1,
        story.head,
        "evaluation",
    )


def test_best_leaves_out_what_another_solver_measured(hl: Run, story: Story) -> None:
    other = replace(measured(SEED, Role.EVALUATION, [1] * 8, solver="b" * 16), time="2099-01-01T00:00:00Z")
    story.ledger.add_measurements(story.seed, [other])
    done = hl("best", cwd=story.root)
    assert done.out.splitlines()[0].startswith("1  1.000 ± 0.000 (n=8)") and len(done.out.splitlines()) == 1
    assert "1 left out" in done.err


def test_best_without_scores(hl: Run, git: Git, story: Story) -> None:
    git("update-ref", "-d", "refs/notes/hl/evals", cwd=story.root)
    done = hl("best", cwd=story.root)
    assert (done.code, done.out) == (1, "") and "hint: hl eval" in done.err


# --- what is compared ---------------------------------------------------------------------------------------


def test_comparable_prefers_the_evaluation_set_then_more_questions() -> None:
    before = [measured(SEED, Role.SCORING, [0] * 9), measured(SEED, Role.EVALUATION, [0] * 2)]
    after = [measured(BETTER, Role.SCORING, [1] * 9), measured(BETTER, Role.EVALUATION, [1] * 2)]
    found = comparable(before, after)
    assert found is not None and found[0].role is Role.EVALUATION
    found = comparable(before, after, "scoring")
    assert found is not None and len(found[1].ids) == 9


@pytest.mark.parametrize(
    "other",
    [
        measured(BETTER, Role.EVALUATION, [1] * 4, solver="b" * 16),
        measured(BETTER, Role.EVALUATION, [1] * 4, block=1),
        measured(BETTER, Role.SCORING, [1] * 4),
        measured(BETTER, Role.EVALUATION, [None] * 4),
        replace(measured(BETTER, Role.EVALUATION, [1] * 4), ablation="empty"),
        replace(measured(BETTER, Role.EVALUATION, [1] * 4), mode="strict"),
    ],
)
def test_never_compared(other: Any) -> None:
    assert comparable([measured(SEED, Role.EVALUATION, [0] * 4)], [other]) is None


def test_changed_lists_the_largest_first_and_skips_lost_attempts() -> None:
    won, lost = changed(
        measured(SEED, Role.SCORING, [0, 0.5, 1, None, 0.2, 1]),
        measured(LATER, Role.SCORING, [0.5, 1, 0, 1, 0.2, 0.9]),
    )
    assert [(c.before, c.after) for c in won] == [(0, 0.5), (0.5, 1)]
    assert [(c.before, c.after) for c in lost] == [(1, 0), (1, 0.9)]


def test_harness_diff_of_several_files_and_hostile_text() -> None:
    one = Harness((("a.py", "x = 1\n"), ("harness.py", SEED)))
    two = Harness((("b.py", "y = '\x1b[2J'"), ("harness.py", SEED)))
    text = harness_diff(one, two)
    assert "--- a/a.py\n+++ /dev/null\n" in text and "--- /dev/null\n+++ b/b.py\n" in text
    assert "\\ No newline at end of file" in text and "\x1b" not in text and "harness.py" not in text
    assert harness_diff(one, one) == ""
    assert harness_diff(None, harness(SEED)).startswith("--- /dev/null\n+++ b/harness.py\n@@ -0,0 +1,2 @@\n")
