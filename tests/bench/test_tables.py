"""Tables say what they average, apart what must not be averaged, and who made the numbers."""

from dataclasses import replace
from typing import Any

from hl.bench.compare import compare, paper_tables
from hl.bench.markdown import escape, render_page
from hl.bench.rows import BASELINE, CHAIN, Row, in_grade
from hl.bench.table import Table
from hl.bench.tables import all_tables, render_cell, scopes
from tests.bench.kit import again, failed, head, revised, row, sample, scored, seed

MANIFEST: dict[str, Any] = {
    "benchmark": "reasoning-gym",
    "settings": {"proposals": 2, "report": "full"},
    "grade": "raw",
    "tasks": [],
    "solvers": {"s": {"engine": "llamacpp", "model": "smollm2"}},
    "proposers": {
        "p": {"engine": "catalog"},
        "q": {"engine": "openai", "model": "m", "base_url": "http://x/v1"},
    },
}


def cell(proposer: str, grades: list[float], **values: Any) -> list[Row]:
    rows = [
        seed([0, 0, 0, 1], proposer=proposer, **values),
        scored(0, grades, [1, 1], proposer=proposer, **values),
        failed(1, "not_found", proposer=proposer, **values),
        again("seed", [0, 0, 0, 1], proposer=proposer, **values),
    ]
    return rows


def lines(table: Table) -> dict[str, tuple[str, ...]]:
    return {line[0]: line[1:] for line in table.texts}


def named(tables: list[Table], title: str) -> Table:
    return next(t for t in tables if t.title.startswith(title))


def test_one_column_a_proposer_and_the_paired_difference_between_them() -> None:
    rows = [*cell("p", [1, 1, 0, 1]), *cell("q", [1, 1, 1, 1])]
    tables = all_tables(MANIFEST, rows)
    summary = named(tables, "One step, unseen families")
    assert summary.head == ("", "p", "q")
    found = lines(summary)
    assert [text.split(" ")[0] for text in found["mean of 2, failures 0"]] == ["0.375", "0.500"]
    assert found["failed proposals"] == ("50% (not_found 1)",) * 2
    assert found["A/A: the seed once more"] == ("+0.000 ± 0.000",) * 2
    assert summary.title.endswith("; raw grades") and "1 family" in summary.notes[0]
    difference = named(tables, "Paired comparison").texts[0]
    assert difference[0] == "q - p" and difference[2].startswith("+0.125")


def test_families_of_training_and_test_and_those_apart_are_never_one_mean() -> None:
    rows = [
        *cell("p", [1, 1, 1, 1]),
        *cell("p", [0, 0, 0, 0], family="maze", cluster="grids", role="rl"),
        *cell("p", [0, 0, 0, 0], family="bf", cluster="programs", role="near"),
        *cell("p", [0, 0, 0, 0], family="ab", cluster="strings", role="excluded"),
        *cell("p", [0, 0, 0, 0], family="gcd (varied)", task="reasoning-gym:gcd?answer_format=varied"),
    ]
    found = {title: {r.family for r in kept} for title, kept in scopes(rows)}
    assert found == {
        "unseen families": {"gcd"},
        "training families": {"maze"},
        "training and unseen families": {"gcd", "maze"},
        "near: untrained families of training clusters": {"bf"},
        "excluded: the hard boundary": {"ab"},
        "unseen families, format-varied questions": {"gcd (varied)"},
    }


def test_hand_made_harnesses_are_compared_with_the_seed() -> None:
    rows = [*cell("p", [1, 1, 1, 1]), row(BASELINE, name="cot", evaluation=sample([0, 1, 0, 1]))]
    table = named(all_tables(MANIFEST, rows), "Hand-made harnesses")
    assert table.texts[0][0] == "cot"
    assert table.texts[0][1].startswith("0.500") and table.texts[0][2].startswith("+0.250")


def test_runs_are_compared_and_say_who_made_them() -> None:
    table, *_ = compare(
        [("one", MANIFEST, cell("p", [1, 1, 0, 1])), ("two", MANIFEST, cell("q", [1, 1, 1, 1]))]
    )
    assert [(line[0], line[1]) for line in table.rows] == [("one", "p on s"), ("two", "q on s")]
    assert (
        table.notes[0]
        == "one: solver s = llamacpp smollm2; proposer p = catalog; q = openai m at http://x/v1"
    )


def test_the_paper_s_numbers_have_source_and_mark() -> None:
    figures, curves = paper_tables()
    assert figures.texts[0][:2] == ("reasoning-gym", "base") and figures.texts[0][3] == "0.317 ± 0.057"
    assert {line[-1] for line in figures.rows} == {"paper", "second-hand"}
    assert all(line[-2] for line in figures.rows)
    assert len(curves.rows) == 11 and curves.texts[10] == ("10", "0.268", "0.138")


def test_markdown_keeps_what_a_name_holds() -> None:
    text = render_page([Table("T", ("a", "b"), (("x|y", "1"),), ("a note",))], "Run")
    assert text == "# Run\n\n## T\n\n| a | b |\n|---|---:|\n| x\\|y | 1 |\n\n- a note\n"
    assert escape("<b>`a`\n[l](u) *x* \\| $y$ &lt;") == (r"\<b\>\`a\` \[l\](u) \*x\* \\\| \$y\$ \&lt;")


def test_a_finished_cell_on_one_line() -> None:
    assert render_cell(cell("p", [1, 1, 0, 1])) == (
        "seed 0.250, mean 0.375, oracle 0.750; not_found 1, scored 1"
    )


def test_no_table_of_means_mixes_the_two_forms_of_a_question() -> None:
    rows = [
        row("baseline", name="cot", harness="b", evaluation=sample([1, 1])),
        seed([0, 0]),
        row("baseline", name="cot", harness="b", evaluation=sample([0, 0]), **VARIED_GCD),
        seed([0, 0], **VARIED_GCD),
    ]
    titles = [t.title for t in all_tables(MANIFEST, rows) if t.title.startswith("Hand-made harnesses")]
    assert titles == [
        "Hand-made harnesses: unseen families; raw grades",
        "Hand-made harnesses: unseen families, format-varied questions; raw grades",
    ]


VARIED_GCD = {"family": "gcd (varied)", "task": "reasoning-gym:gcd?answer_format=varied"}


def found_in(tables: list[Table], title: str, measure: str) -> Any:
    rows = named(tables, title).record["rows"]
    return next(r for r in rows if r["measure"] == measure)


def test_arms_average_the_contexts_that_all_of_them_have() -> None:
    whole = [*cell("p", [1, 1, 1, 1]), *cell("p", [0, 0, 0, 0], family="lcm")]
    tables = all_tables(MANIFEST, [*whole, *cell("q", [1, 1, 1, 1])])
    means = found_in(tables, "One step", "failures_zero")
    assert means["p"]["mean"] == means["q"]["mean"] == 0.5 and means["p"]["contexts"] == 1
    assert "p: 1 context left out that not every proposer has" in named(tables, "One step").notes
    notes = named(all_tables(MANIFEST, whole), "One step").notes
    assert "no finished cell yet: q" in notes
    assert found_in(all_tables(MANIFEST, whole), "One step", "seed")["p"]["contexts"] == 2


def test_a_table_says_what_its_numbers_do_not_hold() -> None:
    rows = [*cell("p", [1, 1, 1, 1]), failed(2, "lost", proposer="p")]
    rows += cell("p", [1, 1, 1, 1], family="maze", cluster="grids")
    table = named(all_tables(MANIFEST, rows), "One step")
    assert "p: 1 proposal lost through no fault of the proposer" in " ".join(table.notes)
    assert "one context a family: the spread between contexts is unmeasured" in table.notes
    assert "(2 clusters: too few for an interval)" in lines(table)["  95 %, over clusters"][0]
    same = [seed([0, 1]), scored(0, [0, 1], [0, 0], behavioural_noop=True)]
    share = found_in(all_tables(MANIFEST, same), "One step", "noop")
    assert share["p"] == 1.0


def test_contexts_that_met_the_same_questions_are_told_of() -> None:
    one = cell("p", [1, 1, 0, 0])
    other = cell("p", [1, 1, 0, 0], block=2, cell="gcd-2")
    once = cell("p", [1, 1, 0, 0], family="lcm")
    notes = named(all_tables(MANIFEST, [*one, *other, *once]), "One step").notes
    assert "too few questions for contexts that all differ; different ones: gcd 1" in notes
    notes = named(all_tables(MANIFEST, [*one, *once]), "One step").notes
    assert not any("different ones" in note for note in notes)


def test_every_gain_stands_beside_its_floor() -> None:
    noisy = [again("seed", [1, 0, 0, 1], proposer="p"), row(BASELINE, name="cot", evaluation=sample([1] * 4))]
    rows = [*cell("p", [1, 1, 1, 1])[:3], *noisy, *cell("q", [1, 1, 1, 1])[:3], *noisy[:1]]
    tables = all_tables(MANIFEST, rows)
    single = found_in(tables, "One step", "gain_chosen_floor")["p"]
    assert single > found_in(tables, "One step", "gain_mean_floor")["p"] > 0
    assert found_in(tables, "One step", "gain_mean_above")["p"] is False
    assert named(tables, "By family, p").record["rows"][0]["floor"] > 0
    assert named(tables, "Hand-made").record["rows"][0]["floor"] == single
    assert (
        named(tables, "Paired comparison").record["rows"][0]["floor"] == 0
    )  # both measured the same harness
    assert compare([("one", MANIFEST, rows)])[0].record["rows"][0]["floor"] > 0


def test_a_table_shows_one_grade_and_says_which() -> None:
    rows = [seed([0.5, 0]), scored(0, [1, 0.5], [0, 1])]
    for grade, start, end in (("raw", 0.25, 0.75), ("strict", 0.0, 0.5)):
        tables = all_tables({**MANIFEST, "grade": grade}, rows)
        assert {t.record["grade"] for t in tables} == {f"{grade}"}
        assert all(t.title.endswith(f"; {grade} grades") for t in tables)
        assert found_in(tables, "One step", "seed")["p"]["mean"] == start
        assert found_in(tables, "One step", "chosen")["p"]["mean"] == end
    table = compare([("one", {**MANIFEST, "benchmark": "qa", "grade": "strict"}, in_grade(rows, "strict"))])[
        0
    ]
    assert table.record["grade"] == "EM" and table.record["rows"][0]["seed"]["mean"] == 0.0


def test_runs_are_subtracted_only_where_they_measured_the_same_questions() -> None:
    one, two = cell("p", [1, 0, 0, 1]), cell("q", [1, 1, 1, 1])
    first, second = {**MANIFEST, "proposers": {"p": {}}}, {**MANIFEST, "proposers": {"q": {}}}
    runs, difference = compare([("one", first, one), ("two", second, two)])
    assert "two and one measured the same questions" in runs.notes
    line = difference.record["rows"][0]
    assert (line["runs"], line["of"], line["difference"]["mean"]) == ("two - one", "failures_zero", 0.25)
    assert {"low", "high", "se"} <= set(line["fixed"]) and line["floor"] == 0.0
    others = [replace(r, evaluation=replace(r.evaluation, questions="x")) for r in two if r.evaluation]
    (runs,) = compare([("one", first, one), ("two", second, others)])
    assert any("measured different questions of gcd" in note for note in runs.notes)


def test_chains_of_two_runs_are_subtracted_after_the_rounds_that_both_have() -> None:
    def chain(proposer: str, *heads: list[float]) -> list[Row]:
        at: dict[str, Any] = {"protocol": CHAIN, "proposer": proposer}
        rows = [seed([0, 0], **at)]
        for n, grades in enumerate(heads, start=1):
            own = {**at, "round": n, "harness": f"h{n}"}
            rows += [
                revised(n, [0, 0], **at),
                scored(0, grades, [1, 0], **own),
                head(n, f"h{n}", grades, **at),
            ]
        return rows

    first, second = {**MANIFEST, "proposers": {"p": {}}}, {**MANIFEST, "proposers": {"q": {}}}
    runs = [("one", first, chain("p", [1, 0])), ("two", second, chain("q", [1, 1], [0, 0]))]
    line = compare(runs)[1].record["rows"][0]
    assert (line["of"], line["difference"]["mean"]) == ("head", 0.5)
    assert compare(runs)[1].texts[0][2] == "head, after 1 round"
