"""Question answering: the published formats, what is wrong with a file, the grader, and where a corpus may lie."""

import asyncio
import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from hl.errors import HlError, MissingExtraError, RepositoryError, UsageError
from hl.tasks import qa_files
from hl.tasks.base import FunctionOutcome, locate, open_grader, open_task, selected_grade
from hl.tasks.passages import render_passage
from hl.tasks.qa import CORPUS_DIGEST, CORPUS_FILE, answer_f1, task_corpus
from hl.tasks.questions import load_sets, write_sets
from hl.types import Gold, Grade, Role

SIZES = dict(zip(Role, (4, 8, 8, 16), strict=True))


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HL_CACHE_DIR", str(tmp_path / "cache"))


def hotpot(i: int, **more: Any) -> dict[str, Any]:
    context = [[f"Page {i}", [f"It is number {i}.", " It is odd."]], ["Shared", ["Everyone has it."]]]
    row = {"_id": f"x{i}", "question": f"Which is number {i}?", "answer": f"Page {i}", "context": context}
    return {**row, "supporting_facts": [[f"Page {i}", 0]], "type": "bridge", "level": "hard", **more}


def musique(i: int, **more: Any) -> dict[str, Any]:
    paragraphs = [{"idx": 0, "title": f"Page {i}", "paragraph_text": f"It is {i}.", "is_supporting": True}]
    row = {"id": f"2hop__{i}", "question": f"Which is number {i}?", "answer": f"Page {i}"}
    return {**row, "paragraphs": paragraphs, "answer_aliases": [f"P{i}"], "answerable": True, **more}


def write_array(path: Path, rows: list[Any], indent: int | None = None) -> Path:
    path.write_text(json.dumps(rows, indent=indent), encoding="utf-8")
    return path


def write_lines(path: Path, rows: list[Any]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


async def no_function(source: str, name: str, args: Any) -> FunctionOutcome:
    raise AssertionError("nothing of a question-answering task runs in the sandbox")


def grade(metric: str, answers: list[str], answer: str) -> Grade:
    gold = Gold("0" * 16, answers[0], json.dumps({"answers": answers}))
    return asyncio.run(open_task(f"qa:tiny?metric={metric}").grader(no_function).grade(gold, answer))


# --- the published formats ---------------------------------------------------------------------------------


@pytest.mark.parametrize("indent", [None, 1])
@pytest.mark.parametrize("name", ["hotpotqa", "2wiki"])
def test_an_array_is_read_a_record_at_a_time(
    tmp_path: Path, name: str, indent: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(qa_files, "CHUNK", 100)
    rows = [hotpot(i, evidences=[["a", "b", "c"]]) for i in range(50)]
    write_array(tmp_path / "dev.json", rows, indent)
    made = open_task(f"qa:{name}?path=dev.json", root=tmp_path).generate(SIZES)
    assert made.distinct == made.drawn == 50
    chosen = [q.text for role in Role for q in made.sets.of(role).questions]
    assert len(chosen) == len(set(chosen)) == 36
    (kept,) = made.files
    passages = [json.loads(line) for line in kept[1].splitlines()]
    # The passages of the chosen questions, each once, and no others.
    assert kept[0] == CORPUS_FILE and len(passages) == 37
    assert {"title": "Shared", "text": "Everyone has it."} in passages
    assert all(
        "It is odd." in p["text"] and "  " not in p["text"] for p in passages if p["title"] != "Shared"
    )
    assert "37 passages that come with the chosen questions" in made.note and "add &corpus=FILE" in made.note


def test_lines_with_aliases_and_unanswerable_ones(tmp_path: Path) -> None:
    rows = [musique(i) for i in range(40)] + [musique(99, answerable=False), musique(3)]
    path = write_lines(tmp_path / "dev.jsonl", rows)
    packed = tmp_path / "dev.jsonl.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    made = open_task("qa:musique?path=dev.jsonl", root=tmp_path).generate(SIZES)
    assert made.sets == open_task("qa:musique?path=dev.jsonl.gz", root=tmp_path).generate(SIZES).sets
    assert made.distinct == 40 and "2 records of" in made.note
    gold = made.sets.evaluation.golds[0]
    assert json.loads(gold.entry)["answers"] == [gold.answer, f"P{str(gold.answer).split()[1]}"]
    # The same questions, whatever their order in the file.
    write_lines(path, rows[::-1])
    assert open_task("qa:musique?path=dev.jsonl", root=tmp_path).generate(SIZES).sets == made.sets


def test_nothing_of_a_record_breaks_a_line() -> None:
    row = musique(1, question="Who?\x00\nAnswer: me", answer="a\u2028b")
    row["paragraphs"] = [{"title": "A\x85B", "paragraph_text": "One.\r\nForged: two.\x1b[2J\ud800"}]
    record = qa_files.parse_record("row 1", row)
    assert record.question == "Who? Answer: me" and record.answers == ("a b", "P1")
    assert record.passages == (("A B", "One. Forged: two. [2J?"),)


def test_the_hub_s_form_of_a_context_is_the_same_record() -> None:
    row = hotpot(1, context={"title": ["Page 1"], "sentences": [["It is 1.", "It is odd."]]})
    assert qa_files.parse_record("row 1", row).passages == (("Page 1", "It is 1. It is odd."),)


def test_a_folder_of_parquet_is_read_as_the_hub_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    datasets = pytest.importorskip("datasets", reason="the extra hl[qa] is not installed")
    context = {"title": ["Page", "Shared"], "sentences": [["It is one.", " It is odd."], ["All have it."]]}
    rows = [hotpot(i, context=context, supporting_facts=None) for i in range(40)]
    (tmp_path / "data").mkdir()
    datasets.Dataset.from_list(rows).to_parquet(tmp_path / "data" / "validation.parquet")
    monkeypatch.chdir(tmp_path)
    made = open_task("qa:hotpotqa?hub=./data&split=validation").generate(SIZES)
    write_array(
        tmp_path / "dev.json",
        [hotpot(i, context=list(zip(*context.values(), strict=True))) for i in range(40)],
    )
    from_file = open_task("qa:hotpotqa?path=dev.json").generate(SIZES)
    assert (made.sets, made.files) == (from_file.sets, from_file.files) and made.distinct == 40
    with pytest.raises(HlError, match=r"./data \(test\) cannot be read from the hub: .*split") as wrong:
        open_task("qa:hotpotqa?hub=./data&split=test").generate(SIZES)
    assert "path=FILE" in str(wrong.value.hint)
    rows[6]["context"] = {"title": ["Page"], "sentences": []}
    datasets.Dataset.from_list(rows).to_parquet(tmp_path / "data" / "validation.parquet")
    with pytest.raises(UsageError, match=r"./data, validation, row 7: 'context' has 1 titles and 0 lists"):
        open_task("qa:hotpotqa?hub=./data&split=validation").generate(SIZES)


def test_the_hub_needs_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "datasets", None)
    with pytest.raises(MissingExtraError) as failure:
        open_task("qa:hotpotqa").generate(SIZES)
    assert failure.value.exit_code == 8 and "harness-learning[qa]" in str(failure.value.hint)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ('{"question": "a", ', r"dev.jsonl:17 is not JSON: .* at column"),
        ([1], r"dev.jsonl:17 is not a JSON object"),
        ({"answer": "a"}, r"dev.jsonl:17 has no 'question'"),
        ({"question": "a"}, r"dev.jsonl:17 has no 'answer'; the published test files have none"),
        (musique(77, answer=""), r"dev.jsonl:17: 'answer' and 'answer_aliases' must be texts"),
        (musique(77, paragraphs=[{"title": "a"}]), r"dev.jsonl:17: a paragraph has no"),
        (hotpot(77, context=[["a", "b"]]), r"dev.jsonl:17: 'context' must hold pairs"),
        ("[" * 100_000, r"dev.jsonl:17 is not JSON: it is nested too deeply$"),
        ('{"question": "a\x01"}', r"dev.jsonl:17 is not JSON: Invalid control character at column 16$"),
        (musique(77, answer="\x00 \u2028"), r"dev.jsonl:17: 'answer' and 'answer_aliases' must be texts"),
        (
            hotpot(77, context={"title": ["a", "b"], "sentences": [["c"]]}),
            r"dev.jsonl:17: 'context' has 2 titles and 1 lists of sentences",
        ),
    ],
)
def test_a_broken_line_is_named(tmp_path: Path, row: Any, message: str) -> None:
    lines = [json.dumps(musique(i)) for i in range(40)]
    lines[16] = row if isinstance(row, str) else json.dumps(row)
    (tmp_path / "dev.jsonl").write_text("\n".join(lines))
    with pytest.raises(UsageError, match=message):
        open_task("qa:musique?path=dev.jsonl", root=tmp_path).generate(SIZES)


def test_a_broken_record_of_an_array_is_named_with_its_line(tmp_path: Path) -> None:
    text = json.dumps([hotpot(i) for i in range(20)], indent=1)
    lines = text.split("\n")
    at = next(i for i, line in enumerate(lines) if '"x5"' in line)
    lines[at] = lines[at].replace(":", "")
    (tmp_path / "dev.json").write_text("\n".join(lines))
    task = open_task("qa:hotpotqa?path=dev.json", root=tmp_path)
    with pytest.raises(UsageError, match=rf"dev.json:{at + 1} \(record 6\) is not JSON"):
        task.generate(SIZES)
    (tmp_path / "dev.json").write_text(text[: len(text) // 2])
    with pytest.raises(UsageError, match=r"dev.json:\d+ \(record \d+\) is not JSON"):
        task.generate(SIZES)
    (tmp_path / "dev.json").write_text(text.rstrip("]\n"))
    with pytest.raises(UsageError, match="has the end of the file where"):
        task.generate(SIZES)


def test_files_that_hold_no_questions_are_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"missing.json cannot be read: No such file"):
        open_task("qa:2wiki?path=missing.json", root=tmp_path).generate(SIZES)
    for name, data, message in (
        ("empty.json", b"", "has no questions"),
        ("none.json", b"[]", "has no questions"),
        ("binary.json", b'[{"question":\n "\xff"}]', r"binary.json:2 is not UTF-8 text"),
        (
            "binary.jsonl",
            b'{"question": "a"\n{"question": "\xff"}'.replace(b'"a"', b'"a", "answer": "b"}'),
            r"binary.jsonl:2 is not UTF-8",
        ),
        ("more.json", b'[]\n\n{"question": "a"}', r"more.json:3 has '\{' after the end of the array"),
        ("twice.json", b"[] []", r"twice.json:1 has '\[' after the end of the array"),
        ("long.json", b'[{"question": ' + b"9" * 5000 + b"}]", r"long.json:1 .* a number of it is too long$"),
        (
            "control.json",
            b'[{"question":\n"a\x01"}]',
            r"control.json:2 \(record 1\) is not JSON: Invalid control character$",
        ),
        ("cut.json.gz", gzip.compress(b"[" + b" " * 9000)[:-9], "is damaged"),
    ):
        (tmp_path / name).write_bytes(data)
        with pytest.raises(UsageError, match=message):
            open_task(f"qa:2wiki?path={name}", root=tmp_path).generate(SIZES)
    write_array(tmp_path / "bare.json", [hotpot(i, context=[]) for i in range(40)])
    with pytest.raises(UsageError, match="come without passages"):
        open_task("qa:hotpotqa?path=bare.json", root=tmp_path).generate(SIZES)
    write_array(tmp_path / "few.json", [hotpot(i) for i in range(5)])
    with pytest.raises(HlError, match="only 5 distinct questions") as few:
        open_task("qa:hotpotqa?path=few.json", root=tmp_path).generate(SIZES)
    assert few.value.hint == "name a data set with more questions"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("qa:hotpot", r"no question-answering task 'qa:hotpot'; did you mean 'hotpotqa'\?"),
        ("qa:tiny?path=a", r"qa:tiny has no parameter 'path'"),
        ("qa:tiny?sed=1", r"qa:tiny has no parameter 'sed'; did you mean 'seed'\?"),
        ("qa:2wiki?alias=a", r"no parameter 'alias'; did you mean 'aliases'\?"),
        ("qa:hotpotqa?aliases=a", r"qa:hotpotqa has no parameter 'aliases'"),
        ("qa:musique?metric=bleu", r"must be em or f1, not 'bleu'"),
        ("qa:musique?path=a&hub=b", r"from a file or from the hub"),
        ("qa:musique?corpus=", r"parameter 'corpus' of qa:musique is empty"),
        ("qaa:tiny", r"unknown kind 'qaa'; did you mean 'qa'\?"),
    ],
)
def test_a_wrong_name_is_refused(name: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        open_task(name)


# --- aliases of 2Wiki --------------------------------------------------------------------------------------


def alias(key: Any, *names: Any, **more: Any) -> dict[str, Any]:
    return {"Q_id": key, "aliases": list(names), "demonyms": [], **more}


def test_aliases_of_2wiki_are_accepted_answers(tmp_path: Path) -> None:
    rows = [hotpot(i, answer_id=f"Q{i}" if i % 2 else None) for i in range(40)]
    write_array(tmp_path / "dev.json", rows)
    lines = [alias(f"Q{i}", f"P. {i}", f"Page {i}", " ", demonyms=[f"Pager {i}"]) for i in range(60)]
    packed = gzip.compress("".join(json.dumps(line) + "\n" for line in lines).encode())
    (tmp_path / "id aliases.json").write_bytes(packed)
    task = open_task("qa:2wiki?path=dev.json&aliases=id%20aliases.json", root=tmp_path)
    made = task.generate(SIZES)
    assert task.spec == open_task("qa:2wiki").spec
    for gold in made.sets.evaluation.golds:
        i = int(str(gold.answer).split()[1])
        more = [f"P. {i}", f"Pager {i}"] if i % 2 else []
        assert json.loads(gold.entry)["answers"] == [f"Page {i}", *more]
        best = asyncio.run(task.grader(no_function).grade(gold, f"the pager {i}"))
        assert best.strict == float(i % 2)
    write_array(tmp_path / "old.json", [hotpot(i) for i in range(40)])
    with pytest.raises(UsageError, match=r"old.json have no 'answer_id'"):
        open_task("qa:2wiki?path=old.json&aliases=id%20aliases.json", root=tmp_path).generate(SIZES)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"Q_id": "Q1"', r"a.json:3 is not JSON: Expecting ',' delimiter at column"),
        ("[1]", r"a.json:3 has no 'Q_id'"),
        ('{"aliases": []}', r"a.json:3 has no 'Q_id'"),
        ('{"Q_id": "Q1", "aliases": "x"}', r"a.json:3: 'aliases' must be a list"),
        (
            '{"Q_id": "Q1", "aliases": [], "demonyms": [1]}',
            r"a.json:3: 'aliases' and 'demonyms' must be lists of",
        ),
    ],
)
def test_a_broken_line_of_aliases_is_named(tmp_path: Path, line: str, message: str) -> None:
    write_array(tmp_path / "dev.json", [hotpot(i) for i in range(40)])
    (tmp_path / "a.json").write_text(f"{json.dumps(alias('Q1', 'x'))}\n\n{line}\n")
    with pytest.raises(UsageError, match=message):
        open_task("qa:2wiki?path=dev.json&aliases=a.json", root=tmp_path).generate(SIZES)


# --- grading -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answers", "answer", "em", "f1"),
    [
        (["The Tower"], "tower.", 1.0, 1.0),
        (["Ada Berg", "B. Berg"], "a berg", 0.0, 2 / 3),
        (["Ada Berg", "Berg"], "berg!", 1.0, 1.0),
        (["Port Vail"], "in Port Vail", 0.0, 0.8),
        (["yes"], "yes, they did", 0.0, 0.0),
        (["no"], "No.", 1.0, 1.0),
        (["yes"], "", 0.0, 0.0),
        (["x"], "y " * 40_000, 0.0, 0.0),
    ],
)
def test_exact_match_and_f1_take_the_best_alias(
    answers: list[str], answer: str, em: float, f1: float
) -> None:
    assert grade("em", answers, answer) == grade("f1", answers, answer)
    both = grade("f1", answers, answer)
    assert both.raw == pytest.approx(f1) and both.strict == em


def test_the_metric_says_which_grade_makes_the_score() -> None:
    assert selected_grade("qa:tiny", "raw") == selected_grade("qa:tiny?metric=em&seed=1", "raw") == "strict"
    assert selected_grade("qa:musique?metric=f1", "raw") == "raw"
    assert selected_grade("reasoning-gym:gcd", "raw") == "raw"


@pytest.mark.parametrize(
    ("answer", "gold", "f1"),
    [
        # hotpot_evaluate_v1.py: yes, no and noanswer on either side earn all or nothing.
        ("yes", "yes, they did", 0.0),
        ("no", "no one", 0.0),
        ("noanswer", "noanswer", 1.0),
        ("No answer", "noanswer", 0.0),
        ("The yes!", "yes", 1.0),
        ("a b c", "c b b", 0.8),
    ],
)
def test_closed_answers_share_words_with_nothing(answer: str, gold: str, f1: float) -> None:
    assert answer_f1(answer, gold) == pytest.approx(f1)


# --- the corpus --------------------------------------------------------------------------------------------


def test_tiny_brings_its_corpus_and_survives_the_disk(tmp_path: Path) -> None:
    task = open_task("qa:tiny")
    made = task.generate(SIZES)
    write_sets(tmp_path / "questions", made, task.spec, task.identity_family)
    manifest, sets = load_sets(tmp_path / "questions")
    assert sets == made.sets and manifest.spec == task.spec and manifest.spec.has_corpus
    corpus = task_corpus("qa:tiny", manifest.files, tmp_path / "questions")
    assert 500 <= corpus.passages <= 2000
    assert open_grader(manifest.spec, manifest.files, no_function)
    ids = [q.id for role in Role for q in sets.of(role).questions]
    assert len(ids) == len(set(ids)) == 36
    other = open_task("qa:tiny?seed=1").generate(SIZES)
    assert other.files != made.files


def test_a_corpus_elsewhere_is_known_by_its_digest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_array(tmp_path / "dev.json", [hotpot(i) for i in range(40)])
    wiki = tmp_path / "my wiki.jsonl"
    wiki.write_text("".join(render_passage(f"Page {i}", f"It is number {i}.") for i in range(90)))
    monkeypatch.chdir(tmp_path)
    name = locate("qa:hotpotqa?path=dev.json&corpus=my%20wiki.jsonl")
    assert str(tmp_path).replace("/", "/") in name and " " not in name
    made = open_task(name).generate(SIZES)
    assert [n for n, _ in made.files] == [CORPUS_DIGEST] and not made.note
    monkeypatch.chdir("/")
    found = task_corpus(name, made.files, tmp_path / "questions")
    assert found.passages == 90
    wiki.write_text(render_passage("Page 1", "Another."))
    with pytest.raises(RepositoryError, match="is not the corpus that the questions were made with"):
        task_corpus(name, made.files, tmp_path / "questions")
    # The manifest alone, which a repository from elsewhere brings along, names no file.
    with pytest.raises(RepositoryError, match="says which"):
        task_corpus("qa:hotpotqa", made.files, tmp_path / "questions")
    with pytest.raises(UsageError, match="cannot be read"):
        open_task("qa:hotpotqa?path=dev.json&corpus=none.jsonl", root=tmp_path).generate(SIZES)
