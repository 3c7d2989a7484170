"""A teacher at work: settings -> a single-step bench run, whose repositories the rows are read from.

One way through: the run is `hl bench`'s own, so that a teacher's revisions are made, applied, scored and measured on
held-out questions by the rooms that score everything else, and go on after a kill.
"""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from hl.bench.folder import open_folder
from hl.bench.models import Model, parse_model
from hl.bench.models import configured as configured_model
from hl.bench.plan import Plan, cells
from hl.bench.plan import Settings as Sizes
from hl.bench.repositories import CELLS
from hl.bench.run import run
from hl.bench.watch import Watch
from hl.config import load_config
from hl.ledger import Ledger
from hl.new import load_seed, seed_names
from hl.solver import RunLimits
from hl.workspace import Switches
from training.families import check_clusters, tasks_of
from training.mining import Place
from training.settings import Settings

RUN = "run"
"""Folder of the bench run in a data set."""


def plan_of(settings: Settings) -> Plan:
    """The bench run that a teacher's revisions come from.

    Raises:
        UsageError: A family, seed or teacher is unknown, or a cluster serves two parts of training.
    """
    check_clusters(settings.tasks)
    t, d = settings.tasks, settings.data
    load_seed(t.seed)
    overrides = (*settings.hl, f"task.grade={t.grade}")
    config = load_config(None, overrides)
    return Plan(
        "reasoning-gym",
        tasks_of(t, "sft"),
        (configured_model(config, "solver"),),
        tuple(_teacher(text, settings) for text in d.teacher),
        Sizes(
            contexts=d.contexts,
            proposals=d.proposals,
            feedback=t.feedback,
            scoring=t.scoring,
            evaluation=t.fresh,
            seed=t.seed if t.seed in seed_names() else str(Path(t.seed).resolve()),
            again=False,
        ),
        overrides,
    )


def _teacher(text: str, settings: Settings) -> Model:
    """The catalog writes replies that the student has room for; a model's replies are cut down to their edits later."""
    model = parse_model(text, "proposer")
    if model.engine != "catalog" or any(o.startswith("proposer.max_tokens=") for o in model.overrides):
        return model
    return replace(model, overrides=(*model.overrides, f"proposer.max_tokens={settings.model.reply_tokens}"))


async def teach(
    plan: Plan, out: Path, command: str, limits: RunLimits, switches: Switches, watch: Watch
) -> None:
    """Carry out what is left of the teacher's run.

    Raises:
        StoppedEarly: A run limit was reached; what was measured is kept.
        EngineError: An engine stays down; likewise.
        UsageError: `out` holds another run.
    """
    from hl.sandbox.host import find_tier

    tier = await find_tier(unsafe=switches.unsafe)
    with open_folder(plan, out / RUN, tier, command, watch):
        await run(plan, out / RUN, limits, switches, watch)


def places(plan: Plan, out: Path) -> Iterator[Place]:
    """The repositories of the run that have come to their round."""
    for cell in cells(plan):
        root = out / RUN / CELLS / cell.name
        if (root / ".git").exists() and Ledger.open(root).round_refs():
            yield Place(root, cell.proposer.label, cell.block - 1, cell.task)
