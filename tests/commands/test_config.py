"""`hl config`, as typed."""

import json
import tomllib
from pathlib import Path

import pytest

from hl.config import KEYS
from hl.config.sections import OURS, PAPER, SECOND_HAND


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    (tmp_path / "hl.toml").write_text(
        '# mine\n[round]\nproposals = 3 # few\n\n[task]\nname = "reasoning-gym:gcd"\n'
    )
    return tmp_path


def test_list_prints_every_key_once(hl, repo: Path) -> None:
    done = hl("config", "list")
    assert (done.code, done.err) == (0, "")
    assert [line.split(" = ")[0] for line in done.out.splitlines()] == list(KEYS)
    assert "round.proposals = 3\n" in done.out and 'harness.files = ["harness.py"]\n' in done.out


def test_list_with_origin_gives_value_source_and_mark(hl, repo: Path, own_config_dir: Path) -> None:
    (own_config_dir / "config.toml").write_text("[round]\nfeedback = 5\n")
    done = hl("-c", "round.scoring=6", "config", "list", "--origin")
    rows = {line.split(" = ")[0]: line.split(" = ")[1].split() for line in done.out.splitlines()}
    assert rows["round.proposals"] == ["3", "repository", "hl.toml", PAPER]
    assert rows["round.feedback"] == ["5", "user", str(own_config_dir / "config.toml"), OURS]
    assert rows["round.scoring"] == ["6", "command", "line", OURS]
    assert rows["round.select"] == ['"improve"', "default", SECOND_HAND]
    assert {row[-1] for row in rows.values()} == {PAPER, SECOND_HAND, OURS}


def test_list_as_json_lines(hl, repo: Path) -> None:
    done = hl("config", "list", "--json")
    lines = [json.loads(line) for line in done.out.splitlines()]
    assert [line["key"] for line in lines] == list(KEYS)
    assert all((line["schema"], line["kind"]) == (1, "config") for line in lines)
    by_key = {line["key"]: line for line in lines}
    assert (by_key["round.proposals"]["value"], by_key["round.proposals"]["origin"]) == (3, "repository")
    assert by_key["harness.files"]["default"] == ["harness.py"] and by_key["solver.extra_body"]["value"] == {}


def test_get_prints_the_bare_value(hl, repo: Path) -> None:
    assert hl("config", "get", "task.name").out == "reasoning-gym:gcd\n"
    assert hl("config", "get", "round.confirm").out == "true\n"
    described = hl("config", "get", "round.select", "--describe").out
    assert "improve, best, significant" in described and "(second-hand)" in described


def test_get_of_an_unknown_key(hl, repo: Path) -> None:
    done = hl("config", "get", "round.proposal")
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith(
        "error: hl config get: unknown key \"round.proposal\"; did you mean 'round.proposals'?"
    )


def test_set_writes_the_repository_and_keeps_its_comments(hl, repo: Path) -> None:
    before = (repo / "hl.toml").read_text()
    done = hl("config", "set", "round.proposals", "4")
    assert (done.code, done.out) == (0, "") and "round.proposals set in" in done.err
    assert (repo / "hl.toml").read_text() == before.replace("= 3", "= 4")


def test_set_refuses_a_wrong_value_and_writes_nothing(hl, repo: Path) -> None:
    before = (repo / "hl.toml").read_text()
    done = hl("config", "set", "round.select", "bset")
    assert done.code == 2 and "'best'" in done.err and (repo / "hl.toml").read_text() == before


def test_set_user_writes_the_users_file_from_anywhere(hl, tmp_path: Path, own_config_dir: Path) -> None:
    done = hl("config", "set", "solver.base_url", "http://127.0.0.1:8000/v1", "--user")
    assert done.code == 0
    written = tomllib.loads((own_config_dir / "config.toml").read_text())
    assert written == {"solver": {"base_url": "http://127.0.0.1:8000/v1"}}
    assert hl("config", "get", "solver.base_url").out == "http://127.0.0.1:8000/v1\n"


def test_set_outside_a_repository(hl, tmp_path: Path) -> None:
    done = hl("config", "set", "round.proposals", "4")
    assert done.code == 4 and "hint: hl init" in done.err and not (tmp_path / "hl.toml").exists()


def test_unset(hl, repo: Path) -> None:
    assert hl("config", "unset", "round.proposals").code == 0
    assert hl("config", "get", "round.proposals").out == "8\n"
    done = hl("config", "unset", "round.proposals")
    assert done.code == 1 and "is not set in hl.toml" in done.err


def test_trust_prints_what_it_trusts(hl, repo: Path, own_config_dir: Path) -> None:
    with (repo / "hl.toml").open("a") as file:
        file.write('[solver]\nbase_url = "http://10.0.0.1/v1"\n')
    assert hl("config", "get", "solver.base_url").code == 0  # looking is allowed
    done = hl("config", "trust")
    assert (done.code, done.out) == (0, 'solver.base_url  "http://10.0.0.1/v1"\n')
    [stored] = (own_config_dir / "trusted").iterdir()
    assert json.loads(stored.read_text())["repository"] == str(repo)


def test_trust_where_there_is_nothing_to_trust(hl, repo: Path, own_config_dir: Path) -> None:
    done = hl("config", "trust")
    assert (done.code, done.out) == (0, "") and "nothing that needs trust" in done.err
    assert not (own_config_dir / "trusted").exists()
