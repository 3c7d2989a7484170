"""The catalogue covers every family, and tracks keep clusters apart."""

import itertools

import pytest

from hl.errors import UsageError
from hl.tasks.catalogue import HIGH_FLOOR, Measured, catalogue, choose
from hl.tasks.families import FAMILIES
from hl.tasks.tracks import ROLES, TRACKS, Track, track


def clusters(names: tuple[str, ...]) -> set[str]:
    return {FAMILIES[name].cluster for name in names}


@pytest.mark.parametrize("name", TRACKS)
def test_no_cluster_is_both_trained_on_and_tested(name: str) -> None:
    chosen = track(name)
    for one, two in itertools.combinations((chosen.sft, chosen.rl, chosen.unseen), 2):
        assert not clusters(one) & clusters(two)
    assert clusters(chosen.near) <= clusters(chosen.sft + chosen.rl)
    named = [*chosen.sft, *chosen.rl, *chosen.unseen, *chosen.near, *chosen.excluded]
    assert len(named) == len(set(named)) and set(named) <= set(FAMILIES)
    assert all(chosen.excluded.values())
    for role in ROLES:
        assert {n for n in named if chosen.role(n) == role} == set(getattr(chosen, role))
    assert chosen.role("no such family") == ""


def test_the_papers_families_are_the_papers() -> None:
    paper = track("paper")
    assert paper.rl == ("codeio", "maze", "rotten_oranges", "simple_geometry", "tower_of_hanoi")
    assert set(paper.excluded) - {"composite"} == {
        "ab",
        "knight_swap",
        "letter_jumble",
        "modulo_grid",
        "sokoban",
    }
    assert len(paper.unseen) == len(clusters(paper.unseen)) == 21
    boundary = tuple(name for name in paper.excluded if name != "composite")
    assert not clusters(paper.unseen) & clusters(boundary)


def test_the_tiny_track_is_small() -> None:
    tiny = track("tiny")
    assert len(tiny.sft + tiny.rl) == 5 and len(tiny.unseen) == 8 and tiny.near


def test_every_family_is_measured_or_refused() -> None:
    assert list(catalogue()) == sorted(FAMILIES)
    for name, listing in catalogue().items():
        measured = listing.measured
        if measured is None:
            assert listing.family.status == "refused" or any("not measured" in d for d in listing.defects), (
                name
            )
            continue
        assert listing.family.status != "refused" and measured.floor_n >= 16 and measured.per_second > 0
        assert 0.0 <= measured.floor_strict <= measured.floor_raw <= 1.0
        assert 0 <= measured.dropped < measured.distinct <= measured.drawn
        if measured.floor_raw >= HIGH_FLOOR:
            assert any("constant answer" in defect for defect in listing.defects), name


def test_spaces_are_counted_or_estimated_or_large() -> None:
    def space(drawn: int, distinct: int, exhausted: bool = False) -> str:
        return Measured("games", drawn, distinct, 0, exhausted, 1.0, 0.0, "", 0.0, "", 64).space

    assert space(2000, 2000) == space(2000, 1970) == "large"
    assert space(2000, 216, exhausted=True) == "216"
    assert space(2000, 865) == "about 1,000"  # 1000 * (1 - exp(-2)) = 864.7


def test_filters_narrow_the_list_and_name_what_they_do_not_know() -> None:
    assert len(choose()) == len(FAMILIES)
    assert {x.family.name for x in choose(track_name="tiny", role="unseen")} == set(track("tiny").unseen)
    assert {x.family.cluster for x in choose(cluster="arc")} == {"arc"}
    both = {x.family.name for x in choose(role="unseen")}
    assert both == set(track("tiny").unseen) | set(track("paper").unseen)
    for wrong, near in (
        ({"track_name": "tinny"}, "'tinny' is not a track; did you mean 'tiny'"),
        ({"role": "unsen"}, "did you mean 'unseen'"),
        ({"cluster": "number theorie"}, "did you mean 'number theory'"),
        ({"role": "zzz"}, "there are sft, rl, unseen, near, excluded."),
    ):
        with pytest.raises(UsageError, match=near):
            choose(**wrong)


def test_tracks_are_values() -> None:
    assert Track("a", (), (), (), ()) == Track("a", (), (), (), ())
