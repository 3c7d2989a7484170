"""`hl bench`: the families of reasoning-gym, and what a proposer does to harnesses on them."""

from typing import TYPE_CHECKING, Annotated

import typer

from hl.commands.context import JsonOption, new_app

if TYPE_CHECKING:
    from hl.tasks.catalogue import Listing

app = new_app("""Look at the benchmarks' families.

Families are split by cluster: a track says which train a proposer and which test it.
""")


@app.callback()
def _group() -> None:  # pyright: ignore[reportUnusedFunction]
    # Without a callback typer takes a group of one command for that command.
    pass


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
