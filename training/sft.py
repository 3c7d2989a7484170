"""Supervised fine-tuning: a LoRA adapter learns the replies of a teacher's rows, and nothing but the replies.

Carried out by TRL's SFTTrainer on tokens made here, by the function that renders prompts at use: nothing is cut, and a
row that does not fit is named. Validation is on whole families. Killed at any instant, the same command goes on from
the last checkpoint and gives the weights that would have been. Several processes share the rows:
`torchrun --nproc-per-node N -m training.sft CONFIG DATA OUT [KEY=VALUE ...]`.
"""

import hashlib
import random
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hl.errors import HlError
from training import card, plots, processes, record
from training.contexts import Context
from training.families import check_clusters, check_learnt
from training.gate import Lengths, lengths
from training.models import Trainee, load_trainee, need_torch
from training.quiet import quiet
from training.settings import Settings

ADAPTER = "adapter"
KEPT_CHECKPOINTS = 3
"""Newest checkpoints that stay on disk (ours)."""
WARMUP = 0.05
"""Share of the updates over which the learning rate rises; it falls as a cosine after that (ours)."""
IGNORED = -100
"""Label of a token that is read and not learnt (PyTorch's)."""

Pair = tuple[Context, str]
"""What to revise, and the reply to learn."""
Tell = Callable[[str, int, int], None]
"""Told of progress: what, how many are done, of how many."""


@dataclass(frozen=True, slots=True)
class Example:
    """One row in tokens."""

    family: str
    prompt: tuple[int, ...]
    reply: tuple[int, ...]

    @property
    def columns(self) -> Mapping[str, list[int]]:
        """As the trainer takes it: the loss is over the reply alone."""
        ids = [*self.prompt, *self.reply]
        return {"input_ids": ids, "labels": [IGNORED] * len(self.prompt) + list(self.reply)}


@dataclass(frozen=True, slots=True)
class Trained:
    """What a run came to."""

    adapter: Path
    updates: int
    train: int
    """Rows learnt from."""
    validation: tuple[str, ...]
    """Families that only measured the loss."""
    too_long: tuple[str, ...]
    """Ids of contexts whose rows were left out, since they do not fit."""
    prompt: Lengths
    reply: Lengths
    first: Mapping[str, Any]
    """Figures of the first update."""
    last: Mapping[str, Any]
    """Figures at the end."""


def train(
    settings: Settings,
    rows: Sequence[Pair],
    out: Path,
    *,
    command: str = "hl train sft",
    tell: Tell = lambda what, done, total: None,
) -> Trained:
    """Carry out what is left of a run.

    Args:
        settings: Of the run.
        rows: What is learnt.
        out: The run's directory.
        command: As typed.
        tell: Told of progress.

    Raises:
        HlError: There is nothing to learn from.
        UsageError: Another run's directory, or clusters that overlap.
        MissingExtraError: torch and its company are not installed.
    """
    need_torch()
    check_clusters(settings.tasks)
    check_learnt(settings.tasks, {context.cluster: context.family for context, _ in rows})
    if not rows:
        raise HlError("there is no row to learn from.", hint="hl train data DIR --stats")
    from hl.ledger.locks import hold

    with ExitStack() as stack:
        # What the trainer prints is no result.
        stack.enter_context(redirect_stdout(sys.stderr))
        stack.enter_context(quiet())
        config = _arguments(settings, out)
        if processes.is_main():
            record.begin(out, record.describe("sft", settings, command, data=digest(rows), rows=len(rows)))
            stack.enter_context(hold(out / "lock"))
        processes.wait()
        trainee = load_trainee(settings.model, seed=settings.sft.seed)
        examples, too_long = tokenize(trainee, rows)
        if not examples:
            raise HlError(
                f"none of {len(rows)} rows fits into {settings.model.context_tokens:,} tokens.",
                hint="model.prompt=brief, or a larger model.context_tokens",
            )
        held = held_out([e.family for e in examples], settings.sft.validation, settings.sft.seed)
        learnt = [e for e in examples if e.family not in held]
        measured = [e for e in examples if e.family in held]
        told = [lengths([len(e.prompt) for e in examples]), lengths([len(e.reply) for e in examples])]
        tell(f"rows, {_told(told[0])} prompt and {_told(told[1])} reply tokens", len(learnt), len(rows))
        updates = _run(config, trainee, learnt, measured, out, tell)
        lines = record.load_metrics(out)
        if processes.is_main():
            trainee.save(out / ADAPTER)
            card.write(out / ADAPTER, record.load_manifest(out), lines)
            plots.draw(out, lines)
        return Trained(
            out / ADAPTER,
            updates,
            len(learnt),
            held,
            too_long,
            *told,
            lines[0] if lines else {},
            _last(lines),
        )


def _told(found: Lengths) -> str:
    return f"{found.least}/{found.median:g}/{found.most}"


def _last(lines: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """The last value of every figure: validation is not measured at every update."""
    merged: dict[str, Any] = {}
    for line in lines:
        merged |= line
    return merged


def digest(rows: Sequence[Pair]) -> str:
    """Hex sha256 over what is learnt, in order."""
    total = hashlib.sha256()
    for context, reply in rows:
        total.update(
            f"{context.id} {hashlib.sha256(reply.encode('utf-8', 'replace')).hexdigest()}\n".encode()
        )
    return total.hexdigest()


def tokenize(trainee: Trainee, rows: Sequence[Pair]) -> tuple[list[Example], tuple[str, ...]]:
    """Rows in tokens, as at use, and the ids of contexts whose rows do not fit."""
    examples: list[Example] = []
    too_long: list[str] = []
    for context, reply in rows:
        prompt, answer = trainee.prompt(context), trainee.reply(reply)
        if len(answer) > trainee.reply_tokens or len(prompt) + len(answer) > trainee.settings.context_tokens:
            too_long.append(context.id)
            continue
        examples.append(Example(context.family, tuple(prompt), tuple(answer)))
    return examples, tuple(too_long)


def held_out(families: Sequence[str], share: float, seed: int) -> tuple[str, ...]:
    """Families that only measure the loss: a share of them, at least one where a share is asked for and two are there.

    Args:
        families: Of the rows, repeats allowed.
        share: Of the families.
        seed: Of the choice.
    """
    names = sorted(set(families))
    wanted = min(len(names) - 1, max(1, round(share * len(names)))) if share > 0 else 0
    return tuple(sorted(random.Random(f"validation {seed}").sample(names, wanted)))


def _arguments(settings: Settings, out: Path) -> Any:
    """The settings as TRL takes them."""
    import torch
    from trl import SFTConfig

    s, cuda = settings.sft, torch.cuda.is_available()
    micro = min(s.micro_batch, s.batch)
    return SFTConfig(
        output_dir=str(out),
        use_cpu=not cuda,
        bf16=cuda,
        gradient_checkpointing=cuda,
        max_length=None,
        packing=False,
        num_train_epochs=s.epochs,
        learning_rate=s.learning_rate,
        lr_scheduler_type="cosine",
        warmup_steps=WARMUP,
        per_device_train_batch_size=micro,
        per_device_eval_batch_size=micro,
        gradient_accumulation_steps=max(1, s.batch // (micro * processes.count())),
        eval_steps=s.save_steps,
        save_strategy="steps",
        save_steps=s.save_steps,
        save_total_limit=KEPT_CHECKPOINTS,
        logging_steps=1,
        seed=s.seed,
        data_seed=s.seed,
        report_to=[] if settings.log.report_to == "none" else [settings.log.report_to],
        disable_tqdm=True,
        dataloader_pin_memory=cuda,
    )


def _run(
    config: Any,
    trainee: Trainee,
    learnt: Sequence[Example],
    measured: Sequence[Example],
    out: Path,
    tell: Tell,
) -> int:
    """Train from the last checkpoint to the end; returns the updates of the whole run."""
    from datasets import Dataset
    from transformers import PrinterCallback
    from trl import SFTTrainer

    config.eval_strategy = "steps" if measured else "no"
    processes.wait()
    checkpoint, step = record.last_checkpoint(out)
    if processes.is_main():
        record.rewind_metrics(out, step)

    class Trainer(SFTTrainer):
        def create_model_card(self, *unused: Any, **options: Any) -> None:
            """Ours says more, and is written once."""

    trainer = Trainer(
        model=trainee.model,
        args=config,
        train_dataset=Dataset.from_list([dict(e.columns) for e in learnt]),
        eval_dataset=Dataset.from_list([dict(e.columns) for e in measured]) if measured else None,
        processing_class=trainee.tokenizer,
        callbacks=[_recorder(out, tell)],
    )
    trainer.remove_callback(PrinterCallback)
    trainer.train(resume_from_checkpoint=str(checkpoint) if checkpoint else None)
    if measured:
        trainer.evaluate()
    return int(trainer.state.global_step)


def _recorder(out: Path, tell: Tell) -> Any:
    """A callback of the trainer that writes the lines of figures."""
    from transformers import TrainerCallback

    class Recorder(TrainerCallback):
        def on_log(
            self, args: Any, state: Any, control: Any, logs: Mapping[str, Any] | None = None, **unused: Any
        ) -> None:
            kept = {k: v for k, v in (logs or {}).items() if not k.endswith(("runtime", "per_second"))}
            if processes.is_main() and ("loss" in kept or "eval_loss" in kept):
                record.append_metrics(out, {"step": state.global_step, **kept})
                tell("updates", state.global_step, state.max_steps)

    return Recorder()


if __name__ == "__main__":
    from training.data import load_rows
    from training.settings import load_settings

    kept = [(row.context, row.reply) for row in load_rows(Path(sys.argv[2])) if row.kept]
    train(load_settings(Path(sys.argv[1]), sys.argv[4:]), kept, Path(sys.argv[3]), command=" ".join(sys.argv))
