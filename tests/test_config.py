"""Precedence, refusals, trust, and changing files without losing comments."""

import tomllib
from dataclasses import FrozenInstanceError, fields
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hl.config import KEYS, PROFILES, Config, load_config, user_file
from hl.config.edit import set_value, unset_value, write_values
from hl.config.keys import check, parse
from hl.config.sections import OURS, PAPER, SECOND_HAND, SECTIONS
from hl.config.trust import is_trusted, trust
from hl.errors import RepositoryError, UsageError


def repository(tmp_path: Path, text: str) -> Path:
    root = tmp_path / "repo"
    root.mkdir(exist_ok=True)
    (root / "hl.toml").write_text(text)
    return root


def own(text: str) -> None:
    user_file().parent.mkdir(parents=True, exist_ok=True)
    user_file().write_text(text)


# --- the table --------------------------------------------------------------------------------------------


def test_every_default_is_a_value_its_own_key_allows() -> None:
    for name, key in KEYS.items():
        assert check(key, key.default, "default") == key.default, name


def test_every_key_has_a_known_mark_and_a_one_line_help() -> None:
    for key in KEYS.values():
        assert key.mark in (PAPER, SECOND_HAND, OURS)
        assert key.help and "\n" not in key.help and len(key.help) <= 80


def test_marks_of_what_the_paper_states() -> None:
    assert KEYS["round.proposals"].mark == PAPER and KEYS["round.proposals"].default == 8
    assert KEYS["proposer.temperature"].mark == SECOND_HAND and KEYS["proposer.temperature"].default == 0.6
    assert KEYS["round.scoring"].mark == OURS and KEYS["round.scoring"].default == 32


@pytest.mark.parametrize(
    "field",
    [
        "model",
        "base_url",
        "api_key_env",
        "path",
        "extra_body",
        "price_in",
        "price_out",
        "chat_template_kwargs",
    ],
)
@pytest.mark.parametrize("section", ["solver", "proposer"])
def test_what_names_programs_addresses_secrets_or_money_is_guarded(section: str, field: str) -> None:
    assert KEYS[f"{section}.{field}"].guarded


def test_profiles_hold_valid_values() -> None:
    for values in PROFILES.values():
        for name, value in values.items():
            assert check(KEYS[name], value, "profile") == value


# --- precedence -------------------------------------------------------------------------------------------


def test_defaults_alone() -> None:
    config = load_config(None)
    assert (config.round.proposals, config.solver.engine, config.proposer.engine) == (
        8,
        "llamacpp",
        "catalog",
    )
    assert {str(origin) for origin in config.origins.values()} == {"default"}


def test_each_layer_beats_the_one_below(tmp_path: Path) -> None:
    root = repository(
        tmp_path,
        "[round]\nproposals = 2\nfeedback = 2\nscoring = 2\nconfirmation = 2\n",
    )
    own("[round]\nfeedback = 3\nscoring = 3\nconfirmation = 3\n")
    config = load_config(root, ["round.confirmation=5", "round.confirmation=6"], profile="small")
    assert config.round.proposals == 4  # the profile, over the repository
    assert config.round.scoring == 16
    assert config.round.confirmation == 6  # the last -c
    config = load_config(root, ["round.scoring=9"])
    assert (config.round.proposals, config.round.feedback, config.round.scoring) == (2, 3, 9)
    assert config.round.evaluation == 128
    origins = {name: config.origins[f"round.{name}"].kind for name in ("proposals", "feedback", "scoring")}
    assert origins == {"proposals": "repository", "feedback": "user", "scoring": "command line"}
    assert config.origins["round.feedback"].place == str(user_file())


def test_config_is_frozen_down_to_its_tables() -> None:
    config = load_config(None, ["solver.extra_body={top_k = 20}"])
    assert config.solver.extra_body == {"top_k": 20}
    with pytest.raises(FrozenInstanceError):
        config.round.proposals = 3  # type: ignore[misc]
    with pytest.raises(TypeError):
        config.solver.extra_body["top_k"] = 1  # type: ignore[index]


def test_get_by_dotted_name_agrees_with_the_fields() -> None:
    config = load_config(None, ["attempt.calls=3"])
    assert config.get("attempt.calls") == 3 == config.attempt.calls
    assert {f.name for f in fields(Config)} == {*SECTIONS, "origins"}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("solver.model=qwen 2.5 = good", "qwen 2.5 = good"),
        ("solver.temperature=1", 1.0),
        ("round.confirm=false", False),
        ("harness.files=harness.py, tools.py", ("harness.py", "tools.py")),
        ('harness.files=["harness.py"]', ("harness.py",)),
        ('solver.extra_body={"a": [1, null]}', {"a": [1, None]}),
        ("solver.chat_template_kwargs={enable_thinking = false}", {"enable_thinking": False}),
    ],
)
def test_command_line_values_are_read_by_the_keys_type(text: str, value: object) -> None:
    assert load_config(None, [text]).get(text.partition("=")[0]) == value


# --- refusals ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[round]\nproposal = 3\n", ["round.proposal", "round.proposals"]),
        ("[rounds]\nproposals = 3\n", ["section [rounds]", "[round]"]),
        ("[round]\nproposals = 0\n", ["round.proposals", "0", "between 1 and 1024"]),
        ("[round]\nproposals = true\n", ["round.proposals", "true", "a whole number"]),
        ("[round]\nproposals = 3.0\n", ["round.proposals", "3.0", "a whole number"]),
        ("[round]\nselect = 'improv'\n", ["round.select", "improv", "'improve'"]),
        ("[solver]\ntemperature = nan\n", ["solver.temperature", "NaN"]),
        ("[solver]\ntemperature = '0.5'\n", ["solver.temperature", "a number"]),
        ("[solver]\nextra_body = { when = 2020-01-01 }\n", ["solver.extra_body", "nothing but"]),
        ("[solver]\nbase_url = 'file:///etc/passwd'\n", ["solver.base_url", "http"]),
        ("[solver]\nbase_url = 'http://user:pw@host/v1'\n", ["solver.base_url", "http"]),
        ("[harness]\nfiles = ['../x.py']\n", ["harness.files", "../x.py", "plain file names"]),
        ("[harness]\nfiles = ['-x.py']\n", ["harness.files", "-x.py"]),
        ("[harness]\nfiles = []\n", ["harness.files", "empty"]),
        ("[harness]\nentry = 'other.py'\n", ["harness.entry", "other.py", "harness.files"]),
        ('[task]\nname = "a\\nb"\n', ["task.name", "one line"]),
        ("[solver]\ntemperature = 2.0\n", ["solver.temperature", "temperature_max"]),
        ("[solver]\nmax_tokens = 4096\n", ["solver.max_tokens", "context_tokens"]),
        ("proposals = 3\n", ["proposals", "section"]),
        ("[[round]]\nproposals = 3\n", ["round", "section"]),
        ("[round\n", ["not TOML"]),
    ],
)
def test_a_wrong_file_is_refused_with_file_key_and_value(tmp_path: Path, text: str, words: list[str]) -> None:
    with pytest.raises(UsageError) as caught:
        load_config(repository(tmp_path, text))
    for word in words:
        assert word in caught.value.message
    assert "hl.toml" in caught.value.message


def test_keys_of_a_repository_do_not_belong_in_the_users_file(tmp_path: Path) -> None:
    own("[harness]\nfiles = ['evil.py']\n")
    with pytest.raises(UsageError, match="belongs in a repository"):
        load_config(repository(tmp_path, ""))


def test_secrets_are_refused_and_not_repeated(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        load_config(None, ["solver.api_key=sk-secret-123"])
    assert "secret-123" not in caught.value.message and "api_key_env" in (caught.value.hint or "")
    with pytest.raises(UsageError) as caught:
        load_config(None, ["solver.api_key_env=sk-secret-123"])
    assert "secret-123" not in caught.value.message


@pytest.mark.parametrize(
    "text", ["round.proposals", "=3", "", "round.proposals=", "round.proposals=[", "a.b.c=1"]
)
def test_broken_command_line_settings(text: str) -> None:
    with pytest.raises(UsageError, match="-c"):
        load_config(None, [text])


def test_files_that_are_none(tmp_path: Path) -> None:
    root = tmp_path / "repo"
    (root / "hl.toml").mkdir(parents=True)
    with pytest.raises(RepositoryError, match="not a plain file"):
        load_config(root)
    (root / "hl.toml").rmdir()
    (root / "hl.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(UsageError, match="not TOML"):
        load_config(root)
    (root / "hl.toml").write_bytes(b"#" * (1024 * 1024 + 1))
    with pytest.raises(UsageError, match="larger"):
        load_config(root)


@given(st.binary(max_size=200))
def test_any_bytes_give_a_config_or_our_own_error(
    tmp_path_factory: pytest.TempPathFactory, data: bytes
) -> None:
    root = tmp_path_factory.getbasetemp() / "any"
    root.mkdir(exist_ok=True)
    (root / "hl.toml").write_bytes(data)
    try:
        assert isinstance(load_config(root), Config)
    except (UsageError, RepositoryError) as error:
        assert error.message.isprintable()


@given(st.sampled_from(sorted(KEYS)), st.text(max_size=60))
def test_any_text_on_the_command_line_gives_a_value_or_a_usage_error(name: str, text: str) -> None:
    try:
        value = parse(KEYS[name], text, "-c")
    except UsageError as error:
        assert name in error.message
    else:
        assert check(KEYS[name], value, "again") == value


# --- trust ------------------------------------------------------------------------------------------------

GUARDED = "[solver]\nengine = 'openai'\nmodel = 'm'\nbase_url = 'http://127.0.0.1:1/v1'\n"


def test_a_foreign_repository_is_refused_until_trusted(tmp_path: Path) -> None:
    root = repository(tmp_path, GUARDED)
    with pytest.raises(RepositoryError) as caught:
        load_config(root)
    assert "solver.base_url" in caught.value.message and "127.0.0.1" in caught.value.message
    assert "hl config trust" in (caught.value.hint or "")
    assert load_config(root, require_trust=False).solver.model == "m"
    assert set(trust(root)) == {"solver.model", "solver.base_url"}
    assert load_config(root).solver.base_url == "http://127.0.0.1:1/v1"


def test_trust_ends_when_a_guarded_value_changes_and_not_otherwise(tmp_path: Path) -> None:
    root = repository(tmp_path, GUARDED)
    trust(root)
    repository(tmp_path, GUARDED + "temperature = 0.5\n[round]\nproposals = 3\n")
    assert is_trusted(root)
    repository(tmp_path, GUARDED.replace("127.0.0.1", "example.org"))
    assert not is_trusted(root)
    with pytest.raises(RepositoryError):
        load_config(root)
    repository(tmp_path, GUARDED + "api_key_env = 'AWS_SECRET_ACCESS_KEY'\n")
    assert not is_trusted(root)


def test_defaults_and_harmless_keys_need_no_trust(tmp_path: Path) -> None:
    root = repository(
        tmp_path,
        "[task]\nname = 'reasoning-gym:gcd'\n[solver]\nmodel = 'smollm2'\nprice_in = 0.0\n"
        "[round]\nproposals = 2\n",
    )
    assert load_config(root).round.proposals == 2


def test_a_users_own_value_needs_no_trust_in_the_repository(tmp_path: Path) -> None:
    root = repository(tmp_path, "[solver]\nmodel = 'm'\n")
    with pytest.raises(RepositoryError):
        load_config(root)
    assert load_config(root, ["solver.model=mine"]).solver.model == "mine"
    own("[solver]\nmodel = 'ours'\n")
    assert load_config(root).solver.model == "ours"


@pytest.mark.parametrize("key", ["path", "adapter"])
def test_trust_in_a_relative_path_stays_in_its_place(tmp_path: Path, key: str) -> None:
    text = f"[solver]\nengine = 'scripted'\nmodel = ''\n{key} = 'replies.json'\n"
    root = repository(tmp_path, text)
    trust(root)
    load_config(root)
    other = repository(tmp_path / "elsewhere", text) if (tmp_path / "elsewhere").mkdir() is None else root
    with pytest.raises(RepositoryError):
        load_config(other)


def test_a_task_that_reads_files_needs_trust(tmp_path: Path) -> None:
    root = repository(tmp_path, "[task]\nname = 'jsonl:questions.jsonl?grader=grader.py'\n")
    with pytest.raises(RepositoryError, match=r"task\.name"):
        load_config(root)
    trust(root)
    assert load_config(root).task.name.startswith("jsonl:")


# --- changing files ---------------------------------------------------------------------------------------


def test_set_keeps_comments_and_order(tmp_path: Path) -> None:
    text = "# my agent\n[round]  # budget\nproposals = 8 # many\nscoring = 4\n\n# end\n"
    root = repository(tmp_path, text)
    set_value("round.proposals", "3", root=root)
    assert (root / "hl.toml").read_text() == text.replace("= 8", "= 3")
    set_value("solver.extra_body", "{top_k = 20}", root=root)
    written = (root / "hl.toml").read_text()
    assert "# end" in written and tomllib.loads(written)["solver"] == {"extra_body": {"top_k": 20}}
    assert load_config(root, require_trust=False).round.proposals == 3


def test_set_refuses_before_it_writes(tmp_path: Path) -> None:
    root = repository(tmp_path, "[round]\nproposals = 8\n")
    with pytest.raises(UsageError):
        set_value("round.proposals", "many", root=root)
    assert (root / "hl.toml").read_text() == "[round]\nproposals = 8\n"


def test_set_can_mend_a_wrong_value(tmp_path: Path) -> None:
    root = repository(tmp_path, "[round]\nproposals = 'x'\n")
    set_value("round.proposals", "8", root=root)
    assert load_config(root).round.proposals == 8


def test_set_for_the_user_writes_the_users_file(tmp_path: Path) -> None:
    path = set_value("solver.model", "qwen", root=None)
    assert path == user_file() and tomllib.loads(path.read_text()) == {"solver": {"model": "qwen"}}
    with pytest.raises(UsageError):
        set_value("task.name", "reasoning-gym:gcd", root=None)


def test_setting_a_guarded_key_keeps_trust_but_does_not_give_it(tmp_path: Path) -> None:
    root = repository(tmp_path, "")
    set_value("solver.model", "m", root=root)
    assert is_trusted(root)
    foreign = repository(tmp_path, GUARDED)
    set_value("solver.model", "n", root=foreign)
    assert not is_trusted(foreign)


def test_unset_removes_one_value(tmp_path: Path) -> None:
    root = repository(tmp_path, "[round]\nproposals = 3 # few\nscoring = 4\n")
    assert unset_value("round.proposals", root=root)
    assert not unset_value("round.proposals", root=root)
    assert not unset_value("solver.model", root=root)
    assert load_config(root).round.proposals == 8 and load_config(root).round.scoring == 4


def test_a_written_file_reads_back_as_it_was_given(tmp_path: Path) -> None:
    given_values = {
        "task.name": "reasoning-gym:gcd",
        "harness.files": ("harness.py", "tools.py"),
        "solver.extra_body": {"a": {"b": [1, "x"]}},
        "solver.trials": 2,
        "round.confirm": False,
    }
    write_values(tmp_path / "new" / "hl.toml", given_values)
    config = load_config(tmp_path / "new", require_trust=False)
    assert {name: config.get(name) for name in given_values} == given_values
