"""`hl push`, `hl fetch` and `hl fsck`, as typed."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.commands.conftest import Run, Story

Git = Callable[..., str]


@pytest.fixture
def remote(story: Story, git: Git, tmp_path: Path) -> Path:
    """An empty bare repository, the story's origin."""
    path = tmp_path / "origin.git"
    git("init", "-q", "--bare", "-b", "main", str(path), cwd=tmp_path)
    git("remote", "add", "origin", str(path), cwd=story.root)
    return path


def test_a_clone_gets_every_score_and_losing_candidate(
    hl: Run, git: Git, story: Story, remote: Path, tmp_path: Path
) -> None:
    done = hl("push", cwd=story.root)
    assert (done.code, done.err) == (
        0,
        "",
    ) and done.out == "to origin: branch main, 2 new rounds, new scores\n"
    clone = tmp_path / "clone"
    git("clone", "-q", str(remote), str(clone), cwd=tmp_path)
    before = hl("log", "--all", cwd=clone).out
    assert "eval" not in before and "not_found" not in before
    done = hl("fetch", cwd=clone)
    assert (done.code, done.out) == (0, "from origin: 2 new rounds, new scores\n")
    assert hl("log", "--all", cwd=clone).out == hl("log", "--all", cwd=story.root).out
    assert hl("fetch", cwd=clone).out == "from origin: 0 new rounds, no new scores\n"
    assert "fetch --records" in hl("show", cwd=clone).out
    assert hl("fsck", cwd=clone).code == 0


def test_records_travel_when_asked(hl: Run, git: Git, story: Story, remote: Path, tmp_path: Path) -> None:
    line = json.loads(hl("push", "--records", "--json", cwd=story.root).out)
    assert (line["kind"], line["branch"], line["rounds"], line["conflicts"]) == ("push", "main", 2, [])
    assert line["records"] > 0
    git("clone", "-q", str(remote), str(tmp_path / "clone"), cwd=tmp_path)
    assert (
        json.loads(hl("fetch", "--records", "--json", cwd=tmp_path / "clone").out)["records"]
        == line["records"]
    )
    assert "the reply number 1" in hl("show", cwd=tmp_path / "clone").out
    assert hl("report", "HEAD~1", cwd=tmp_path / "clone").code == 0


def test_a_remote_that_is_not_there(hl: Run, story: Story) -> None:
    for verb in ("push", "fetch"):
        done = hl(verb, cwd=story.root)
        assert (
            (done.code, done.out) == (4, "") and "origin" in done.err and "hint: git remote add" in done.err
        )
        assert hl(verb, "--upload-pack=x", cwd=story.root).code == 2


def test_fsck_of_a_whole_ledger(hl: Run, story: Story) -> None:
    done = hl("fsck", cwd=story.root)
    assert (done.code, done.err, done.out) == (0, "", "2 rounds and their scores fit together\n")
    assert hl("fsck", "--json", cwd=story.root).out == ""


def test_fsck_finds_a_score_that_is_gone_and_a_round_that_is_none(hl: Run, git: Git, story: Story) -> None:
    git("update-ref", "refs/hl/rounds/main/7", story.head, cwd=story.root)
    done = hl("fsck", cwd=story.root)
    assert done.code == 1 and "damaged refs/hl/rounds/main/7" in done.out and "hint:" in done.err
    lines = [json.loads(line) for line in hl("fsck", "--json", cwd=story.root).out.splitlines()]
    assert any(line["where"] == "refs/hl/rounds/main/7" and line["serious"] for line in lines)


def test_fsck_tells_lost_detail_without_failing(hl: Run, story: Story) -> None:
    records = sorted((story.root / ".git" / "hl" / "records").rglob("*.z"))
    assert records
    records[0].unlink()
    done = hl("fsck", cwd=story.root)
    assert done.code == 0 and done.out.startswith("note ")
