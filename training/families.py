"""Which tasks a part of training uses, and the proof that no cluster serves two parts."""

from collections.abc import Mapping

from hl.bench.choice import QA_ROLES, qa_tasks, reasoning_gym_tasks
from hl.bench.plan import BenchTask
from hl.errors import UsageError
from hl.tasks.base import locate
from hl.tasks.families import FAMILIES
from hl.tasks.tracks import UNSEEN, track
from training.settings import TaskSettings

QA = "qa:"
TRACK = "track"
"""Stands for the track's families of a role."""


def tasks_of(settings: TaskSettings, role: str) -> tuple[BenchTask, ...]:
    """The tasks of a role.

    Args:
        settings: `sft` or `rl` names families of reasoning-gym, whole tasks such as `jsonl:FILE` or
            `qa:hotpotqa?path=FILE`, or `track`.
        role: `sft` or `rl`.

    Raises:
        UsageError: An unknown track or family, or one that is named twice.
    """
    found: list[BenchTask] = []
    for name in getattr(settings, role):
        if name.startswith(QA):
            found += qa_tasks([name.removeprefix(QA)])
            continue
        if ":" in name and not name.startswith("reasoning-gym:"):
            # A task of the user's own is a cluster of its own.
            at = locate(name)
            found.append(BenchTask(at, at, at, role))
            continue
        families = None if name == TRACK else name.removeprefix("reasoning-gym:")
        found += reasoning_gym_tasks(settings.track, families, role, excluded=False, answers="canonical")
    names = [task.family for task in found]
    if twice := next((n for n in names if names.count(n) > 1), ""):
        raise UsageError(f"tasks.{role} names {twice} twice.", hint="name each family once")
    if not found:
        raise UsageError(f"tasks.{role} names no family.", hint="hl bench families")
    return tuple(found)


def check_clusters(settings: TaskSettings) -> None:
    """Refuse a cluster that serves two of: teacher's rows, reinforcement, tests of transfer. Data sets of questions are
    clusters too, and those on which the paper tests transfer are trained on by nobody.

    Raises:
        UsageError: One does; the message names it.
    """
    sft = {t.cluster: t.family for t in tasks_of(settings, "sft")}
    rl = {t.cluster: t.family for t in tasks_of(settings, "rl")}
    unseen = {FAMILIES[f].cluster: f for f in track(settings.track).unseen}
    unseen |= {name: name for name, use in QA_ROLES.items() if use == UNSEEN}
    for one, a, other, b in (
        ("tasks.sft", sft, "tasks.rl", rl),
        ("tasks.sft", sft, "the track's unseen families", unseen),
        ("tasks.rl", rl, "the track's unseen families", unseen),
    ):
        for cluster in sorted(a.keys() & b.keys()):
            raise UsageError(
                f"the cluster {cluster} is in {one} ({a[cluster]}) and in {other} ({b[cluster]}).",
                hint="hl bench families",
            )


def check_learnt(settings: TaskSettings, clusters: Mapping[str, str]) -> None:
    """Refuse rows of a cluster that reinforcement trains on or that tests transfer, wherever the rows come from.

    Args:
        settings: Of the run.
        clusters: Cluster -> a family of the rows.

    Raises:
        UsageError: There is one; the message names it.
    """
    held = {t.cluster: "tasks.rl" for t in tasks_of(settings, "rl")}
    held |= {FAMILIES[f].cluster: "the track's unseen families" for f in track(settings.track).unseen}
    for cluster in sorted(clusters.keys() & held.keys()):
        raise UsageError(
            f"rows of {clusters[cluster]} cannot be learnt: its cluster {cluster} is in {held[cluster]}.",
            hint="tasks.track=paper or tiny, as the rows were made",
        )
