"""Rows by hand: cells whose every grade is written down."""

from collections.abc import Sequence

from hl.bench.rows import AGAIN, HEAD, PROPOSAL, ROUND, SEED, SINGLE, Row, Sample, Took


def sample(grades: Sequence[float | None], *, calls: int = 1, tokens: int = 10, block: str = "e") -> Sample:
    n = len(grades)
    strict = tuple(None if g is None else float(g >= 1) for g in grades)
    return Sample(tuple(grades), strict, block, n, n * calls, n * tokens)


def row(kind: str, *, family: str = "gcd", cluster: str = "numbers", block: int = 1, **values: object) -> Row:
    """A row of the cell `<family>-<block>`."""
    fields: dict[str, object] = {
        "cell": f"{family}-{block}",
        "protocol": SINGLE,
        "kind": kind,
        "task": f"reasoning-gym:{family}",
        "family": family,
        "cluster": cluster,
        "role": "unseen",
        "solver": "s",
        "proposer": "p",
        "block": block,
        **values,
    }
    return Row(**fields)  # pyright: ignore[reportArgumentType]


def seed(grades: Sequence[float | None], **values: object) -> Row:
    values = {"harness": "seed", "scoring": sample([0, 0], block="s"), **values}
    return row(SEED, evaluation=sample(grades), **values)


def scored(index: int, grades: Sequence[float | None], scoring: Sequence[float], **values: object) -> Row:
    values = {"harness": f"h{index}", "round": 1, **values}
    return row(
        PROPOSAL,
        index=index,
        outcome="scored",
        scoring=sample(scoring, block="s"),
        evaluation=sample(grades),
        **values,
    )


def failed(index: int, outcome: str, **values: object) -> Row:
    return row(PROPOSAL, **{"index": index, "outcome": outcome, "round": 1, **values})


def again(harness: str, grades: Sequence[float | None], **values: object) -> Row:
    return row(AGAIN, harness=harness, evaluation=sample(grades), **values)


def head(number: int, harness: str, grades: Sequence[float | None], **values: object) -> Row:
    return row(HEAD, round=number, harness=harness, evaluation=sample(grades), **values)


def revised(number: int, scoring: Sequence[float], **values: object) -> Row:
    """What a round of a chain revised, on the round's scoring block, and what the round took."""
    values = {"took": Took(10, 100, 6, 60), **values}
    return row(ROUND, round=number, scoring=sample(scoring, block="s"), **values)
