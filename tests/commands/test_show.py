"""`hl show` and `hl report`, as typed."""

import json
import shutil
from pathlib import Path


def rows(text: str) -> dict[str, str]:
    """First word -> rest, of the lines before the first empty one."""
    return {line.split()[0]: line.split(maxsplit=1)[1] for line in text.split("\n\n")[0].splitlines()}


def test_show_prints_edit_reply_verdict_and_scores(hl, story) -> None:
    done = hl("show", cwd=story.root)
    assert (done.code, done.err) == (0, "")
    head = rows(done.out)
    assert head["commit"] == story.head
    assert (head["round"], head["verdict"]) == ("main/1/1, one of 4 candidates", "accepted")
    assert head["evidence"] == "within noise" and head["proposer"] == "catalog 1, 15 tokens"
    assert "+0.500 ± 0.189 confirmed on fresh questions; 4 won, 0 lost of 8" in done.out
    assert "+0.625 ± 0.183 on the questions that chose it, so biased upwards" in done.out
    assert "  0.750 ± 0.164 (n=8)  evaluation " in done.out and "llamacpp smollm2" in done.out
    assert "  | the reply number 1\n" in done.out
    assert "-    return model(question)\n+    return model(question, temperature=0.0).strip()\n" in done.out


def test_show_of_a_loser_that_did_not_apply(hl, story) -> None:
    for name in ("1/0", "main/1/0"):
        done = hl("show", name, cwd=story.root)
        head = rows(done.out)
        assert (head["verdict"], head["outcome"]) == ("failed", "not_found")
        assert head["detail"] == "SEARCH text of block 1 is not there"
        assert "scores of the parent, since the edit did not apply" in done.out
        assert "\n@@" not in done.out


def test_show_of_the_first_commit_shows_the_seed(hl, story) -> None:
    done = hl("show", "HEAD~1", cwd=story.root)
    assert "verdict  seed\n" in done.out and "--- /dev/null\n+++ b/harness.py\n" in done.out


def test_show_json_has_everything(hl, story) -> None:
    line = json.loads(hl("show", "2/0", "--json", cwd=story.root).out)
    assert (line["schema"], line["kind"], line["verdict"]) == (1, "show", "rejected")
    assert line["verdict_record"]["decision"] == "rejected" and line["proposal"]["outcome"] == "scored"
    assert line["reply"]["text"].endswith("the reply number 0") and "temperature=0.1" in line["diff"]


def test_show_without_the_records_says_how_to_get_them(hl, story) -> None:
    shutil.rmtree(story.root / ".git" / "hl" / "records")
    done = hl("show", cwd=story.root)
    assert done.code == 0 and "the reply is not in this clone: hl fetch --records" in done.out
    assert "0.750 ± 0.164 (n=8)  evaluation" in done.out  # scores are in git


def test_show_of_nothing(hl, story) -> None:
    for name in ("9/0", "1/9", "nowhere"):
        done = hl("show", name, cwd=story.root)
        assert (done.code, done.out) == (4, "") and "hint:" in done.err


def test_report_is_the_newest_one_about_that_harness(hl, story) -> None:
    done = hl("report", "HEAD~1", cwd=story.root)
    assert (done.code, done.err) == (0, "")
    assert "0.250 ± 0.250 (n=4)" in done.out and "gcd of 4 and 6?" in done.out
    by_round = hl("report", "--round", "1", cwd=story.root)
    assert by_round.out == done.out
    line = json.loads(hl("report", "--json", cwd=story.root).out)
    assert (line["kind"], line["lineage"], line["round"]) == ("report", "main", 2)
    assert line["report"]["report"]["task"]["name"] == "reasoning-gym:gcd"


def test_report_fits_a_token_budget(hl, story) -> None:
    whole = hl("report", cwd=story.root).out
    short = hl("report", "--tokens", "40", cwd=story.root).out
    assert 0 < len(short) < len(whole) and len(short) <= 40 * 4


def test_report_of_a_harness_that_no_round_revised(hl, git, story, tmp_path: Path) -> None:
    done = hl("report", "2/0", cwd=story.root)
    assert done.code == 0 and f"this report on {story.head[:9]} led to it" in done.err
    assert done.out == hl("report", "--round", "2", cwd=story.root).out
    (story.root / "harness.py").write_text("def solve(model, question):\n    return ''\n")
    git("commit", "-qam", "By hand", cwd=story.root)
    done = hl("report", cwd=story.root)
    assert (done.code, done.out) == (1, "") and "hint: hl revise" in done.err
    done = hl("report", "--round", "7", cwd=story.root)
    assert (done.code, done.out) == (4, "") and "no round 7" in done.err
