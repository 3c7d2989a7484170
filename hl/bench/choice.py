"""Command line -> the tasks of a run, and how much of everything a track or dataset takes by default (ours)."""

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import quote

from hl.bench.plan import BenchTask, choose
from hl.config import Config
from hl.errors import UsageError
from hl.tasks.base import PATH_CHARACTERS, locate, open_task
from hl.tasks.families import FAMILIES
from hl.tasks.tracks import NEAR, RL, ROLES, SFT, UNSEEN, Track, track

TINY_FAMILIES = 5
"""Unseen families of the tiny track that a run takes if none are named: what two cores do in 45 minutes."""
QA_ROLES = {"tiny": "", "hotpotqa": RL, "musique": UNSEEN, "2wiki": UNSEEN}
"""What the paper uses a data set for; each is a cluster of its own."""
DATASETS = tuple(QA_ROLES)
FORMATS = ("canonical", "varied", "both")
REPORTS = ("full", "shuffled", "none")


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much a run takes where nothing else is said."""

    contexts: int
    feedback: int
    scoring: int
    evaluation: int


SMALL = Sizes(contexts=1, feedback=8, scoring=16, evaluation=32)
FULL = Sizes(contexts=4, feedback=16, scoring=32, evaluation=128)


def sizes_of(name: str) -> Sizes:
    """Of a track, or of datasets joined by `-`."""
    return SMALL if name == "tiny" else FULL


def pick(given: int | None, config: Config, key: str, default: int) -> int:
    """A size: the option, else what the user configured, else the track's."""
    if given is not None:
        return given
    value = config.get(f"round.{key}")
    chosen = config.origins[f"round.{key}"].kind != "default"
    return int(value) if chosen and isinstance(value, int) else default


def reasoning_gym_tasks(
    track_name: str, families: str, roles: str, *, excluded: bool, answers: str
) -> tuple[BenchTask, ...]:
    """The families of a run.

    Args:
        track_name: `tiny` or `paper`.
        families: Names joined by commas, with parameters if wanted; empty for the track's.
        roles: Roles joined by commas; empty for unseen (tiny) or unseen and rl (paper).
        excluded: The track's excluded families instead.
        answers: `canonical`, `varied` or `both`.

    Raises:
        UsageError: An unknown track, family or role, or nothing is left.
    """
    split = track(track_name)
    choose(answers, FORMATS, "a --format", "hl bench reasoning-gym --help")
    if families:
        names = _listed(families, "--families")
        for name in names:
            choose(name.partition("?")[0], tuple(FAMILIES), "a reasoning-gym family", "hl bench families")
    else:
        names = _of_track(split, roles, excluded=excluded)
    tasks = [_task(split, name) for name in names]
    varied = [_task(split, f"{name}{'&' if '?' in name else '?'}answer_format=varied") for name in names]
    return tuple({"canonical": tasks, "varied": varied, "both": [*tasks, *varied]}[answers])


def _of_track(split: Track, roles: str, *, excluded: bool) -> tuple[str, ...]:
    if excluded:
        return tuple(f for f in split.excluded if FAMILIES[f].status != "refused")
    if not roles:
        return split.unseen[:TINY_FAMILIES] if split.name == "tiny" else (*split.unseen, *split.rl)
    by_role = {SFT: split.sft, RL: split.rl, UNSEEN: split.unseen, NEAR: split.near}
    wanted = [choose(r, ROLES[:4], "a role", "hl bench families") for r in _listed(roles, "--roles")]
    found = tuple(family for role in wanted for family in by_role[role])
    if not found:
        raise UsageError(
            f"--roles {roles}: the track {split.name} has no such family.", hint="hl bench families"
        )
    return found


def _task(split: Track, name: str) -> BenchTask:
    family, _, params = name.partition("?")
    label = family if "answer_format=varied" not in params else f"{family} (varied)"
    return BenchTask(f"reasoning-gym:{name}", label, FAMILIES[family].cluster, split.role(family))


def qa_tasks(datasets: Sequence[str]) -> tuple[BenchTask, ...]:
    """The tasks of data sets: HotpotQA is what proposers train on, the other published ones are unseen (paper).

    Args:
        datasets: `NAME`, `NAME=PATH`, and after either `?key=value&...` as `hl init --task qa:NAME?...` takes them.

    Raises:
        UsageError: There is no such data set, or it has no such parameter.
    """
    return tuple(_dataset(text) for text in datasets)


def _dataset(text: str) -> BenchTask:
    head, _, params = text.partition("?")
    name, equals, path = head.partition("=")
    choose(name, DATASETS, "a dataset", "hl bench qa --help")
    given = [f"path={quote(path, safe=PATH_CHARACTERS)}"] if equals else []
    given += [params] if params else []
    task = locate(f"qa:{name}?{'&'.join(given)}" if given else f"qa:{name}")
    open_task(task)
    return BenchTask(task, name, name, QA_ROLES[name])


def _listed(text: str, option: str) -> tuple[str, ...]:
    names = tuple(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))
    if not names:
        raise UsageError(f"{option} {text!r}: no name is left.", hint="hl bench families")
    return names


def listed(text: str, known: Sequence[str], what: str) -> tuple[str, ...]:
    """Names joined by commas, each of them known; none for the empty text.

    Raises:
        UsageError: One is not; with the nearest.
    """
    names = dict.fromkeys(part.strip() for part in text.split(",") if part.strip())
    return tuple(choose(name, known, what, "hl init --help") for name in names)
