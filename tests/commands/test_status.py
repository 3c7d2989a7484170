"""`hl status`, as typed, in the states that a branch can be in."""

import json
from collections.abc import Callable

from hl.journal import Journal, Options
from hl.journal import Run as Journalled
from tests.commands.conftest import Run, Story

Git = Callable[..., str]


def rows(text: str) -> dict[str, str]:
    return {
        line.split()[0]: " ".join(line.split()[1:]) for line in text.splitlines() if not line.startswith(" ")
    }


def test_a_clean_branch(hl: Run, story: Story) -> None:
    done = hl("status", cwd=story.root)
    assert (done.code, done.err) == (0, "")
    found = rows(done.out)
    assert found["branch"] == "main" and found["task"] == "reasoning-gym:gcd, raw grades"
    assert found["head"] == f"{story.head[:9]} Strip the reply"
    assert found["score"] == "0.750 ± 0.164 (n=8) eval" and found["harness"] == "clean"
    assert found["rounds"] == "2" and found["next"] == "hl log"
    assert "sandbox bwrap+landlock+seccomp" in done.out


def test_json(hl: Run, story: Story) -> None:
    line = json.loads(hl("status", "--json", cwd=story.root).out)
    assert (line["schema"], line["kind"], line["branch"]) == (1, "status", "main")
    assert (line["dirty"], line["interrupted"], line["unfinished"], line["trusted"]) == (
        [],
        None,
        False,
        True,
    )
    assert line["head"]["commit"] == story.head and line["head"]["score"]["mean"] == 0.75


def test_a_changed_harness(hl: Run, story: Story) -> None:
    (story.root / "harness.py").write_text("x = 1\n")
    found = rows(hl("status", cwd=story.root).out)
    assert found["harness"] == "changed since the last commit: harness.py"
    assert found["next"].startswith("git commit") and "harness.py" in found["next"]


def test_an_interrupted_run(hl: Run, story: Story) -> None:
    run = Journalled("main", story.seed, 2, Options(rounds=5))
    Journal(story.ledger.common_dir / "hl" / "run.json").save(run)
    found = rows(hl("status", cwd=story.root).out)
    assert (
        found["interrupted"] == "a run of 5 rounds on main, 1 done"
        and found["next"] == "hl revise --continue"
    )


def test_a_run_under_way_is_not_called_interrupted(hl: Run, story: Story) -> None:
    Journal(story.ledger.folder / "run.json").save(Journalled("main", story.seed, 2, Options(rounds=5)))
    with story.ledger.lock():
        found = rows(hl("status", cwd=story.root).out)
        line = json.loads(hl("status", "--json", cwd=story.root).out)
    assert found["running"] == "a run of 5 rounds on main, 1 done" and found["next"] == "hl log"
    assert line["running"] is True and line["interrupted"] is None
    assert "interrupted" in rows(hl("status", cwd=story.root).out)


def test_questions_are_counted(hl: Run, story: Story) -> None:
    (story.root / "questions").mkdir()
    (story.root / "questions" / "scoring.jsonl").write_text("{}\n{}\n\n")
    assert rows(hl("status", cwd=story.root).out)["questions"] == "2 scoring"


def test_a_repository_that_is_not_trusted_can_be_looked_at(hl: Run, git: Git, story: Story) -> None:
    with (story.root / "hl.toml").open("a") as file:
        file.write('[solver]\nbase_url = "http://10.0.0.1/v1"\n')
    found = rows(hl("status", cwd=story.root).out)
    assert found["next"] == "hl config trust" and "trust" in found
    assert hl("log", cwd=story.root).code == 0


def test_detached_and_unborn(hl: Run, git: Git, story: Story) -> None:
    git("checkout", "-q", "--detach", cwd=story.root)
    found = rows(hl("status", cwd=story.root).out)
    assert found["branch"] == "none: HEAD is detached" and found["next"] == "git switch -c NEW-BRANCH"
    git("switch", "-q", "--orphan", "fresh", cwd=story.root)
    (story.root / "hl.toml").write_text("")
    done = hl("status", cwd=story.root)
    assert done.code == 0 and rows(done.out)["head"] == "no commit yet"


def test_a_damaged_journal_is_named(hl: Run, story: Story) -> None:
    (story.ledger.common_dir / "hl" / "run.json").write_text("{")
    done = hl("status", cwd=story.root)
    assert done.code == 4 and "run.json" in done.err and "hint: hl revise --abandon" in done.err
