"""GRPO on the execution score: replies to a context, each revised harness run in the sandbox, and an update.

Carried out by TRL's GRPOTrainer through `rollout_func`: replies are sampled in this process, `micro_batch` at once, or
by servers (`grpo.server`), and each begins to be evaluated as soon as it is there, while others are sampled. One
generation is one optimizer step.
Killed at any instant, the same command goes on from the last checkpoint and gives the run that would have been: the
order of contexts is on disk, and every reply draws from a seed of its own place. Several processes
(`torchrun --nproc-per-node N -m training.grpo CONFIG OUT [KEY=VALUE ...]`) share the replies and give the same rewards.
"""

import hashlib
import sys
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hl.codec import encode
from hl.errors import UsageError
from hl.solver import RunLimits
from hl.workspace import Switches
from training import card, gate, plots, processes, record
from training.background import Background
from training.families import check_clusters, tasks_of
from training.figures import Figures
from training.groups import check_lost
from training.models import Ask, Draw, Sample, Trainee, drawing, load_trainee, need_torch, shaken
from training.phases import Phases
from training.pool import Place, blocks_needed, places
from training.quiet import quiet
from training.rewards import CUT_FILE, WEIGHTS, Judge, Judged, reward_columns, reward_functions
from training.rooms import Rooms, open_rooms
from training.schedule import phase_ends
from training.served import Served, attach, check_urls
from training.settings import Settings, load_settings

ADAPTER = "adapter"
KEPT_CHECKPOINTS = 3
"""Newest checkpoints that stay on disk (ours)."""
ONLY_LOGGED = 1e-12
"""Weight of a KL term that is logged and moves nothing: its gradients are far below Adam's epsilon (ours)."""
DIFFERENCE = "sampling/sampling_logp_difference/mean"
"""TRL's name for how far the servers' log-probabilities are from the trainer's."""
CHECKED_SYNCS = 2
"""Times that servers are told of new weights and then asked whether they have them (ours)."""
WAIT_S = 24 * 3600
"""How long a process waits for the others: rewards take as long as they take (ours)."""

Tell = Callable[[str, int, int], None]
"""Told of progress: what, how many are done, of how many."""


@dataclass(frozen=True, slots=True)
class Trained:
    """What a run came to."""

    adapter: Path
    updates: int
    first: Mapping[str, Any]
    """Figures of the first update."""
    last: Mapping[str, Any]
    """Figures of the last one."""


def train(
    settings: Settings,
    out: Path,
    *,
    command: str = "hl train grpo",
    limits: RunLimits = RunLimits(),  # noqa: B008 (a frozen value)
    switches: Switches = Switches(),  # noqa: B008
    tell: Tell = lambda what, done, total: None,
) -> Trained:
    """Carry out what is left of a run.

    Args:
        settings: Of the run.
        out: Its directory.
        command: As typed.
        limits: What it may spend on models.
        switches: What only the command line may say.
        tell: Told of progress.

    Raises:
        UsageError: Settings that do not fit together, or another run's directory.
        StoppedEarly: A limit was reached; the same command goes on.
        EngineError: An engine fails, or too many replies have no reward.
        MissingExtraError: torch and its company are not installed.
    """
    need_torch()
    ends = phase_ends(settings.grpo)
    tasks = tasks_of(settings.tasks, "rl")
    check_clusters(settings.tasks)
    check_urls(settings.grpo.server)
    # What the trainer prints is no result.
    with ExitStack() as stack:
        stack.enter_context(redirect_stdout(sys.stderr))
        stack.enter_context(quiet())
        args = _arguments(settings, out)
        if processes.is_main():
            stack.enter_context(_begun(out, settings, command))
        processes.wait()
        trainee = load_trainee(settings.model, seed=settings.grpo.seed)
        background = stack.enter_context(Background())
        served = _served(stack, settings, trainee, out, background)
        blocks = blocks_needed(settings.grpo, len(tasks))
        with args.main_process_first(local=False, desc="repositories"):
            rooms = _entered(stack, background, open_rooms(out, settings, tasks, blocks, limits, switches))
        run = Run(settings, out, trainee, background, rooms, places(tasks, settings.grpo), ends, tell, served)
        stack.callback(lambda: background.run(run.judge.aclose()))
        return run.train(args)


def _begun(out: Path, settings: Settings, command: str) -> Any:
    """The run's directory, ours and locked until the end."""
    from hl.ledger.locks import hold

    adapter = record.adapter_digest(Path(settings.model.adapter)) if settings.model.adapter else ""
    record.begin(out, record.describe("grpo", settings, command, adapter=adapter))
    return hold(out / "lock")


def _served(
    stack: ExitStack, settings: Settings, trainee: Trainee, out: Path, background: Background
) -> Served | None:
    """The servers that sample replies, if there are some; they take adapters, or nothing is begun."""
    if not settings.grpo.server:
        return None
    served = Served(settings.grpo.server, trainee, out, background)
    stack.callback(lambda: background.run(served.aclose()))
    served.open()
    return served


def _entered(stack: ExitStack, background: Background, manager: Any) -> Any:
    """An async context of the background's loop, left when the stack is."""
    value = background.run(manager.__aenter__())
    stack.callback(lambda: background.run(manager.__aexit__(None, None, None)))
    return value


def _arguments(settings: Settings, out: Path) -> Any:
    """The settings as TRL takes them."""
    import torch
    from trl import GRPOConfig

    g, cuda = settings.grpo, torch.cuda.is_available()
    rows, at_once = g.contexts_per_update * g.generations, g.micro_batch * processes.count()
    if rows % at_once:
        raise UsageError(
            f"the {rows} replies of an update are no multiple of grpo.micro_batch x processes = {at_once}.",
            hint=f"grpo.micro_batch={_divisor(rows // processes.count(), g.micro_batch)}",
        )
    return GRPOConfig(
        output_dir=str(out),
        use_cpu=not cuda,
        bf16=cuda,
        gradient_checkpointing=cuda,
        per_device_train_batch_size=g.micro_batch,
        gradient_accumulation_steps=rows // at_once,
        num_generations=g.generations,
        num_train_epochs=1,
        shuffle_dataset=False,
        max_completion_length=settings.model.reply_tokens,
        temperature=g.temperature,
        learning_rate=g.learning_rate,
        lr_scheduler_type="constant",
        beta=g.beta or (ONLY_LOGGED if g.log_kl else 0.0),
        loss_type=g.loss_type,
        scale_rewards=g.scale_rewards,
        reward_weights=list(WEIGHTS.values()),
        seed=g.seed,
        save_strategy="steps",
        save_steps=g.save_steps,
        save_total_limit=KEPT_CHECKPOINTS,
        logging_steps=1,
        log_completions=True,
        num_completions_to_print=0,
        report_to=[] if settings.log.report_to == "none" else [settings.log.report_to],
        ddp_timeout=WAIT_S,
        disable_tqdm=True,
        remove_unused_columns=False,
        dataloader_pin_memory=cuda,
    )


def _divisor(rows: int, most: int) -> int:
    return next((n for n in range(most, 0, -1) if rows and rows % n == 0), 1)


class Run:
    """One process's share of a run."""

    def __init__(
        self,
        settings: Settings,
        out: Path,
        trainee: Trainee,
        background: Background,
        rooms: Rooms,
        seeds: Sequence[Place],
        ends: Sequence[int],
        tell: Tell,
        served: Served | None = None,
    ) -> None:
        g = settings.grpo
        self.settings = settings
        self.out = out
        self.trainee = trainee
        self.background = background
        self.rooms = rooms
        self.judge = Judge(rooms, noop=g.noop, candidate_s=g.candidate_s, cut=out / CUT_FILE)
        batch = served.concurrency if served is not None else g.micro_batch
        self.phases = Phases(settings, out, trainee, background, rooms, seeds, ends, tell, batch=batch)
        self.schedule = self.phases.schedule
        self.tell = tell
        self.served = served
        self._synced = 0
        self.figures = Figures()

    def train(self, args: Any) -> Trained:
        """From the last checkpoint to the adapter."""
        from datasets import Dataset
        from transformers import PrinterCallback
        from trl import GRPOTrainer

        updates = self.settings.grpo.contexts // self.settings.grpo.contexts_per_update
        processes.wait()  # all have read the schedule: from here on all know the same of it
        checkpoint, step = record.last_checkpoint(self.out)
        if processes.is_main():
            record.rewind_metrics(self.out, step)
        self.phases.reach(0)
        if step < updates:
            # A row is its place; what stands there is looked up when its turn comes.
            rows = Dataset.from_dict({"prompt": [str(n) for n in range(self.settings.grpo.contexts)]})

            class Trainer(GRPOTrainer):
                def create_model_card(self, *unused: Any, **options: Any) -> None:
                    """Ours says more, and is written once."""

            trainer = Trainer(
                model=self.trainee.model,
                args=args,
                reward_funcs=reward_functions(self.figures.tell_trl),
                train_dataset=rows,
                processing_class=self.trainee.tokenizer,
                rollout_func=self.rollout,
                callbacks=[_recorder(self, updates)],
            )
            trainer.remove_callback(PrinterCallback)
            if self.served is None:
                self._check_agreement(trainer, "trainer and sampler")
            else:
                self._check_servers(trainer, self.served)
            trainer.train(resume_from_checkpoint=str(checkpoint) if checkpoint else None)
        elif checkpoint is not None:
            self.trainee.model.load_adapter(str(checkpoint), "default", use_safetensors=True)
        processes.wait()
        return self._finish(updates)

    # --- one update ---

    @contextmanager
    def _policy(self, trainer: Any) -> Generator[tuple[Any, Draw], None, None]:
        """The trainer's model as it is now, and what draws its replies."""
        from trl.models import unwrap_model_for_generation

        with unwrap_model_for_generation(
            trainer.model_wrapped,
            trainer.accelerator,
            gradient_checkpointing_kwargs=trainer.args.gradient_checkpointing_kwargs,
        ) as model:
            local = drawing(self.trainee, model, self.settings.grpo.micro_batch)
            yield model, local if self.served is None else self.served.draw

    def _check_agreement(self, trainer: Any, who: str) -> None:
        """What samples and what learns must find the same, though one computes token by token, padded or elsewhere."""
        most = min(gate.FIXED_TOKENS, self.trainee.reply_tokens)
        asks = [
            Ask(tuple(self.trainee.prompt(context)), reply_seed(self.settings.grpo.seed, -1, i), most, 1.0)
            for i, context in enumerate(self.schedule.contexts[: gate.FIXED])
        ]
        with self._policy(trainer) as (model, draw):
            difference = gate.check_sampling(model, draw, asks)
        self.tell(f"{who} agree to {difference:.2g}", len(asks), len(asks))

    def _check_servers(self, trainer: Any, served: Served) -> None:
        """They must serve this base, and an adapter must change there what it changes here."""
        with shaken(self.trainee.model, self.trainee.prompt(self.schedule.at(0))[-gate.FIXED_TOKENS :]):
            served.sync("probe")
            self._check_agreement(trainer, "trainer and servers, under a random adapter,")
        attach(trainer, lambda: self._sync(trainer, served))

    def _sync(self, trainer: Any, served: Served) -> None:
        """The servers follow an update; the first two times that is checked: where it began, and that it moves on."""
        served.sync(f"v{trainer.state.global_step}")
        self._synced += 1
        if self._synced <= CHECKED_SYNCS:
            self._check_agreement(trainer, f"trainer and servers, after update {trainer.state.global_step},")

    def rollout(self, prompts: Sequence[str], trainer: Any) -> dict[str, Any]:
        """TRL's `rollout_func`: this process's rows of an update, sampled and judged.

        Args:
            prompts: Places in the schedule, each repeated for its replies.
            trainer: Whose model samples.
        """
        from accelerate.utils import gather_object

        g, began = self.settings.grpo, time.monotonic()
        self.phases.reach(max(int(p) for p in prompts), lambda: self._policy(trainer))
        reached = time.monotonic()
        first = trainer.accelerator.process_index * len(prompts)
        rows = [(int(p), (first + i) % g.generations) for i, p in enumerate(prompts)]
        tokens = {place: self.trainee.prompt(self.schedule.at(place)) for place, _ in rows}
        asks = [
            Ask(tuple(tokens[row[0]]), reply_seed(g.seed, *row), self.trainee.reply_tokens, g.temperature)
            for row in rows
        ]
        samples: dict[int, Sample] = {}
        judging: dict[int, Future[Judged]] = {}
        with self._policy(trainer) as (_, draw):
            for at, found in draw(asks):
                samples[at] = found
                context = self.schedule.at(rows[at][0])
                judging[at] = self.background.start(self.judge.submit(context, found.reply))
                self.tell("replies", len(samples), len(rows))
        generated = time.monotonic()
        judged: list[Judged] = []
        for at in range(len(rows)):
            judged.append(judging[at].result())
            self.tell("rewards", len(judged), len(rows))
        everyone: list[Judged] = gather_object(judged)
        check_lost(everyone, g.max_lost)
        parts = {
            "contexts": reached - began,
            "generation": generated - reached,
            "reward": time.monotonic() - generated,
        }
        self.figures.take(everyone, self.schedule.contexts, g.generations, parts)
        return {
            "prompt_ids": [tokens[place] for place, _ in rows],
            "completion_ids": [list(samples[at].ids) for at in range(len(rows))],
            # For the trainer to correct by; in this process both are the same weights in the same arithmetic.
            "logprobs": None
            if self.served is None
            else [list(samples[at].log_probs) for at in range(len(rows))],
            "judged": [encode(j) for j in judged],
            **reward_columns(judged),
        }

    # --- the end ---

    def _finish(self, updates: int) -> Trained:
        adapter = self.out / ADAPTER
        lines = record.load_metrics(self.out)
        if processes.is_main():
            self.trainee.save(adapter)
            card.write(adapter, record.load_manifest(self.out), lines)
            plots.draw(self.out, lines)
        return Trained(adapter, updates, lines[0] if lines else {}, lines[-1] if lines else {})


def reply_seed(seed: int, place: int, index: int) -> int:
    """A reply's own seed: a function of the run, its context's place and its number in the group, and nothing else."""
    return int.from_bytes(hashlib.sha256(f"reply {seed}/{place}/{index}".encode()).digest()[:8], "big") >> 1


def _recorder(run: Run, updates: int) -> Any:
    """A callback of the trainer that writes the lines of figures."""
    from transformers import TrainerCallback

    class Recorder(TrainerCallback):
        def on_log(
            self, args: Any, state: Any, control: Any, logs: Mapping[str, Any] | None = None, **unused: Any
        ) -> None:
            if logs and run.served is not None and DIFFERENCE in logs:
                gate.check_drift(logs[DIFFERENCE])
            if processes.is_main() and logs and "reward" in logs:
                run.figures.write(run.out, state.global_step, logs)
                run.tell("updates", state.global_step, updates)

    return Recorder()


if __name__ == "__main__":
    train(load_settings(Path(sys.argv[1]), sys.argv[3:]), Path(sys.argv[2]), command=" ".join(sys.argv))
