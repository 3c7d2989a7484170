"""Tables of chains, from rows by hand."""

from hl.bench.chain_tables import chain_tables
from hl.bench.rows import CHAIN, INDEPENDENT, Row
from tests.bench.kit import head, revised, scored, seed

MANIFEST = {"settings": {"proposals": 1}, "grade": "raw", "benchmark": "reasoning-gym"}


def chain(proposer: str, grades: list[float], *, family: str = "gcd", block: int = 1) -> list[Row]:
    """One round, whose proposal becomes the head."""
    at = {"protocol": CHAIN, "proposer": proposer, "family": family, "block": block}
    at["cell"] = f"{family}-{proposer}-chain-{block}"
    return [
        seed([0, 0], **at),
        revised(1, [0], **at),
        scored(0, grades, [1], **at),
        head(1, "h0", grades, **at),
    ]


def test_several_proposers_give_one_table_and_one_comparison() -> None:
    rows = [*chain("p", [1, 0]), *chain("q", [1, 1]), *chain("q", [1, 1], family="lcm")]
    curves, paired, costs = chain_tables(MANIFEST, rows, [("s", "p"), ("s", "q")])
    assert [row[:2] for row in curves.texts] == [("p", "0"), ("p", "1"), ("q", "0"), ("q", "1")]
    assert curves.texts[0][2].startswith("0.000 ±") and curves.texts[0][3] == "-"
    assert curves.texts[3][3].startswith("+1.000 ±") and curves.texts[3][4] == "[+1.000, +1.000]"
    assert [row[:3] for row in paired.texts] == [
        ("q - p", "head", paired.texts[0][2]),
        ("q - p", "best so far, by scoring", paired.texts[1][2]),
    ]
    assert paired.texts[0][2].startswith("+0.500 ±")
    assert [row[:2] for row in costs.texts] == [("p", "a chain"), ("q", "a chain")]
    # lcm is not finished for p.
    assert any("q: 1 chain left out" in note for note in curves.notes)
    assert any("the spread between chains is unmeasured" in note for note in curves.notes)
    # For machines: numbers under stable names.
    last = curves.record["rows"][3]
    assert (last["round"], last["gain"]["mean"], last["chosen"]["mean"]) == (1, 1.0, 1.0)
    assert costs.record["rows"][0]["paid_calls"] == 6


def test_independent_proposals_stand_below_the_rounds_and_no_number_is_nan() -> None:
    alone = {"protocol": INDEPENDENT, "cell": "gcd-independent"}
    rows = [*chain("p", [1, 0]), seed([0, 0], **alone), revised(1, [0, 0], **alone)]
    rows += [scored(0, [1, 1], [0, 0], **alone), scored(1, [1, 0], [1, 0], **alone)]
    curves, costs = chain_tables(MANIFEST, rows, [("s", "p")])
    last = curves.texts[-1]
    assert last[:3] == ("p", "2 independent", "-")
    # Chosen on scoring, oracle, mean.
    assert [cell[:5] for cell in last[8:]] == ["0.500", "1.000", "0.750"]
    assert [row[:3] for row in costs.texts] == [("p", "a chain", "1"), ("p", "independent", "2")]
    words = " ".join(cell for table in (curves, costs) for row in table.texts for cell in row)
    assert "nan" not in words
    assert any("replies from the cache are counted" in note for note in costs.notes)


def test_rounds_that_met_the_same_questions_are_told_of() -> None:
    at = {"protocol": CHAIN, "cell": "gcd-p-chain-1"}
    rows = [*chain("p", [1, 0]), revised(2, [1], **at), head(2, "h0", [1, 0], **at)]
    curves, _ = chain_tables(MANIFEST, rows, [("s", "p")])
    assert any(
        note.endswith("a new scoring block every round, different ones: gcd 1") for note in curves.notes
    )
    curves, _ = chain_tables(MANIFEST, chain("p", [1, 0]), [("s", "p")])
    assert not any("different ones" in note for note in curves.notes)
