"""The schedule of a run as it grows: seeds first, and in multi-step training the states that the policy reached.

Every process calls `reach` at the same place; one of them makes what is missing, and all read it.
"""

import hashlib
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from hl.proposer.llm import LlmProposer
from hl.solver import MeteredEngine
from training import gate, processes
from training.background import Background
from training.chains import Reached, roll
from training.models import Draw, Trainee
from training.policy import Policy
from training.pool import Place, make_contexts, mix, seed_blocks
from training.rooms import Rooms
from training.schedule import Schedule
from training.settings import Settings

Opening = Callable[[], AbstractContextManager[tuple[Any, Draw]]]
"""Opens the policy as it is now: its model, and what draws its replies."""


class Phases:
    """What stands where, made when it is first asked for.

    Args:
        settings: Of the run.
        out: Its directory.
        trainee: Tokenizer and prompts.
        background: Where rooms live.
        rooms: Where parents are measured and chains rolled.
        seeds: Where seeds stand, for every context of the run.
        ends: How many contexts are met by the end of each phase.
        tell: Told of progress.
        batch: Requests that chains make of the policy together.
    """

    def __init__(
        self,
        settings: Settings,
        out: Path,
        trainee: Trainee,
        background: Background,
        rooms: Rooms,
        seeds: Sequence[Place],
        ends: Sequence[int],
        tell: Callable[[str, int, int], None],
        *,
        batch: int,
    ) -> None:
        self._batch = batch
        self.schedule = Schedule(out)
        self._settings = settings
        self._out = out
        self._trainee = trainee
        self._background = background
        self._rooms = rooms
        self._seeds = seeds
        self._ends = ends
        self._tell = tell

    def reach(self, place: int, policy: Opening | None = None) -> None:
        """See that the schedule holds the phase of a place.

        Args:
            place: From 0.
            policy: The policy; not needed for the first phase.

        Raises:
            StoppedEarly: A run limit was reached; what was measured is kept.
            EngineError: Solver or policy stays down; likewise.
            HlError: A prompt leaves no room for a reply.
        """
        while len(self.schedule.contexts) <= place:
            phase = next(i for i, end in enumerate(self._ends) if end > len(self.schedule.contexts))
            if processes.is_main():
                self._write(phase, policy)
            processes.wait()
            self.schedule.reload()

    def _write(self, phase: int, policy: Opening | None) -> None:
        begin = self._ends[phase - 1] if phase else 0
        wanted = self._seeds[begin : self._ends[phase]]
        states: tuple[Reached, ...] = ()
        if phase and policy is not None:
            with policy() as (_, draw):
                work = roll(
                    self._out,
                    self._settings,
                    self._rooms,
                    self._proposer(draw, phase),
                    phase,
                    lambda done: self._tell(f"chains before phase {phase + 1}, round", done.number, 0),
                )
                states = self._background.run(work)
        half = seed_blocks(self._settings.grpo, len(self._rooms.by_task))
        made = self._background.run(
            make_contexts(
                self._rooms,
                mix(wanted, states),
                half + phase * max(1, half // len(self._ends)),
                lambda done: self._tell("contexts", done, len(wanted)),
            )
        )
        found = gate.check_prompts(
            made,
            lambda context: len(self._trainee.prompt(context)),
            reply_tokens=self._trainee.reply_tokens,
            context_tokens=self._settings.model.context_tokens,
        )
        self._tell(f"prompts of {found.least} to {found.most} tokens", len(made), len(made))
        self.schedule.extend(made)

    def _proposer(self, draw: Draw, phase: int) -> LlmProposer:
        """The policy as `hl revise` asks it. Its replies are recorded: an interrupted chain pays for none twice."""
        g, m, machines = self._settings.grpo, self._settings.model, self._rooms.machines
        version = f"{hashlib.sha256(repr(self._settings).encode()).hexdigest()[:16]} phase {phase}"
        policy = Policy(self._trainee, draw, version, batch=self._batch)
        return LlmProposer(
            MeteredEngine(policy, machines.cache, machines.meter),
            temperature=g.temperature,
            max_tokens=m.reply_tokens,
            context_tokens=m.context_tokens,
            report_tokens=m.report_tokens,
            style=m.prompt,
        )
