"""What `hl train sft` and `hl train grpo` do: settings and rows -> a run, and its result shown. No verb itself."""

import shlex
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hl.solver import RunLimits
    from training.estimate import Estimate
    from training.settings import Settings
    from training.sft import Pair


def run_sft(settings: "Settings", data: Path, out: Path | None, *, dry_run: bool, json: bool) -> None:
    """Learn from the kept rows of a data set.

    Raises:
        UsageError: No --out, or another run's.
        RepositoryError: `data` is no data set.
        MissingExtraError: torch and its company are not installed.
    """
    rows = _kept(data)
    if dry_run:
        from training.estimate import estimate_sft

        show_estimate(estimate_sft(settings, len(rows)), json=json)
        return
    place = _needed(out)
    from hl.ui import clean, say, write_json
    from training.sft import train

    trained = _told(lambda tell: train(settings, rows, place, command=_command(), tell=tell), json=json)
    if trained.too_long:
        from hl.ui import warn

        warn(f"{len(trained.too_long)} rows do not fit and were left out: {', '.join(trained.too_long[:8])}")
    if json:
        from hl.codec import encode

        write_json("trained", {**encode(trained), "adapter": str(trained.adapter)})
        return
    for name, found in (("prompt", trained.prompt), ("reply", trained.reply)):
        print_line(f"{name} tokens: least {found.least}, median {found.median:g}, most {found.most}")
    held = ", ".join(trained.validation) or "none"
    print_line(f"rows: {trained.train} in {trained.updates} updates; validation families: {clean(held)}")
    _figures(trained.first, trained.last, (("loss", "loss"), ("eval_loss", "validation loss")))
    print_line(f"adapter: {clean(str(trained.adapter))}")
    say(f"next: hl train grpo --adapter {shlex.quote(str(trained.adapter))} --out DIR")


def run_grpo(
    settings: "Settings",
    out: Path | None,
    limits: "RunLimits",
    *,
    unsafe: bool,
    dry_run: bool,
    json: bool,
) -> None:
    """Learn from what the model's own edits score.

    Raises:
        UsageError: No --out, another run's, or settings that do not fit together.
        StoppedEarly: A limit was reached; the same command goes on.
        EngineError: An engine fails, or too many replies have no reward.
        MissingExtraError: torch and its company are not installed.
    """
    if dry_run:
        from training.estimate import estimate_grpo

        show_estimate(estimate_grpo(settings), json=json)
        return
    place = _needed(out)
    from hl.ui import clean, write_json
    from hl.workspace import Switches
    from training.grpo import train

    trained = _told(
        lambda tell: train(
            settings,
            place,
            command=_command(),
            limits=limits,
            switches=Switches(unsafe=unsafe),
            tell=tell,
        ),
        json=json,
    )
    if json:
        from hl.codec import encode

        write_json("trained", {**encode(trained), "adapter": str(trained.adapter)})
        return
    shown = (
        ("reward", "reward"),
        ("rewards/J/mean", "J of candidates"),
        ("hl/parent", "J of parents"),
        ("rewards/build/mean", "built"),
        ("hl/zero_variance", "groups without a signal"),
    )
    _figures(trained.first, trained.last, shown)
    print_line(f"adapter: {clean(str(trained.adapter))} after {trained.updates} updates")


def run_distance(
    settings: "Settings", first: Path | None, second: Path, contexts: Path, *, json: bool
) -> None:
    """Say how far one adapter is from another.

    Raises:
        RepositoryError: `contexts` holds something else.
        UsageError: It holds no context.
        EngineError: An adapter does not fit the base.
        MissingExtraError: torch and its company are not installed.
    """
    from hl.ui import clean, write_json
    from hl.ui.progress import Snapshot, open_progress
    from training.contexts import load_contexts
    from training.distance import measure

    chosen = load_contexts(contexts)
    with open_progress(quiet=json) as display:
        found = measure(
            settings,
            first,
            second,
            chosen,
            lambda what, done, total: display.update(Snapshot(what, done, total)),
        )
    if json:
        from hl.codec import encode

        write_json("distance", encode(found))
        return
    print_line(f"from {clean(found.first)} to {clean(found.second)} on {found.kl.n} contexts")
    print_line(
        f"KL a token: {found.kl.mean:.3g} ± {found.kl.se:.2g} nats over {found.replies} replies of "
        f"{found.tokens:,} tokens"
    )
    print_line(
        f"greedy replies that agree: {found.agreement.mean:.0%} ± {found.agreement.se:.0%} of contexts"
    )


def print_line(text: str) -> None:
    """One line of the result."""
    import typer

    typer.echo(text)


def _figures(first: Mapping[str, Any], last: Mapping[str, Any], shown: tuple[tuple[str, str], ...]) -> None:
    for key, title in shown:
        a, b = first.get(key), last.get(key)
        if isinstance(b, (int, float)):
            before = f"{a:.3f} -> " if isinstance(a, (int, float)) else ""
            print_line(f"{title}: {before}{b:.3f}")


def _told(work: Callable[[Callable[[str, int, int], None]], Any], *, json: bool) -> Any:
    """Carry it out with progress on stderr; Ctrl-C leaves a line that says how to go on."""
    from hl.errors import StoppedEarly
    from hl.ui import say
    from hl.ui.progress import Snapshot, open_progress

    with open_progress(quiet=json) as display:
        try:
            return work(lambda what, done, total: display.update(Snapshot(what, done, total)))
        except KeyboardInterrupt:
            say("stopped; checkpoints and measurements are kept, and the same command goes on")
            raise
        except StoppedEarly as stop:
            raise StoppedEarly(stop.message, hint="the same command with a higher limit goes on") from None


def _kept(data: Path) -> "list[Pair]":
    from training.data import load_rows

    return [(row.context, row.reply) for row in load_rows(data) if row.kept]


def _needed(out: Path | None) -> Path:
    from hl.errors import UsageError

    if out is None:
        raise UsageError("--out is missing: where shall the adapter go?", hint="--out DIR")
    return out


def _command() -> str:
    return shlex.join(["hl", *sys.argv[1:]])


def show_estimate(found: "Estimate", *, json: bool) -> None:
    """Print what a run would need."""
    from hl.codec import encode
    from hl.ui import write_json
    from training.estimate import ASSUMED

    if json:
        write_json("estimate", {**encode(found), "assumed": list(ASSUMED)})
        return
    print_line(f"{found.updates:,} updates over {found.rows:,} rows")
    if found.attempts:
        print_line(f"harness runs at most: {found.attempts:,}")
        print_line(
            f"estimate: {found.solver_tokens:,} tokens of the solver (one call of a guessed length a run)"
        )
    print_line(f"estimate: {found.model_tokens:,} tokens through the model that is trained")
    if found.memory_gb is None or found.hours is None:
        print_line("estimate: no memory and no hours, since the base is of unknown size here")
        return
    print_line(f"estimate: at most {found.memory_gb:.1f} GB of memory a process")
    h = found.hours
    parts = f"sampling {h.sampling:.2g}, solver {h.solver:.2g}, updates {h.updates:.2g}"
    print_line(f"estimate: {h.total:.2g} hours ({parts}) with one H100 a process and a server")
    for assumed in ASSUMED:
        print_line(f"assumed: {assumed}")
