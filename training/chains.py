"""Multi-step training: chains that the current policy rolls, and the states they reach as new contexts.

A chain is rounds as `hl revise` runs them, in an ordinary repository under `chains/<phase>/<slug>/`: its ledger says
how each state was reached. Every example of training stays one revision of one context, so that the eight replies of a
group share what they revise.
"""

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from hl.new import create
from hl.rounds import ChainState, Stops, run_chain
from hl.rounds import Rooms as RoundRooms
from hl.tasks.base import Generated
from hl.tasks.questions import load_sets
from hl.types import Decision, Harness, HistoryEntry, Proposer, Round
from hl.workspace import QUESTIONS, Workspace
from training.background import together
from training.rooms import Room, Rooms, overrides
from training.settings import Settings

CHAINS = "chains"


@dataclass(frozen=True, slots=True)
class Reached:
    """A state of a chain that was accepted: a parent for training."""

    task: str
    harness: Harness
    round: int
    """Rounds between the seed and this harness, plus one."""
    history: tuple[HistoryEntry, ...]
    """The chain's edits so far."""


async def roll(
    out: Path,
    settings: Settings,
    rooms: Rooms,
    proposer: Proposer,
    phase: int,
    on_round: Callable[[Round], None] = lambda done: None,
) -> tuple[Reached, ...]:
    """One chain a task with the policy as it is.

    Args:
        out: The run's directory.
        settings: Of the run.
        rooms: Where candidates run.
        proposer: The policy.
        phase: Which part of the run begins after this, from 1.
        on_round: Told of every round.

    Returns:
        The accepted states, task by task, in the order in which they were reached.

    Raises:
        StoppedEarly: A run limit was reached; what was measured is kept.
        EngineError: Solver or policy stays down; likewise.
    """

    chains = await together(
        [_chain(out, settings, rooms, room, proposer, phase, on_round) for room in rooms.by_task.values()]
    )
    return tuple(state for chain in chains for state in chain)


async def _chain(
    out: Path,
    settings: Settings,
    rooms: Rooms,
    room: Room,
    proposer: Proposer,
    phase: int,
    on_round: Callable[[Round], None],
) -> tuple[Reached, ...]:
    workspace = _repository(out, settings, room, phase)
    evaluator = workspace.evaluator_on(rooms.machines)
    book = workspace.book()
    found: list[Reached] = []

    def told(done: Round) -> None:
        on_round(done)
        if done.verdict.decision is Decision.ACCEPTED and done.verdict.winner is not None:
            harness = done.candidates[done.verdict.winner].proposal.candidate
            assert harness is not None  # only scored candidates win
            history = tuple(book.history(evaluator.identity))
            found.append(Reached(room.task.name, harness, done.number + 1, history))

    parts = RoundRooms(
        task=workspace.spec,
        sets=workspace.sets,
        evaluator=evaluator,
        proposer=proposer,
        meter=rooms.machines.meter,
        settings=workspace.round_settings(),
    )
    with workspace.ledger.lock():
        await run_chain(book, parts, Stops(settings.grpo.chain_rounds), ChainState(), on_round=told)
    return tuple(found)


def _repository(out: Path, settings: Settings, room: Room, phase: int) -> Workspace:
    """A fresh chain, on the task's own questions. A chain that was interrupted begins anew, from recorded replies."""
    place = out / CHAINS / str(phase) / room.task.slug
    shutil.rmtree(place, ignore_errors=True)
    chosen = overrides(settings, 1)
    manifest, sets = load_sets(room.workspace.root / QUESTIONS)
    made = create(
        place,
        room.task.name,
        seed=settings.tasks.seed,
        overrides=chosen,
        generated=Generated(
            sets, manifest.distinct, manifest.drawn, manifest.exhausted, manifest.note, manifest.files
        ),
        branch=f"chain-{phase}",
    )
    return Workspace.open(made.workspace.root, [*chosen, f"task.name={room.task.name}"])
