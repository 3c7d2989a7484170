"""`qa:` tasks through the program: init, run, revise, a clone, and what is wrong."""

import json
import subprocess
from pathlib import Path

import pytest

from hl.tasks.passages import render_passage
from tests.commands.conftest import Run

READER = ("-c", "solver.engine=scripted", "-c", "solver.model=reader", "-c", "round.pool_rounds=2")


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    return {"HL_CACHE_DIR": str(tmp_path / "cache"), "HL_CONFIG_DIR": str(tmp_path / "config")}


def test_init_makes_a_repository_that_searches_and_so_does_its_clone(
    hl: Run, tmp_path: Path, env: dict[str, str]
) -> None:
    made = hl(*READER, "init", "agent", "--task", "qa:tiny", "--no-score", env=env)
    assert made.code == 0, made.err
    assert "agent: retrieval harness on qa:tiny" in made.out
    agent = tmp_path / "agent"
    assert (agent / "questions" / "corpus.jsonl").is_file()
    subprocess.run(["git", "clone", "-q", "agent", "clone"], cwd=tmp_path, check=True)
    question = json.loads((agent / "questions" / "evaluation.jsonl").read_text().splitlines()[0])["question"]
    for place in (agent, tmp_path / "clone"):
        ran = hl("run", question, "--trace", cwd=place, env=env)
        assert ran.code == 0, ran.err
        assert f"search <- {question}" in ran.out
        assert ("index" in ran.err) == (place == agent)
    # Elsewhere the index is built where it is first needed, and one can see how far it is.
    for number, command in enumerate((["run", question], ["eval", "-n", "2"], ["revise", "--rounds", "1"])):
        fresh = {**env, "HL_CACHE_DIR": str(tmp_path / f"cache-{number}")}
        sizes = ["-c", "round.proposals=1", "-c", "round.scoring=2", "-c", "round.feedback=2"]
        shown = hl(*sizes, *command, cwd=tmp_path / "clone", env=fresh)
        assert shown.code == 0, shown.err
        assert "index 250/1000" in shown.err and "index" not in shown.out
    corpus = tmp_path / "clone" / "questions" / "corpus.jsonl"
    corpus.write_text(corpus.read_text().replace("novel", "poem"))
    changed = hl("run", question, cwd=tmp_path / "clone", env=env)
    assert changed.code == 4 and "does not match its hash" in changed.err


@pytest.mark.parametrize(
    ("task", "code", "message"),
    [
        ("qa:tinny", 2, "did you mean 'tiny'?"),
        ("qa:musique?path=broken.jsonl", 2, "broken.jsonl:17 is not JSON"),
        ("qa:musique?path=good.jsonl&corpus=broken.jsonl", 2, "broken.jsonl:17 is not JSON"),
        ("qa:musique?path=good.jsonl&corpus=missing.jsonl", 2, "missing.jsonl cannot be read: No such file"),
        ("qa:musique?path=good.jsonl&corpus=empty.jsonl", 2, "empty.jsonl has no passages"),
    ],
)
def test_wrong_files_are_named_and_leave_nothing(
    hl: Run, tmp_path: Path, env: dict[str, str], task: str, code: int, message: str
) -> None:
    good = [{"question": f"Who is {i}?", "answer": "x", "paragraphs": []} for i in range(90)]
    (tmp_path / "good.jsonl").write_text("".join(json.dumps(row) + "\n" for row in good))
    (tmp_path / "broken.jsonl").write_text(
        render_passage("a", "b").replace("{", '{"question":"a","answer":"b",') * 16 + "{"
    )
    (tmp_path / "empty.jsonl").write_text("")
    made = hl("-c", "round.pool_rounds=1", "init", "agent", "--task", task, env=env)
    assert made.code == code
    assert message in made.err and "Traceback" not in made.err
    assert not (tmp_path / "agent").exists()
    indexes = tmp_path / "cache" / "indexes"
    assert not indexes.exists() or [p.name for p in indexes.iterdir()] == [".lock"]


def test_a_corpus_of_the_user_s_needs_trust_in_a_clone(hl: Run, tmp_path: Path, env: dict[str, str]) -> None:
    rows = [{"question": f"Who is {i}?", "answer": f"Page {i}", "paragraphs": []} for i in range(120)]
    (tmp_path / "dev.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "wiki.jsonl").write_text(
        "".join(render_passage(f"Page {i}", f"Who? {i}.") for i in range(120))
    )
    task = "qa:musique?path=dev.jsonl&corpus=wiki.jsonl"
    made = hl(*READER, "init", "agent", "--task", task, "--no-score", "--profile", "small", env=env)
    assert made.code == 0, made.err
    assert f"corpus={tmp_path}/wiki.jsonl" in (tmp_path / "agent" / "hl.toml").read_text()
    ran = hl("run", "Who is 7?", "--trace", cwd=tmp_path / "agent", env=env)
    assert ran.code == 0 and "Page 7: Who? 7." in ran.out
    subprocess.run(["git", "clone", "-q", "agent", "clone"], cwd=tmp_path, check=True)
    refused = hl("run", "Who is 7?", cwd=tmp_path / "clone", env=env)
    assert refused.code == 4 and "hl config trust" in refused.err


def test_the_paper_s_three_datasets_make_one_run(hl: Run, tmp_path: Path, env: dict[str, str]) -> None:
    for name in ("hotpotqa", "2wiki"):
        rows = [
            {"question": f"Who is {i}?", "answer": f"P{i}", "context": [[f"P{i}", [f"Is {i}."]]]}
            for i in range(40)
        ]
        (tmp_path / f"{name}.json").write_text(json.dumps(rows))
    rows = [{"question": f"Who is {i}?", "answer": f"P{i}", "paragraphs": []} for i in range(40)]
    (tmp_path / "musique.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "wiki.jsonl").write_text("".join(render_passage(f"P{i}", f"Is {i}.") for i in range(40)))
    datasets = ["hotpotqa=hotpotqa.json", "musique=musique.jsonl?corpus=wiki.jsonl", "2wiki=2wiki.json"]
    options = [part for text in datasets for part in ("--dataset", text)]
    options += ["--solver", "reader=scripted:reader", "--contexts", "1", "--proposals", "2"]
    options += ["--feedback", "2", "--scoring", "2", "--evaluation", "4"]
    done = hl("bench", "qa", *options, env=env)
    assert done.code == 0, done.err
    run = tmp_path / "bench-runs" / "qa-hotpotqa-musique-2wiki"
    tasks = json.loads((run / "manifest.json").read_text())["tasks"]
    assert [(t["family"], t["cluster"], t["role"]) for t in tasks] == [
        ("hotpotqa", "hotpotqa", "rl"),
        ("musique", "musique", "unseen"),
        ("2wiki", "2wiki", "unseen"),
    ]
    for title in ("One step, unseen families", "One step, training families", "training and unseen families"):
        assert title in done.out
    assert "index of qa:hotpotqa?path=hotpotqa.json" in done.err
    wiki, table = (tmp_path / "wiki.jsonl").read_bytes(), (run / "rows.jsonl").read_bytes()
    (tmp_path / "wiki.jsonl").write_bytes(wiki.replace(b"Is 7.", b"Is it."))
    (run / "rows.jsonl").write_bytes(
        b"".join(line for line in table.splitlines(True) if b"musique" not in line)
    )
    for more in ([], ["--dry-run"]):
        other = hl("bench", "qa", *options, *more, env=env)
        assert other.code == 4 and "not the corpus that the questions were made with" in other.err, other.err
    (run / "rows.jsonl").write_bytes(table)
    (tmp_path / "wiki.jsonl").unlink()  # a finished run needs its corpora no more
    again = hl("bench", "qa", *options, env=env)
    assert again.code == 0 and again.out == done.out


@pytest.mark.slow
def test_revise_accepts_the_revision_that_hands_on_passages(
    hl: Run, tmp_path: Path, env: dict[str, str]
) -> None:
    made = hl(*READER, "init", "agent", "--task", "qa:tiny", "--profile", "small", env=env)
    assert made.code == 0, made.err
    done = hl("revise", "--rounds", "2", cwd=tmp_path / "agent", env=env)
    assert done.code == 0, done.err
    log = hl("log", "--json", cwd=tmp_path / "agent", env=env)
    accepted = [json.loads(line) for line in log.out.splitlines() if "passages handed on" in line]
    assert accepted and "accepted" in json.dumps(accepted[0])
    shown = hl("log", cwd=tmp_path / "agent", env=env)
    assert "accepted" in shown.out and "passages handed on" in shown.out
