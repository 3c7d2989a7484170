"""`hl train`: the proposer learns; first from a teacher's rows, then from what its own edits score.

One function a verb, which hands over to a module of its own (`_train_data.py`). What they share is here.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hl.commands._limits import (
    DryRunOption,
    MaxCallsOption,
    MaxCostOption,
    MaxSecondsOption,
    MaxTokensOption,
    limits_of,
)
from hl.commands.context import JsonOption, UnsafeOption, invocation, new_app

if TYPE_CHECKING:
    from training.settings import Settings

app = new_app("""Train the proposer on a teacher's edits, then on its own scores.

Settings come from a TOML file or a recipe, and from -c; docs/training.md lists them. No verb needs an hl
repository to stand in.
""")

OutOption = Annotated[Path | None, typer.Option("--out", metavar="DIR", help="Where results go.")]


@app.callback()
def train() -> None:
    """Keeps the verbs below `hl train` even where there is only one."""


def settings_of(context: typer.Context, config: Path | None, *more: str) -> "Settings":
    """The run's settings.

    Args:
        context: Of the command, for its `-c`.
        config: The TOML file, if one is given.
        more: `key=value` texts of the command's own options; they win.

    Raises:
        UsageError: No such file, or a key or value that there is not.
    """
    from training.settings import load_settings

    return load_settings(config, (*invocation(context).overrides, *more))


def toml_list(items: list[str]) -> str:
    """Texts as `-c` takes a list."""
    from json import dumps

    return dumps(items)


@app.command("data")
def data(
    context: typer.Context,
    source: Annotated[
        Path | None,
        typer.Argument(
            metavar="[CONFIG|DIR]",
            help="A TOML file of settings, or a recipe; with --stats or --verify, rows.",
        ),
    ] = None,
    track: Annotated[
        str, typer.Option("--track", metavar="TRACK", help="The split of families: tiny or paper.")
    ] = "",
    teacher: Annotated[
        list[str],
        typer.Option("--teacher", metavar="SPEC", help="catalog, or NAME=openai:MODEL@URL; repeatable."),
    ] = [],  # noqa: B006
    contexts: Annotated[
        int | None, typer.Option("--contexts", metavar="N", help="Contexts a family (8).")
    ] = None,
    proposals: Annotated[
        int | None, typer.Option("--proposals", metavar="K", help="Revisions a context (8).")
    ] = None,
    out: OutOption = None,
    from_history: Annotated[
        list[Path],
        typer.Option("--from-history", metavar="REPO", help="Take rows from a ledger too; repeatable."),
    ] = [],  # noqa: B006
    stats: Annotated[bool, typer.Option("--stats", help="Say what the rows of DIR are.")] = False,
    verify: Annotated[
        bool, typer.Option("--verify", help="Apply and score every row of DIR again, and compare.")
    ] = False,
    dry_run: DryRunOption = False,
    max_calls: MaxCallsOption = None,
    max_tokens: MaxTokensOption = None,
    max_seconds: MaxSecondsOption = None,
    max_cost: MaxCostOption = None,
    unsafe: UnsafeOption = False,
    json: JsonOption = False,
) -> None:
    """Let a teacher revise seeds, and keep the revisions that hold up.

    Kept are those that apply, improve their parent, neither look up nor branch on the questions
    that were shown, stay within budget, and gain on fresh questions too. Every row says what it
    gained and why it was kept or not. Stopped or killed, the same command goes on.

    \b
    Examples:
      hl train data --track tiny --teacher catalog --out rows
      hl train data --teacher big=openai:qwen@http://127.0.0.1:8000/v1 --dry-run
      hl train data --from-history ~/my-agent --out rows
      hl train data rows --stats
      hl train data rows --verify
    """
    from hl.commands import _train_data as verb
    from hl.errors import UsageError
    from training.data import load_rows

    reads = source is not None and source.is_dir()
    if reads and out is not None:
        raise UsageError(f"both {source} and --out {out} name rows.", hint="hl train data --help")
    more = [f"tasks.track={track}"] if track else []
    more += [f"data.teacher={toml_list(teacher)}"] if teacher else []
    more += [f"data.contexts={contexts}"] if contexts is not None else []
    more += [f"data.proposals={proposals}"] if proposals is not None else []
    settings = settings_of(context, None if reads else source, *more)
    place = (
        source if reads and source is not None else out or Path("train-runs") / f"data-{settings.tasks.track}"
    )
    if stats:
        verb.show(load_rows(place), json=json)
        return
    asked = verb.Asked(
        place,
        from_history,
        bool(teacher) or not from_history,
        limits_of("train data", max_calls, max_tokens, max_seconds, max_cost),
        unsafe,
        json,
    )
    if verify:
        verb.verify(settings, asked)
    elif reads:
        raise UsageError(
            f"{source} is a folder: settings are a file.", hint=f"hl train data {source} --stats"
        )
    elif dry_run:
        verb.dry_run(settings, teach=asked.teach, json=json)
    else:
        verb.make(settings, asked)


@app.command("sft")
def sft(
    context: typer.Context,
    config: Annotated[
        Path | None, typer.Argument(metavar="[CONFIG]", help="A TOML file of settings, or a recipe.")
    ] = None,
    data: Annotated[
        Path | None, typer.Option("--data", metavar="DIR", help="What `hl train data` wrote.")
    ] = None,
    out: OutOption = None,
    dry_run: DryRunOption = False,
    json: JsonOption = False,
) -> None:
    """Let a model learn a teacher's kept revisions, as a LoRA adapter.

    The loss is over replies alone, prompts are those of `hl revise`, and nothing is cut: rows that
    do not fit are named. Validation is on whole families. Stopped or killed, the same command goes
    on from its last checkpoint.

    \b
    Examples:
      hl train sft --data rows --out sft
      hl train sft run.toml --data rows --out sft --dry-run
      hl -c model.base=./Qwen3-4B -c sft.epochs=2 train sft --data rows --out sft
    """
    from hl.commands._train_run import run_sft
    from hl.errors import UsageError

    if data is None:
        raise UsageError("--data is missing: which rows are learnt?", hint="hl train data --out DIR")
    run_sft(settings_of(context, config), data, out, dry_run=dry_run, json=json)


@app.command("grpo")
def grpo(
    context: typer.Context,
    config: Annotated[
        Path | None, typer.Argument(metavar="[CONFIG]", help="A TOML file of settings, or a recipe.")
    ] = None,
    mode: Annotated[
        str, typer.Option("--mode", metavar="MODE", help="single: seeds; multi: reached states too.")
    ] = "",
    adapter: Annotated[
        Path | None, typer.Option("--adapter", metavar="DIR", help="Go on from this adapter.")
    ] = None,
    out: OutOption = None,
    dry_run: DryRunOption = False,
    max_calls: MaxCallsOption = None,
    max_tokens: MaxTokensOption = None,
    max_seconds: MaxSecondsOption = None,
    max_cost: MaxCostOption = None,
    unsafe: UnsafeOption = False,
    json: JsonOption = False,
) -> None:
    """Let a model learn from what its own revisions score in the sandbox.

    Eight replies to a context; each revised harness runs on the same questions, and its score is the
    reward, with small parts for blocks that parse, candidates that build and runs that complete.
    Stopped or killed, the same command goes on from its last checkpoint.

    \b
    Examples:
      hl train grpo --adapter sft/adapter --out rl
      hl train grpo run.toml --mode multi --adapter sft/adapter --out rl
      hl train grpo run.toml --dry-run
      hl train grpo reasoning-qwen3.5-4b --adapter sft/adapter --out rl
    """
    from hl.commands._train_run import run_grpo

    more = [f"grpo.mode={mode}"] if mode else []
    more += [f"model.adapter={adapter}"] if adapter is not None else []
    limits = limits_of("train grpo", max_calls, max_tokens, max_seconds, max_cost)
    run_grpo(settings_of(context, config, *more), out, limits, unsafe=unsafe, dry_run=dry_run, json=json)


@app.command("distance")
def distance(
    context: typer.Context,
    config: Annotated[
        Path | None, typer.Argument(metavar="[CONFIG]", help="A TOML file of settings.")
    ] = None,
    first: Annotated[
        Path | None, typer.Option("--from", metavar="DIR", help="The first one; the base alone if left out.")
    ] = None,
    second: Annotated[Path | None, typer.Option("--to", metavar="DIR", help="The second one.")] = None,
    contexts: Annotated[
        Path | None,
        typer.Option("--contexts", metavar="FILE", help="A contexts.jsonl that neither learnt from."),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Say how far an adapter has moved from another.

    The second one replies to every context; at each token of its replies the KL divergence of its
    distribution from the first one's is exact. Standard errors are over contexts. The likeliest
    replies of both are compared too.

    \b
    Examples:
      hl train distance run.toml --to sft/adapter --contexts held/contexts.jsonl
      hl train distance run.toml --from sft/adapter --to rl/adapter --contexts held/contexts.jsonl
    """
    from hl.commands._train_run import run_distance
    from hl.errors import UsageError

    if second is None:
        raise UsageError("--to is missing: which adapter has moved?", hint="hl train distance --help")
    if contexts is None:
        raise UsageError("--contexts is missing: what shall they reply to?", hint="hl train distance --help")
    run_distance(settings_of(context, config), first, second, contexts, json=json)
