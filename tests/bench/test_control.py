"""Whose report the control `--report shuffled` gives."""

import pytest

from hl.bench.choice import reasoning_gym_tasks
from hl.bench.control import donor_of
from hl.bench.models import Model
from hl.bench.plan import BenchTask, Plan, Settings, check
from hl.errors import UsageError

TASKS = (
    BenchTask("reasoning-gym:gcd", "gcd", "number theory"),
    BenchTask("reasoning-gym:lcm", "lcm", "number theory"),
    BenchTask("reasoning-gym:maze", "maze", "grids"),
    BenchTask("reasoning-gym:gcd?answer_format=varied", "gcd (varied)", "number theory"),
)


def test_the_report_is_of_another_cluster() -> None:
    assert [donor_of(task, TASKS).family for task in TASKS] == ["maze", "maze", "gcd (varied)", "maze"]


def test_within_one_cluster_it_is_of_another_family_and_never_of_its_own_in_another_form() -> None:
    one = tuple(t for t in TASKS if t.cluster == "number theory")
    assert [donor_of(task, one).family for task in one] == ["lcm", "gcd (varied)", "lcm"]


def test_a_family_and_its_varied_questions_alone_are_refused() -> None:
    tasks = reasoning_gym_tasks("tiny", "gcd", "", excluded=False, answers="both")
    settings = Settings(contexts=1, proposals=1, feedback=1, scoring=1, evaluation=1, report="shuffled")
    plan = Plan("reasoning-gym", tasks, (Model("s", "llamacpp"),), (Model("p", "catalog"),), settings)
    with pytest.raises(UsageError, match="there is only one"):
        check(plan)
