"""`--dry-run` and the limits of a run, as bench and train share them. No verb of its own."""

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from hl.solver import RunLimits

DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Say what it would need, and do nothing.")]
MaxCallsOption = Annotated[
    int | None, typer.Option("--max-calls", metavar="N", help="Stop before more model calls.")
]
MaxTokensOption = Annotated[
    int | None, typer.Option("--max-tokens", metavar="N", help="Stop after that many tokens.")
]
MaxSecondsOption = Annotated[
    float | None, typer.Option("--max-seconds", metavar="S", help="Stop after that many seconds.")
]
MaxCostOption = Annotated[
    float | None, typer.Option("--max-cost", metavar="MONEY", help="Stop after that much money.")
]


def limits_of(
    verb: str,
    max_calls: int | None,
    max_tokens: int | None,
    max_seconds: float | None,
    max_cost: float | None,
) -> "RunLimits":
    """The limits of a run.

    Args:
        verb: Whose `--help` tells more, such as `train sft`.
        max_calls: As typed, and so the others.
        max_tokens: Prompt and reply.
        max_seconds: Of the run's parts together.
        max_cost: In the currency of the prices.

    Raises:
        UsageError: One is not above 0.
    """
    from hl.errors import UsageError
    from hl.solver import RunLimits

    given = {"calls": max_calls, "tokens": max_tokens, "seconds": max_seconds, "cost": max_cost}
    for name, value in given.items():
        # Not `value <= 0`: that would let nan through, a limit that is never reached.
        if value is not None and not value > 0:
            raise UsageError(f"--max-{name} {value:g}: must be above 0.", hint=f"hl {verb} --help")
    return RunLimits(max_calls, max_tokens, max_seconds, max_cost)
