"""Recipes: every value says where it comes from, and families of questions over a corpus can be trained on."""

import json
import re
from pathlib import Path

import pytest

from hl.errors import UsageError
from tests.training.kit import judging
from training.families import check_clusters, tasks_of
from training.settings import RECIPES, load_settings, recipes
from training.shapes import KNOWN_SHAPES, shape_of

QUESTIONS = [
    {
        "_id": str(n),
        "question": f"Who made thing {n}?",
        "answer": f"maker {n}",
        "context": [[f"Thing {n}", [f"Thing {n} was made by maker {n}."]], [f"Maker {n}", ["A maker."]]],
        "supporting_facts": [[f"Thing {n}", 0]],
    }
    for n in range(40)
]


@pytest.mark.parametrize("name", recipes())
def test_every_value_of_a_recipe_is_marked(name: str) -> None:
    lines = (RECIPES / f"{name}.toml").read_text().splitlines()
    for number, line in enumerate(lines):
        if re.match(r"[a-z_]+ = ", line):
            # A long value has its mark in the comment before it.
            told = line.partition("#")[2] or "".join(lines[max(0, number - 2) : number])
            assert re.search(r"\b(paper|second-hand|ours)\b", told, re.IGNORECASE), line
    settings = load_settings(Path(name))
    assert settings.grpo.contexts == 640 and settings.grpo.contexts_per_update == 40
    assert settings.grpo.learning_rate == 1e-6 and settings.grpo.generations == 8
    assert settings.model.chat_template_kwargs == {"enable_thinking": False}
    assert settings.model.base in KNOWN_SHAPES and f"solver.model={settings.model.base}" in settings.hl
    assert settings.grpo.beta == (0.0 if name.startswith("reasoning") else 1e-3)
    check_clusters(settings.tasks)
    if name.startswith("hotpotqa"):
        assert [(t.name, t.cluster) for t in tasks_of(settings.tasks, "rl")] == [("qa:hotpotqa", "hotpotqa")]
    else:
        assert len(tasks_of(settings.tasks, "rl")) == 5


def test_the_targets_of_qwen_3_5_are_its_language_model_alone() -> None:
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    with torch.device("meta"):
        config = transformers.AutoConfig.for_model("qwen3_5")
        config.text_config.num_hidden_layers, config.vision_config.depth = 4, 2
        config.text_config.layer_types = config.text_config.layer_types[:4]
        whole = transformers.AutoModelForImageTextToText.from_config(config)
    wanted = load_settings(Path("reasoning-qwen3.5-4b")).model.lora_targets
    found = [name for name, _ in whole.named_modules() if re.fullmatch(wanted, name)]
    kinds = {name.rpartition(".")[2] for name in found}
    assert kinds == {
        *("in_proj_qkv", "in_proj_z", "out_proj", "q_proj", "k_proj", "v_proj", "o_proj"),
        *("gate_proj", "up_proj", "down_proj"),
    }
    assert len(found) == 3 * 3 + 4 + 4 * 3 and all("language_model" in name for name in found)


def test_a_base_in_a_folder_has_the_size_that_its_files_say(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    from tests.training.tiny import write_tiny

    folder = write_tiny(tmp_path / "tiny")
    shape = shape_of(str(folder))
    assert shape is not None
    assert (shape.layers, shape.width, shape.vocabulary) == (2, 32, 11)
    assert shape.weights == 2 * 11 * 32 + 2 * (4 * 32 * 32 + 3 * 32 * 64 + 2 * 32) + 32
    assert shape_of(str(tmp_path)) is None


def test_questions_over_a_corpus_are_revised_and_judged(tmp_path: Path) -> None:
    (tmp_path / "hotpot.json").write_text(json.dumps(QUESTIONS))
    rules = {"rules": [{"when": "", "replies": ["maker 1"]}], "log": "solver.log"}
    (tmp_path / "solver.json").write_text(json.dumps(rules))
    settings = load_settings(
        None,
        [
            f"tasks.rl=['qa:hotpotqa?path={tmp_path / 'hotpot.json'}']",
            "tasks.seed=retrieval",
            "tasks.feedback=2",
            "tasks.scoring=4",
            "solver.engine=scripted",
            f"solver.path={tmp_path / 'solver.json'}",
        ],
    )
    (task,) = tasks_of(settings.tasks, "rl")
    assert task.family == task.cluster == "hotpotqa" and task.role == "rl"
    with judging(tmp_path / "run", settings, contexts=2) as (_, _, _, contexts):
        assert [c.family for c in contexts] == ["hotpotqa"] * 2
        assert contexts[0].scoring != contexts[1].scoring
        assert "Thing" in str(contexts[0].report)


def test_a_file_may_say_that_no_server_samples_and_not_that_nothing_is_trained_on(tmp_path: Path) -> None:
    (tmp_path / "run.toml").write_text("[grpo]\nserver = []\n")
    assert load_settings(tmp_path / "run.toml").grpo.server == ()
    with pytest.raises(UsageError, match=r"tasks.rl .*must not be empty"):
        load_settings(None, ["tasks.rl=[]"])


@pytest.mark.parametrize("name", ["qa:musique", "qa:2wiki"])
def test_nobody_trains_on_the_data_sets_that_test_transfer(name: str) -> None:
    with pytest.raises(UsageError, match=r"is in tasks.rl .* and in the track's unseen families"):
        check_clusters(load_settings(None, [f"tasks.rl=['{name}']"]).tasks)
