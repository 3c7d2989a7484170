"""What a run is: its models, cells, cost, identity, and what is refused before anything is written."""

from dataclasses import replace
from pathlib import Path

import pytest

from hl.bench.choice import TINY_FAMILIES, reasoning_gym_tasks
from hl.bench.manifest import difference
from hl.bench.models import Model, configured, identify, parse_model
from hl.bench.plan import BenchTask, Plan, Settings, attempts, cell_count, cells, check, proposer_calls
from hl.config import load_config
from hl.engines.scripted import ScriptedEngine
from hl.errors import UsageError
from hl.tasks.tracks import TINY

TASKS = (BenchTask("reasoning-gym:gcd", "gcd", "n"), BenchTask("reasoning-gym:maze?min_dist=5", "maze", "g"))


def plan(**values: int | str | tuple[str, ...]) -> Plan:
    settings = {"contexts": 2, "proposals": 4, "feedback": 3, "scoring": 5, "evaluation": 7, **values}
    return Plan(
        "reasoning-gym",
        TASKS,
        (Model("s", "llamacpp"),),
        (Model("catalog", "catalog"),),
        Settings(**settings),  # pyright: ignore[reportArgumentType]
    )


def test_a_model_is_an_engine_with_its_keys(tmp_path: Path) -> None:
    script = tmp_path / "replies.json"
    script.write_text("{}")
    assert parse_model("catalog", "proposer") == Model(
        "catalog",
        "catalog",
        (
            "proposer.engine=catalog",
            "proposer.model=",
            "proposer.base_url=",
            "proposer.path=",
            "proposer.adapter=",
            "proposer.api_key_env=",
        ),
    )
    sft = parse_model("sft=openai:qwen-sft@http://h:1/v1?temperature=0.8", "proposer")
    assert sft.label == "sft"
    assert "proposer.model=qwen-sft" in sft.overrides and "proposer.base_url=http://h:1/v1" in sft.overrides
    assert "proposer.temperature=0.8" in sft.overrides
    assert f"solver.path={script}" in parse_model(f"s=scripted:{script}", "solver").overrides
    assert "solver.model=smollm2" in parse_model("small=llamacpp:smollm2", "solver").overrides
    tuned = parse_model("rl=hf:smollm2?adapter=runs/rl", "proposer").overrides
    assert f"solver.path={tmp_path}" in parse_model(f"base=hf:{tmp_path}", "solver").overrides
    assert f"proposer.adapter={Path('runs/rl').resolve()}" in tuned  # cells lie elsewhere
    assert configured(load_config(None), "solver").label == "llamacpp-smollm2"
    own = load_config(None, ["proposer.engine=hf", "proposer.model=smollm2", "proposer.adapter=runs/rl"])
    assert configured(own, "proposer").label == "hf-smollm2-rl"
    assert configured(load_config(None), "proposer").label == "catalog"


def test_two_servers_of_one_model_name_are_refused() -> None:
    """A cached reply is known by model name and host: the two columns would be one."""
    one, two, other = (
        parse_model(f"{label}=openai:{model}@http://127.0.0.1:{port}/v1", "proposer")
        for label, model, port in (("base", "qwen", 8000), ("sft", "qwen", 8001), ("rl", "qwen-rl", 8001))
    )
    with pytest.raises(UsageError, match="base and sft are one model name on two servers"):
        check(replace(plan(), proposers=(one, two)))
    check(replace(plan(), proposers=(one, other)))
    again = parse_model("again=catalog", "proposer")
    check(replace(plan(), proposers=(parse_model("catalog", "proposer"), again)))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a/b=llamacpp:m", "'a/b' is not a name"),
        ("x=catalog", "'catalog' is not an engine"),
        ("x=llamacp:m", "did you mean 'llamacpp'?"),
        ("x=llamacpp", "needs a model"),
        ("x=scripted:nowhere.json", "no file 'nowhere.json'"),
        ("x=openai:m", "needs an address"),
        ("x=openai:m@http://h/v1?colour=red", "no key solver.colour"),
        ("x=openai:m@http://h/v1?temperatur=1", "did you mean 'temperature'?"),
        ("x=openai:m@http://h/v1?red", "not key=value"),
    ],
)
def test_a_model_that_is_none_is_named(text: str, says: str) -> None:
    with pytest.raises(UsageError, match=".*".join(says.split("*"))) as raised:
        parse_model(text, "solver")
    assert text in raised.value.message


@pytest.mark.parametrize(
    "text",
    [
        "x=openai:m@http://ada:geheim@h/v1",
        "x=openai:m@http://h/v1?base_url=http://ada:geheim@h/v1",
        "x=openai:m@http://h/v1?base_url=http%3A%2F%2Fada:geheim@h/v1",
    ],
)
def test_a_password_is_refused_and_not_repeated(text: str) -> None:
    with pytest.raises(UsageError, match="user") as raised:
        parse_model(text, "solver")
    assert "geheim" not in str(raised.value) and "api_key_env" in str(raised.value.hint)


def test_a_model_is_identified_as_scores_name_it(tmp_path: Path) -> None:
    script = tmp_path / "replies.json"
    script.write_text('{"default": "4"}')

    def identity() -> dict[str, str]:
        return identify(load_config(None, parse_model(f"s=scripted:{script}", "solver").overrides), "solver")

    before = identity()
    assert before == {"name": "scripted", "digest": ScriptedEngine.from_file(script).digest}
    script.write_text('{"default": "5"}')
    assert identity() != before
    script.write_text("a poem")
    with pytest.raises(UsageError, match="is not a rules file"):
        identity()
    with pytest.raises(UsageError, match="did you mean 'smollm2'"):
        identify(load_config(None, ["solver.model=smolm2"]), "solver")
    assert identify(load_config(None), "proposer") == {"name": "catalog 1"}


def test_cells_have_names_of_their_own_and_baselines_once() -> None:
    single = list(cells(plan()))
    assert [c.name for c in single] == ["gcd-1", "gcd-2", "maze-min_dist-5-1", "maze-min_dist-5-2"]
    assert [c.baselines for c in single] == [True, False, True, False]
    chains = [c.name for c in cells(plan(rounds=3, chains=2, independent=9)) if c.task.family == "gcd"]
    assert chains == ["gcd-chain-1", "gcd-chain-2", "gcd-independent"]


def test_cost_by_hand() -> None:
    # A cell: feedback 3, scoring 5 x (1 + 4), evaluation 7 x (1 + 4), A/A 2 x 7.
    assert attempts(plan()) == 4 * (3 + 25 + 35 + 14)
    # Two baselines on 7 questions, once a task.
    assert attempts(plan(baselines=("cot", "react"))) == 4 * 77 + 2 * 14
    # A chain: 3 rounds of 28, evaluation of seed and 12 candidates, A/A; independent: one round of 9.
    assert attempts(plan(rounds=3, chains=1, independent=9)) == 2 * (3 * 28 + 7 * 13 + 14 + 3 + 50 + 70)
    assert proposer_calls(plan()) == 0
    for p in (plan(), plan(rounds=3, chains=2, independent=9), plan(rounds=3, chains=2)):
        assert cell_count(p) == len(list(cells(p)))
    llm = replace(plan(rounds=3, chains=2, independent=9), proposers=(Model("p", "openai"),))
    assert proposer_calls(llm) == 2 * (2 * 3 * 4 + 9)


def test_tracks_give_the_families() -> None:
    def names(**values: str | bool | None) -> list[str]:
        given = {
            "track_name": "tiny",
            "families": None,
            "roles": None,
            "excluded": False,
            "answers": "canonical",
        }
        return [t.name for t in reasoning_gym_tasks(**{**given, **values})]  # pyright: ignore[reportArgumentType]

    assert names() == [f"reasoning-gym:{f}" for f in TINY.unseen[:TINY_FAMILIES]]
    assert len(names(track_name="paper")) == 26
    assert names(families="gcd, lcm,gcd") == ["reasoning-gym:gcd", "reasoning-gym:lcm"]
    assert names(families="gcd", answers="both") == [
        "reasoning-gym:gcd",
        "reasoning-gym:gcd?answer_format=varied",
    ]
    assert len(names(track_name="paper", excluded=True)) == 5
    assert {
        t.role for t in reasoning_gym_tasks("tiny", None, "near", excluded=False, answers="canonical")
    } == {"near"}
    with pytest.raises(UsageError, match="did you mean 'gcd'"):
        names(families="gdc")
    with pytest.raises(UsageError, match="no name is left"):
        names(families=" , ")
    with pytest.raises(UsageError, match="no name is left"):
        names(roles="")


def test_what_cannot_be_run_is_refused() -> None:
    twice = Plan("qa", TASKS, (Model("s", "openai"),) * 2, (Model("p", "openai"),), plan().settings)
    with pytest.raises(UsageError, match="two models are called 's'"):
        check(twice)
    gcd = BenchTask("reasoning-gym:gcd?max_value=5", "gcd", "n")
    with pytest.raises(UsageError, match="'gcd' is given twice with other parameters"):
        check(replace(plan(), tasks=(*TASKS, gcd)))
    alone = Plan(
        "qa", TASKS[:1], (Model("s", "openai"),), (Model("p", "openai"),), plan(report="shuffled").settings
    )
    with pytest.raises(UsageError, match="there is only one"):
        check(alone)


def test_runs_differ_in_what_makes_them_and_not_in_how_they_began() -> None:
    here = {"settings": {"evaluation": 32}, "tasks": [{"name": "a", "family": "f"}]}
    assert difference({**here, "command": "a", "started": "1"}, here) == ""
    other = {**here, "settings": {"evaluation": 64}}
    assert difference(here, other) == "settings.evaluation is 32 there and 64 here"
    # Of a list, the first place that differs, however long the list.
    other = {**here, "tasks": [*here["tasks"], {"name": "b", "family": "f"}]}
    assert difference(here, other) == 'tasks.2 is null there and {"name": "b", "family": "f"} here'
    other = {**here, "tasks": [{"name": "b", "family": "f"}]}
    assert difference(here, other) == 'tasks.1.name is "a" there and "b" here'
