"""Pictures, from rows by hand."""

from pathlib import Path

import pytest

from hl.bench.plots import draw, folders
from hl.bench.rows import CHAIN, INDEPENDENT, Row
from tests.bench.kit import head, revised, scored, seed

PNG = b"\x89PNG"


def manifest(*proposers: str) -> dict[str, object]:
    settings = {"proposals": 1}
    return {
        "solvers": {"s": {}},
        "proposers": {p: {} for p in proposers},
        "settings": settings,
        "benchmark": "reasoning-gym",
        "grade": "raw",
    }


def step(**at: object) -> list[Row]:
    return [seed([0, 1], **at), scored(0, [1, 1], [1, 1], **at)]


def chain(**at: object) -> list[Row]:
    at = {"protocol": CHAIN, **at}
    return [*step(**at), revised(1, [0, 0], **at), head(1, "h0", [1, 1], **at)]


def test_each_group_of_families_has_its_own_pictures(tmp_path: Path) -> None:
    varied = {"family": "gcd (varied)", "task": "reasoning-gym:gcd?answer_format=varied"}
    rows = [*step(), *step(family="maze", role="rl"), *step(**varied), *step(family="lcm", role="near")]
    written = draw(tmp_path, manifest("p"), rows)
    groups = [
        "unseen-families",
        "training-families",
        "training-and-unseen-families",
        "near",
        "unseen-families-format-varied-questions",
    ]
    assert written == tuple(f"bars-{group}.{kind}" for group in groups for kind in ("png", "svg"))
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted(written)
    assert all((tmp_path / name).read_bytes().startswith(PNG) for name in written[::2])


def test_curves_with_independent_proposals_and_the_same_rows_give_the_same_picture(tmp_path: Path) -> None:
    alone = {"protocol": INDEPENDENT, "cell": "gcd-independent"}
    rows = [*chain(proposer="p"), *chain(proposer="q", cell="q"), *step(**alone)]
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        assert draw(tmp_path / folder, manifest("p", "q"), rows, paper=True) == (
            "curves-unseen-families.png",
            "curves-unseen-families.svg",
        )
    for name in ("curves-unseen-families.png", "curves-unseen-families.svg"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()


@pytest.mark.parametrize("name", [r"$\frac{$", "_hidden", "\u4e2d\u6587", "../../x", "a" * 500, "two\nlines"])
def test_a_name_from_a_run_is_drawn_as_it_is_and_is_no_part_of_a_path(name: str, tmp_path: Path) -> None:
    # Warnings are errors here: a glyph that is missing, a formula that is none, a label that is left out.
    rows = [*step(proposer=name, family=name), *chain(proposer=name, family=name)]
    written = draw(tmp_path, manifest(name, "other"), rows)
    assert {n.partition(".")[0] for n in written} == {"bars-unseen-families", "curves-unseen-families"}
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted(written)


def test_runs_of_one_name_have_a_folder_each() -> None:
    assert folders(["tiny", "tiny", "tiny-2", "/", "a b"]) == ["tiny", "tiny-2", "tiny-2-2", "run", "a-b"]
