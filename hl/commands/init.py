"""`hl init`: make a repository with a seed harness for a task, and score it."""

from pathlib import Path
from typing import Annotated

import typer

from hl.commands.context import JsonOption, UnsafeOption, invocation, new_app

app = new_app()


@app.command()
def init(
    context: typer.Context,
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="Where; made if it is not there.")],
    task: Annotated[
        str,
        typer.Option(
            "--task",
            metavar="TASK",
            help="reasoning-gym:FAMILY[?key=value], qa:DATASET[?key=value] or jsonl:FILE.",
        ),
    ],
    seed: Annotated[
        str,
        typer.Option(
            "--seed",
            metavar="SEED",
            help="A seed's name, or your own harness: a file or a folder. (default: retrieval for qa, else minimal)",
            show_default=False,
        ),
    ] = "",
    profile: Annotated[str, typer.Option("--profile", help="A named set of values: small.")] = "",
    score: Annotated[
        bool, typer.Option("--score/--no-score", help="Measure the seed on the evaluation set.")
    ] = True,
    unsafe: UnsafeOption = False,
    json: JsonOption = False,
) -> None:
    """Make a repository with a seed harness for a task, and score it.

    Questions are drawn once, into questions/: feedback, scoring, confirmation and evaluation sets
    that share no question. Values given with -c or --profile are written to hl.toml.

    Seeds: bare, minimal, cot, self-consistency, react, reflexion, interpreter; and retrieval, which
    searches a corpus. Data sets: tiny (generated), hotpotqa, musique, 2wiki (docs/tasks.md).

    \b
    Examples:
      hl init my-agent --task reasoning-gym:chain_sum
      hl init reader --task qa:tiny
      hl init small --task reasoning-gym:gcd --profile small --seed interpreter
      hl -c solver.engine=openai -c solver.model=qwen -c solver.base_url=http://127.0.0.1:8000/v1 \\
         init mine --task jsonl:questions.jsonl --seed my_harness.py
    """
    import asyncio

    from hl.measure import choose_work, measure
    from hl.new import create
    from hl.solver import Meter
    from hl.types import Role
    from hl.ui import open_output, render_score, say, warn, write_json
    from hl.ui.progress import Snapshot, index_progress, open_progress
    from hl.ui.run import RunProgress
    from hl.workspace import Switches

    with open_progress(quiet=json) as display:
        made = create(
            directory,
            task,
            seed=seed,
            overrides=invocation(context).overrides,
            profile=profile or None,
            on_progress=lambda done, total: display.update(
                Snapshot(phase="questions", done=done, total=total)
            ),
            on_index=index_progress(display),
        )
    workspace, seed = made.workspace, made.seed
    if made.notice:
        warn(made.notice)
    if made.generated.note:
        warn(made.generated.note)
    if made.pool_rounds < workspace.config.round.pool_rounds:
        say(
            f"questions for {made.pool_rounds} of {workspace.config.round.pool_rounds} rounds: "
            "later rounds use the same blocks again"
        )
    measurement = None
    if score:

        async def run() -> object:
            with workspace.cache() as cache, open_progress(quiet=json) as display:
                # A corpus that lies in the repository is indexed here, before the attempts.
                workspace.search(index_progress(display))
                progress = RunProgress(display)
                async with workspace.evaluator(cache, Meter(), Switches(unsafe=unsafe)) as evaluator:
                    revision = workspace.read()
                    work = choose_work(
                        workspace, revision, Role.EVALUATION, None, workspace.config.solver.trials
                    )
                    progress.stage("evaluation", len(work.block.questions) * work.trials)
                    return (await measure(workspace, evaluator, revision, work, progress.attempt))[0]

        try:
            measurement = asyncio.run(run())
        except BaseException:
            say(f"{directory} is made, but not scored: hl -C {directory} eval")
            raise
    from hl.types import Measurement

    sets = workspace.sets
    sizes = {role.value: len(sets.of(role).questions) for role in Role}
    scored = measurement if isinstance(measurement, Measurement) else None
    if json:
        write_json(
            "init",
            {
                "path": str(workspace.root),
                "commit": made.commit,
                "task": workspace.config.task.name,
                "seed": seed,
                "questions": sizes,
                "distinct": made.generated.distinct,
                "exhausted": made.generated.exhausted,
                "score": None
                if scored is None
                else {"mean": scored.score.mean, "se": scored.score.se, "n": scored.score.n},
            },
        )
        return
    with open_output() as out:
        out.line(f"{directory}: {seed} harness on {workspace.config.task.name}")
        out.line("questions: " + ", ".join(f"{n} {role}" for role, n in sizes.items()))
        if scored is not None:
            out.line(f"evaluation score: {render_score(scored.score)} with {scored.solver_name}")
    say(f"next: cd {directory} && hl revise --rounds 3")
