"""`hl bench families`, as typed."""

import json

from hl.tasks.families import FAMILIES
from hl.tasks.tracks import track


def test_families_are_listed_with_what_is_known_of_them(hl) -> None:
    done = hl("bench", "families")
    assert (done.code, done.err) == (0, "")
    head, *lines = done.out.splitlines()
    names = "family cluster questions a second floor raw strict grading paper tiny defects"
    assert " ".join(head.split()) == names
    assert [line.split()[0] for line in lines] == sorted(FAMILIES)
    coins = next(line for line in lines if line.startswith("coin_flip"))
    assert "260" in coins and "rescored" in coins and "few different questions" in coins


def test_families_as_json(hl) -> None:
    done = hl("bench", "families", "--track", "tiny", "--role", "excluded", "--json")
    records = [json.loads(line) for line in done.out.splitlines()]
    assert [r["name"] for r in records] == sorted(track("tiny").excluded)
    assert {(r["schema"], r["kind"], r["roles"]["tiny"]) for r in records} == {(1, "family", "excluded")}
    assert all(r["excluded"]["tiny"] for r in records)
    one = next(r for r in records if r["name"] == "syllogism")
    assert one["measured"]["floor_raw"] > 0.5 and one["space"] == "large" and one["defects"]


def test_a_wrong_filter_is_named(hl) -> None:
    for option, value, near in (
        ("--track", "papers", "paper"),
        ("--role", "test", ""),
        ("--cluster", "grid", "grids"),
    ):
        done = hl("bench", "families", option, value)
        assert (done.code, done.out) == (2, ""), option
        assert value in done.err and near in done.err and "hint: hl bench families" in done.err
