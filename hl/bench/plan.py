"""What a bench run is: tasks, models, protocol and sizes; its cells; and what it would cost at most."""

import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from hl.bench.models import Model
from hl.bench.rows import CHAIN, INDEPENDENT, SINGLE
from hl.errors import UsageError
from hl.tasks.base import nearest

GUESSED_TOKENS = 512
"""Tokens of one attempt, where nothing was measured (as `hl revise --dry-run` guesses)."""
SLUG_CHARS = 60


@dataclass(frozen=True, slots=True)
class BenchTask:
    """A task of the run."""

    name: str
    """As `hl init --task` takes it."""
    family: str
    cluster: str
    role: str = ""
    """On the track; empty off it."""

    @property
    def plain(self) -> str:
        """The name without parameters, which a family has in common with its format-varied questions."""
        return self.name.partition("?")[0]

    @property
    def slug(self) -> str:
        """A folder's name; parameters that are long, such as paths, become a digest."""
        kept = self.name.removeprefix("reasoning-gym:")
        if len(kept) > SLUG_CHARS:
            digest = hashlib.sha256(kept.encode()).hexdigest()[:8]
            kept = f"{kept.partition('?')[0][:SLUG_CHARS]}-{digest}"
        return re.sub(r"[^A-Za-z0-9._-]+", "-", kept).strip("-.")


@dataclass(frozen=True, slots=True)
class Settings:
    """How much of what. Everything here is part of the run's identity."""

    contexts: int
    """Contexts a task: the same seed with other feedback and scoring questions."""
    proposals: int
    """K."""
    feedback: int
    scoring: int
    evaluation: int
    seed: str = "minimal"
    """The harness that is revised."""
    select: str = "improve"
    """Who becomes the head of a chain."""
    rounds: int = 0
    """Of a chain; 0 is the single-step protocol."""
    chains: int = 0
    independent: int = 0
    """Independent proposals on the seed, next to the chains."""
    report: str = "full"
    """`full`, `shuffled` or `none`: what the proposer is told."""
    baselines: tuple[str, ...] = ()
    """Hand-made seed harnesses that are measured too."""
    again: bool = True
    """Whether seed and winner of a single step, or last head of a chain, are measured twice (A/A)."""


@dataclass(frozen=True, slots=True)
class Plan:
    """One bench run."""

    benchmark: str
    """`reasoning-gym` or `qa`."""
    tasks: tuple[BenchTask, ...]
    solvers: tuple[Model, ...]
    proposers: tuple[Model, ...]
    settings: Settings
    overrides: tuple[str, ...] = ()
    """`-c` texts, for every cell."""


@dataclass(frozen=True, slots=True)
class CellPlan:
    """One repository of the run."""

    name: str
    protocol: str
    task: BenchTask
    solver: Model
    proposer: Model
    block: int
    """Number of the context or chain, from 1."""
    baselines: bool
    """Whether the hand-made harnesses are measured here: once a task and solver."""


def cells(plan: Plan) -> Iterator[CellPlan]:
    """Every cell, task by task, so that a run that is stopped has whole tasks."""
    s = plan.settings
    blocks = [(SINGLE, n + 1, str(n + 1)) for n in range(s.contexts)]
    if s.rounds:
        blocks = [(CHAIN, n + 1, f"chain-{n + 1}") for n in range(s.chains)]
        blocks += [(INDEPENDENT, 1, INDEPENDENT)] if s.independent else []
    several = len(plan.solvers) * len(plan.proposers) > 1
    for task in plan.tasks:
        for solver in plan.solvers:
            for proposer in plan.proposers:
                for place, (protocol, block, suffix) in enumerate(blocks):
                    arm = f"-{solver.label}-{proposer.label}" if several else ""
                    first = place == 0 and proposer is plan.proposers[0]
                    yield CellPlan(
                        f"{task.slug}{arm}-{suffix}", protocol, task, solver, proposer, block, first
                    )


def cell_count(plan: Plan) -> int:
    """How many cells there are; by arithmetic, as all that is counted here."""
    return _arms(plan) * sum(count for _, count in _kinds(plan.settings))


def attempts(plan: Plan) -> int:
    """Upper bound of harness runs: duplicates, failed edits and repeated questions cost nothing."""
    s = plan.settings
    total = len(plan.tasks) * len(plan.solvers) * len(s.baselines) * s.evaluation
    for protocol, count in _kinds(s):
        k = s.independent if protocol == INDEPENDENT else s.proposals
        rounds = s.rounds if protocol == CHAIN else 1
        each = rounds * (s.feedback + s.scoring * (1 + k)) + s.evaluation * (1 + rounds * k)
        each += 2 * s.evaluation if s.again and protocol != INDEPENDENT else 0
        each += s.feedback if s.report == "shuffled" else 0
        total += _arms(plan) * count * each
    return total


def proposer_calls(plan: Plan) -> int:
    """Replies asked of proposers that are models."""
    s = plan.settings
    asked = sum(p.engine != "catalog" for p in plan.proposers)
    total = 0
    for protocol, count in _kinds(s):
        k = s.independent if protocol == INDEPENDENT else s.proposals
        total += count * k * (s.rounds if protocol == CHAIN else 1)
    return len(plan.tasks) * len(plan.solvers) * asked * total


def _arms(plan: Plan) -> int:
    return len(plan.tasks) * len(plan.solvers) * len(plan.proposers)


def _kinds(s: Settings) -> list[tuple[str, int]]:
    """(protocol, cells of it an arm)."""
    return [(CHAIN, s.chains), (INDEPENDENT, min(s.independent, 1))] if s.rounds else [(SINGLE, s.contexts)]


def check(plan: Plan) -> None:
    """Refuse what cannot be run.

    Raises:
        UsageError: Two models of one name, two tasks of one folder, or a control that needs more than there is.
    """
    for what, models in (("--solver", plan.solvers), ("--proposer", plan.proposers)):
        labels = [m.label for m in models]
        if len(set(labels)) < len(labels):
            raise UsageError(f"{what}: two models are called {_repeated(labels)}.", hint=f"{what} NAME=SPEC")
        servers: dict[tuple[str, ...], Model] = {}
        for m in models:
            # A cached reply is known by the model's name and its host: two servers of one name would share replies.
            rest = tuple(o for o in m.overrides if not o.split(".", 1)[1].startswith("base_url="))
            other = servers.setdefault(rest, m)
            if other.overrides != m.overrides:
                raise UsageError(
                    f"{what}: {other.label} and {m.label} are one model name on two servers, and cannot be told apart.",
                    hint="serve them under different names: vllm serve --served-model-name NAME",
                )
    slugs = [t.slug for t in plan.tasks]
    if len(set(slugs)) < len(slugs):
        raise UsageError(f"the task {_repeated(slugs)} is given twice.", hint="name each task once")
    families = [t.family for t in plan.tasks]
    if len(set(families)) < len(families):
        raise UsageError(
            f"{_repeated(families)} is given twice with other parameters, and a run takes a family once.",
            hint="a run of its own for each: --out DIR",
        )
    if plan.settings.report == "shuffled" and len({t.plain for t in plan.tasks}) < 2:
        raise UsageError(
            "--report shuffled gives a task the report of another family, and there is only one.",
            hint="--report none, or a second family",
        )


def choose(name: str, known: Sequence[str], what: str, hint: str) -> str:
    """The name, if it is known.

    Raises:
        UsageError: It is not; with the nearest that is.
    """
    if name in known:
        return name
    meant = nearest(name, known) or f"; there are {', '.join(known)}."
    raise UsageError(f"{name!r} is not {what}{meant}", hint=hint)


def _repeated(names: Sequence[str]) -> str:
    return next(repr(n) for n in names if list(names).count(n) > 1)
