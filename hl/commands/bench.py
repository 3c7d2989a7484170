"""`hl bench`: the families of reasoning-gym, and what a proposer does to harnesses on them."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hl.commands._bench import (
    BaselinesOption,
    ChainsOption,
    ContextsOption,
    Controls,
    EvaluationOption,
    FeedbackOption,
    IndependentOption,
    OutOption,
    PaperOption,
    ProposalsOption,
    ProposerOption,
    Protocol,
    ReportOption,
    RoundsOption,
    ScoringOption,
    SeedOption,
    SelectOption,
    SolverOption,
    carry_out,
    write_tables,
)
from hl.commands._limits import DryRunOption, MaxCallsOption, MaxCostOption, MaxSecondsOption, MaxTokensOption
from hl.commands.context import JsonOption, UnsafeOption, new_app

if TYPE_CHECKING:
    from hl.tasks.catalogue import Listing

app = new_app("""Run the paper's benchmarks on your models, and compare runs.

Families are split by cluster: a track says which train a proposer and which test it.
""")


@app.command("families")
def families(
    track: Annotated[
        str, typer.Option("--track", metavar="TRACK", help="Only families of this track: paper or tiny.")
    ] = "",
    role: Annotated[
        str,
        typer.Option("--role", metavar="ROLE", help="Only sft, rl, unseen, near or excluded ones."),
    ] = "",
    cluster: Annotated[
        str, typer.Option("--cluster", metavar="CLUSTER", help="Only families of this cluster.")
    ] = "",
    json: JsonOption = False,
) -> None:
    """Print the catalogue of reasoning-gym families.

    One line a family: cluster, number of different questions, questions made a second (one
    core of one machine, rounded), what the best constant answer scores (raw grade, then
    strict), the role on each track, and the defects. Measured with default parameters.

    \b
    Examples:
      hl bench families --track tiny
      hl bench families --role unseen --json
      hl bench families --cluster "number theory"
    """
    from hl.tasks.catalogue import choose
    from hl.tasks.tracks import TRACKS
    from hl.ui import columns, open_output, write_json

    listings = choose(track_name=track, role=role, cluster=cluster)
    tracks = [track] if track else list(TRACKS)
    if json:
        for listing in listings:
            write_json("family", _record(listing))
        return
    rows: list[tuple[str, ...]] = [
        (
            "family",
            "cluster",
            "questions",
            "a second",
            "floor raw",
            "strict",
            "grading",
            *tracks,
            "defects",
        )
    ]
    for listing in listings:
        family, measured = listing.family, listing.measured
        numbers = ("-", "-", "-", "-")
        if measured is not None:
            numbers = (
                measured.space,
                f"{measured.per_second:,g}",
                f"{measured.floor_raw:.2f}",
                f"{measured.floor_strict:.2f}",
            )
        roles = [listing.role(name) or "-" for name in tracks]
        defects = "; ".join(listing.defects) or "-"
        rows.append((family.name, family.cluster, *numbers, family.status, *roles, defects))
    with open_output() as out:
        for line in columns(rows, right=(2, 3, 4, 5)):
            out.line(line)


def _record(listing: "Listing") -> dict[str, object]:
    """A family's JSON."""
    from dataclasses import asdict

    from hl.tasks.tracks import TRACKS

    family, measured = listing.family, listing.measured
    roles = {name: role for name in TRACKS if (role := listing.role(name))}
    excluded = {name: t.excluded[family.name] for name, t in TRACKS.items() if family.name in t.excluded}
    return {
        "name": family.name,
        "cluster": family.cluster,
        "asks": family.asks,
        "rule": family.rule,
        "status": family.status,
        "gold_visible": family.gold_visible,
        "space": measured.space if measured is not None else None,
        "measured": asdict(measured) if measured is not None else None,
        "nonsense": listing.nonsense,
        "defects": listing.defects,
        "roles": roles,
        "excluded": excluded,
    }


@app.command("reasoning-gym")
def reasoning_gym(
    context: typer.Context,
    track: Annotated[
        str, typer.Option("--track", metavar="TRACK", help="Which split of the families: tiny or paper.")
    ] = "tiny",
    families: Annotated[
        str | None,
        typer.Option("--families", metavar="A,B", help="These families (A?key=value too), not the track's."),
    ] = None,
    roles: Annotated[
        str | None,
        typer.Option(
            "--roles", metavar="R,S", help="The track's families of these roles: unseen, rl, sft, near."
        ),
    ] = None,
    excluded: Annotated[
        bool, typer.Option("--excluded", help="The track's excluded families: a hard boundary.")
    ] = False,
    answers: Annotated[
        str,
        typer.Option("--format", metavar="FORM", help="Questions as they are, format-varied, or both."),
    ] = "canonical",
    solver: SolverOption = [],  # noqa: B006
    proposer: ProposerOption = [],  # noqa: B006
    contexts: ContextsOption = None,
    proposals: ProposalsOption = 8,
    feedback: FeedbackOption = None,
    scoring: ScoringOption = None,
    evaluation: EvaluationOption = None,
    rounds: RoundsOption = 0,
    chains: ChainsOption = None,
    independent: IndependentOption = 0,
    select: SelectOption = "improve",
    seed: SeedOption = "minimal",
    baselines: BaselinesOption = "",
    report: ReportOption = "full",
    out: OutOption = None,
    dry_run: DryRunOption = False,
    max_calls: MaxCallsOption = None,
    max_tokens: MaxTokensOption = None,
    max_seconds: MaxSecondsOption = None,
    max_cost: MaxCostOption = None,
    paper: PaperOption = False,
    unsafe: UnsafeOption = False,
    json: JsonOption = False,
) -> None:
    """Measure proposers on reasoning-gym families.

    One step (default): K proposals on the seed, all measured on held-out questions, with the
    seed and the winner measured twice (A/A). With --rounds: chains, and the curve by round.
    Results go to a directory: rows, tables, plots, and one hl repository a cell. Stopped or
    killed, the same command goes on; no recorded call is repeated. docs/bench.md defines every
    column.

    \b
    Examples:
      hl bench reasoning-gym --track tiny
      hl bench reasoning-gym --families gcd,lcm --contexts 4 --baselines cot,react
      hl bench reasoning-gym --track paper --solver q=openai:qwen@http://127.0.0.1:8000/v1 \\
         --proposer base=openai:qwen@http://127.0.0.1:8000/v1 --proposer catalog --dry-run
      hl bench reasoning-gym --families gcd --rounds 10 --chains 4 --independent 80
      hl bench reasoning-gym --paper
    """
    from hl.bench.choice import reasoning_gym_tasks

    tasks = reasoning_gym_tasks(track, families, roles, excluded=excluded, answers=answers)
    carry_out(
        context,
        "reasoning-gym",
        tasks,
        track,
        Protocol(
            solver=solver,
            proposer=proposer,
            contexts=contexts,
            proposals=proposals,
            feedback=feedback,
            scoring=scoring,
            evaluation=evaluation,
            rounds=rounds,
            chains=chains,
            independent=independent,
            select=select,
            seed=seed,
            baselines=baselines,
            report=report,
        ),
        Controls(out, dry_run, max_calls, max_tokens, max_seconds, max_cost, paper, unsafe, json),
    )


@app.command("qa")
def qa(
    context: typer.Context,
    dataset: Annotated[
        list[str],
        typer.Option(
            "--dataset",
            metavar="NAME=PATH",
            help="hotpotqa, musique or 2wiki, with ?key=value; or tiny (default); repeatable.",
        ),
    ] = [],  # noqa: B006
    solver: SolverOption = [],  # noqa: B006
    proposer: ProposerOption = [],  # noqa: B006
    contexts: ContextsOption = None,
    proposals: ProposalsOption = 8,
    feedback: FeedbackOption = None,
    scoring: ScoringOption = None,
    evaluation: EvaluationOption = None,
    rounds: RoundsOption = 0,
    chains: ChainsOption = None,
    independent: IndependentOption = 0,
    select: SelectOption = "best",
    seed: SeedOption = "retrieval",
    baselines: BaselinesOption = "",
    report: ReportOption = "full",
    out: OutOption = None,
    dry_run: DryRunOption = False,
    max_calls: MaxCallsOption = None,
    max_tokens: MaxTokensOption = None,
    max_seconds: MaxSecondsOption = None,
    max_cost: MaxCostOption = None,
    paper: PaperOption = False,
    unsafe: UnsafeOption = False,
    json: JsonOption = False,
) -> None:
    """Measure proposers on multi-hop questions.

    The same protocols as `hl bench reasoning-gym`, over datasets with their corpora. HotpotQA counts
    as training, MuSiQue and 2WikiMultihopQA as unseen: tables keep them apart. A round's best
    candidate is taken outright (--select best), as second-hand accounts of the paper say.

    \b
    Examples:
      hl bench qa --dataset tiny --rounds 5 --chains 2
      hl bench qa --dataset "hotpotqa=hotpot.json?corpus=wiki.jsonl.gz" \\
         --dataset musique=musique.jsonl --dataset "2wiki=dev.json?aliases=id_aliases.json"
      hl bench qa --dataset musique=musique.jsonl --rounds 10 --chains 4 --independent 80 --dry-run
      hl bench qa --paper
    """
    from hl.bench.choice import qa_tasks

    tasks = qa_tasks(dataset or ["tiny"])
    carry_out(
        context,
        "qa",
        tasks,
        "-".join(task.family for task in tasks),
        Protocol(
            solver=solver,
            proposer=proposer,
            contexts=contexts,
            proposals=proposals,
            feedback=feedback,
            scoring=scoring,
            evaluation=evaluation,
            rounds=rounds,
            chains=chains,
            independent=independent,
            select=select,
            seed=seed,
            baselines=baselines,
            report=report,
        ),
        Controls(out, dry_run, max_calls, max_tokens, max_seconds, max_cost, paper, unsafe, json),
    )


@app.command("show")
def show(
    runs: Annotated[
        list[Path], typer.Argument(metavar="DIR...", help="Directories of bench runs, finished or not.")
    ],
    paper: Annotated[bool, typer.Option("--paper", help="Print the paper's own numbers too.")] = False,
    plots: Annotated[
        Path | None,
        typer.Option("--plots", metavar="FOLDER", help="Draw the runs' pictures into FOLDER/RUN again."),
    ] = None,
    grade: Annotated[
        str,
        typer.Option("--grade", metavar="GRADE", help="raw (QA: F1) or strict (QA: EM); else the run's own."),
    ] = "",
    json: JsonOption = False,
) -> None:
    """Print the tables of bench runs, side by side.

    \b
    Examples:
      hl bench show bench-runs/tiny --grade strict
      hl bench show bench-runs/base bench-runs/sft --paper
      hl bench show bench-runs/qa --paper --plots pictures
    """
    from hl.bench.compare import compare, paper_tables
    from hl.bench.plan import choose
    from hl.bench.results import read_results
    from hl.errors import HlError, RepositoryError
    from hl.ui.output import say

    unfit = (ArithmeticError, AssertionError, AttributeError, LookupError, TypeError, ValueError)
    if grade:
        choose(grade, ("raw", "strict"), "a --grade", "hl bench show --help")
    results = [read_results(run, grade) for run in runs]
    try:
        tables = compare([(r.name, r.manifest, r.rows) for r in results])
        if len(results) == 1:
            tables += results[0].tables
        for r in results:
            if r.unfinished:
                say(f"{r.name} is {r.unfinished}")
        if plots is not None:
            from hl.bench.plots import draw, folders

            for r, folder in zip(results, folders([r.name for r in results]), strict=True):
                (plots / folder).mkdir(parents=True, exist_ok=True)
                draw(plots / folder, r.manifest, r.rows, paper=paper)
    except OSError as error:
        raise HlError(f"--plots {plots} cannot be written: {error.strerror or error}.") from None
    except unfit as error:  # well-formed, but no run of ours
        names = ", ".join(str(run) for run in runs)
        raise RepositoryError(f"{names}: its manifest and rows do not fit together: {error!r}.") from None
    tables += paper_tables() if paper else []
    write_tables(tables, json=json)
