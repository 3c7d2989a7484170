"""Settings of a training run: precedence, refusals with the nearest name, and what is passed on to hl."""

import re
from pathlib import Path

import pytest

from hl.config import load_config
from hl.errors import UsageError
from training.settings import KEYS, load_settings


def test_the_command_line_wins_over_the_file_and_the_file_over_defaults(tmp_path: Path) -> None:
    file = tmp_path / "run.toml"
    file.write_text('[model]\nlora_rank = 8\nprompt = "brief"\n[grpo]\ncontexts = 16\n')
    settings = load_settings(file, ["grpo.contexts=4"])
    assert (settings.model.lora_rank, settings.model.prompt, settings.grpo.contexts) == (8, "brief", 4)
    assert settings.grpo.generations == 8  # the paper's


def test_keys_of_hl_are_passed_on_and_judged_there(tmp_path: Path) -> None:
    file = tmp_path / "run.toml"
    file.write_text(
        '[hl.solver]\nengine = "openai"\nmodel = "m"\nslots = 4\n[hl.solver.extra_body]\ntop_k = 5\n'
    )
    settings = load_settings(file, ["attempt.calls=3"])
    config = load_config(None, settings.hl)
    assert (config.solver.engine, config.solver.slots, config.attempt.calls) == ("openai", 4, 3)
    assert dict(config.solver.extra_body) == {"top_k": 5}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[grpo]\ncontext = 4\n", "did you mean 'grpo.contexts'"),
        ("[grop]\ncontexts = 4\n", r"did you mean \[grpo\]"),
        ("[grpo]\ngenerations = 1\n", "grpo.generations = 1: the value must lie between 2"),
        ('[model]\nprompt = "breif"\n', "did you mean 'brief'"),
        ("contexts = 4\n", "unknown section"),
        ("[hl]\nsolver = 3\n", "holds sections"),
        ("[grpo\n", "is not TOML"),
    ],
)
def test_a_wrong_file_is_refused_by_name(tmp_path: Path, text: str, told: str) -> None:
    file = tmp_path / "run.toml"
    file.write_text(text)
    with pytest.raises(UsageError, match=told):
        load_settings(file)


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no settings file"):
        load_settings(tmp_path / "none.toml")


def test_the_page_lists_every_key_with_its_mark() -> None:
    page = (Path(__file__).parents[2] / "docs" / "training.md").read_text()
    for name, key in KEYS.items():
        assert re.search(rf"^\| `{re.escape(name)}` \| .* \| {key.mark} \| ", page, re.M), name
