"""What chains and independent proposals took, by hand."""

from hl.bench.costs import spent
from hl.bench.rows import CHAIN, INDEPENDENT
from tests.bench.kit import failed, head, revised, scored, seed


def test_rounds_and_evaluation_are_counted_apart() -> None:
    at = {"protocol": INDEPENDENT}
    rows = [
        seed([0, 0], **at),
        revised(1, [0], **at),
        scored(0, [1, 1], [1], proposer_tokens=7, **at),
        scored(1, [1, 0], [1], proposer_tokens=5, **at),
        failed(2, "malformed", proposer_tokens=3, **at),
    ]
    found = spent(rows, ("s", "p"), INDEPENDENT)
    assert found is not None and spent(rows, ("s", "p"), CHAIN) is None
    # The round's own numbers, its parent's scoring among them: not those of the rows beside it once more.
    assert (found.calls, found.tokens, found.paid_calls, found.paid_tokens) == (10, 100, 6, 60)
    assert (found.proposals, found.proposer_tokens) == (3, 15)
    # The seed and two candidates on two questions, one call and ten tokens each.
    assert (found.evaluation_calls, found.evaluation_tokens) == (6, 60)


def test_a_chain_is_the_mean_over_chains_and_a_head_is_not_paid_for_again() -> None:
    rows = [
        row
        for block in (1, 2)
        for row in (
            seed([0], protocol=CHAIN, block=block),
            revised(1, [0], protocol=CHAIN, block=block),
            scored(0, [1], [1], harness="a", protocol=CHAIN, block=block),
            head(1, "a", [1], protocol=CHAIN, block=block),
            revised(2, [1], protocol=CHAIN, block=block),
            head(2, "a", [1], protocol=CHAIN, block=block),
        )
    ]
    found = spent(rows, ("s", "p"), CHAIN)
    assert found is not None
    assert (found.calls, found.paid_calls, found.evaluation_calls, found.proposals) == (20, 12, 2, 1)
