"""`qa:<hotpotqa|musique|2wiki|tiny>`: questions whose answers lie in two passages or more, and the passages to search.

Questions come from a data set's own file (`path=`) or the Hugging Face hub; the corpus from `corpus=FILE`, else it is
the passages that come with the chosen questions, kept beside them in `questions/corpus.jsonl`. `tiny` is generated.
Answers are graded by exact match and F1 with SQuAD's normalisation, the best of all accepted answers. A data set is
data: nothing of it runs, and nothing in it names a file.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from hl.errors import RepositoryError, UsageError
from hl.tasks.base import Generated, Progress, RunFunction, nearest, split_name, unknown_parameter
from hl.tasks.graders import ZERO, accepted_answers, readable
from hl.tasks.identity import question_id
from hl.tasks.passages import render_passage
from hl.tasks.qa_files import Record, read_aliases, read_file, read_hub
from hl.tasks.retrieval import Corpus, corpus_digest, open_corpus
from hl.tasks.sharing import Item, as_sets, deal
from hl.tasks.text_rules import f1, same_words, squad_words
from hl.types import Gold, Grade, Grader, Question, QuestionSets, Role, TaskSpec

GRADER_VERSION = "3"
CORPUS_FILE = "corpus.jsonl"
"""A corpus that is kept with the question sets."""
CORPUS_DIGEST = "corpus.json"
"""What is kept of a corpus that lies elsewhere: its sha256."""
METRICS = ("em", "f1")
CLOSED = frozenset({"yes", "no", "noanswer"})
"""Answers that share words with nothing: HotpotQA's own script gives them no F1 for a part."""


@dataclass(frozen=True, slots=True)
class DataSet:
    """What is known of a published data set."""

    title: str
    hub: str
    """Its usual place on the hub (unverified here: no hub can be reached)."""
    subset: str
    split: str
    about: str


DATA_SETS: Mapping[str, DataSet] = {
    "hotpotqa": DataSet(
        "HotpotQA",
        "hotpotqa/hotpot_qa",
        "distractor",
        "validation",
        "Questions over two Wikipedia paragraphs.",
    ),
    "musique": DataSet(
        "MuSiQue", "dgslibisey/MuSiQue", "", "validation", "Questions over two to four Wikipedia paragraphs."
    ),
    "2wiki": DataSet(
        "2WikiMultihopQA",
        "framolfese/2WikiMultihopQA",
        "",
        "validation",
        "Questions over two Wikipedia articles.",
    ),
}
TINY_PARAMS = ("seed", "metric")
FILE_PARAMS = ("path", "corpus", "hub", "subset", "split", "metric")
ALIAS_PARAMS = ("aliases",)
"""Of 2Wiki, which publishes the aliases of its answers in a file of their own."""
KEPT = ("metric", "seed")
"""Parameters that are part of the task's identity; the others say where it was read."""


@dataclass(frozen=True, slots=True)
class QaTask:
    """One data set with its corpus."""

    name: str
    """hotpotqa, musique, 2wiki or tiny."""
    params: tuple[tuple[str, str], ...]
    """Sorted by name, as written."""
    root: Path
    """Where relative file names start."""

    @classmethod
    def open(cls, name: str, params: Mapping[str, str], root: Path) -> "QaTask":
        """The task of that name; no file is read yet.

        Raises:
            UsageError: Unknown data set, parameter or metric.
        """
        if name != "tiny" and name not in DATA_SETS:
            known = ("tiny", *DATA_SETS)
            raise UsageError(
                f"there is no question-answering task 'qa:{name}'{nearest(name, known)}",
                hint="there are " + ", ".join(f"qa:{n}" for n in known),
            )
        allowed = TINY_PARAMS if name == "tiny" else FILE_PARAMS + (ALIAS_PARAMS if name == "2wiki" else ())
        for key, value in params.items():
            if key not in allowed:
                raise unknown_parameter(f"qa:{name}", key, allowed)
            if not value:
                raise UsageError(f"parameter {key!r} of qa:{name} is empty")
        if params.get("metric", "em") not in METRICS:
            raise UsageError(f"parameter 'metric' of qa:{name} must be em or f1, not {params['metric']!r}")
        if "path" in params and {"hub", "subset", "split"} & set(params):
            raise UsageError(
                f"qa:{name} is read from a file or from the hub: give path, or hub with subset and split"
            )
        return cls(name, tuple(sorted(params.items())), root)

    @property
    def identity_family(self) -> str:
        """The data set; not where it was read, and not the metric."""
        return f"qa:{self.name}"

    @property
    def spec(self) -> TaskSpec:
        """Name, identifying parameters, version and the description for the proposer."""
        about = "Questions over an invented world." if self.name == "tiny" else DATA_SETS[self.name].about
        how = (
            "An answer earns the F1 of its words and the right answer's; case, punctuation and articles do not matter."
            if self._metric == "f1"
            else "An answer earns 1 if its words are the right answer's; case, punctuation and articles do not matter."
        )
        return TaskSpec(
            name=f"qa:{self.name}",
            description=f"{about} Each is answered from two or more passages of a corpus that model.search finds. "
            f"{how} An empty answer earns 0.",
            params=tuple((k, v) for k, v in self.params if k in KEPT),
            version=f"hl qa {GRADER_VERSION}",
            has_corpus=True,
        )

    @property
    def _metric(self) -> str:
        return dict(self.params).get("metric", "em")

    def suggested_pool_rounds(self, per_round: int) -> int | None:
        """Reading and generating are quick."""
        return None

    def grader(self, run_function: RunFunction) -> Grader:
        """In process: linear in the answer, no code of others."""
        return QaGrader()

    def generate(self, sizes: Mapping[Role, int], progress: Progress | None = None) -> Generated:
        """Deal the data set's questions in order of their ids' hashes; keep the corpus, or its digest.

        Raises:
            UsageError: A file is wrong.
            MissingExtraError: The hub is asked for and its library is missing.
            HlError: Too few questions.
        """
        if self.name == "tiny":
            return self._generate_tiny(sizes)
        params = dict(self.params)
        aliases = read_aliases(self.root / params["aliases"]) if "aliases" in params else {}
        pool: dict[str, Item] = {}
        seen = skipped = named = 0
        for seen, record in enumerate(self._records(), start=1):
            accepted = tuple(dict.fromkeys((*record.answers, *aliases.get(record.answer_id, ()))))
            item = _as_item(self.identity_family, record.question, accepted, {})
            named += bool(record.answer_id)
            if not record.answerable or item[0].id in pool:
                skipped += 1
            else:
                pool[item[0].id] = item
            if progress is not None and seen % 1000 == 0:
                progress(seen, 0)
        if not pool:
            raise UsageError(f"{self._source} has no questions")
        if "aliases" in params and not named:
            raise UsageError(
                f"the questions of {self._source} have no 'answer_id', so that no alias belongs to one",
                hint="take the edition of 2WikiMultihopQA with ids, or leave aliases out",
            )
        items, note = deal(list(pool.values()), sizes, self._source, "name a data set with more questions")
        sets = as_sets(items)
        notes = [note] if note else []
        if skipped:
            notes.append(
                f"{skipped:,} records of {self._source} repeat a question or have no answer: left out."
            )
        if corpus := params.get("corpus"):
            path = self.root / corpus
            files = ((CORPUS_DIGEST, json.dumps({"sha256": corpus_digest(path)}) + "\n"),)
        else:
            text, count = self._own_passages(sets)
            files = ((CORPUS_FILE, text),)
            notes.append(
                f"the corpus is the {count:,} passages that come with the chosen questions of {self._source}, which "
                "makes searching easier than in all of Wikipedia: for that, add &corpus=FILE."
            )
        return Generated(sets, len(pool), seen, bool(note), " ".join(notes), files)

    @property
    def _source(self) -> str:
        params = dict(self.params)
        return str(self.root / params["path"]) if "path" in params else f"qa:{self.name}"

    def _records(self) -> Iterator[Record]:
        params, known = dict(self.params), DATA_SETS[self.name]
        if "path" in params:
            return read_file(self.root / params["path"])
        subset = params.get("subset", "" if "hub" in params else known.subset)
        return read_hub(params.get("hub", known.hub), subset, params.get("split", known.split))

    def _own_passages(self, sets: QuestionSets) -> tuple[str, int]:
        """The passages of the chosen questions as a corpus, and how many; read in a second pass, so that few are held.

        Raises:
            UsageError: They bring none.
        """
        chosen = {q.id for role in Role for q in sets.of(role).questions}
        lines: dict[str, None] = {}
        for record in self._records():
            if question_id(self.identity_family, record.question) in chosen:
                lines.update((render_passage(title, text), None) for title, text in record.passages if text)
        if not lines:
            raise UsageError(
                f"the questions of {self._source} come without passages", hint="add &corpus=FILE"
            )
        return "".join(lines), len(lines)

    def _generate_tiny(self, sizes: Mapping[Role, int]) -> Generated:
        from hl.tasks.tiny import make_world

        world = make_world(dict(self.params).get("seed", "0"))
        pool = {
            item[0].id: item
            for kind, question, answer in world.questions
            for item in [_as_item(self.identity_family, question, (answer,), {"kind": kind})]
        }
        items, note = deal(list(pool.values()), sizes, "qa:tiny")
        corpus = "".join(render_passage(title, text) for title, text in world.passages)
        return Generated(as_sets(items), len(pool), len(pool), bool(note), note, ((CORPUS_FILE, corpus),))


def _as_item(family: str, question: str, answers: tuple[str, ...], metadata: Mapping[str, str]) -> Item:
    entry = {"answers": list(answers), **({"metadata": dict(metadata)} if metadata else {})}
    key = question_id(family, question)
    return Question(key, question), Gold(key, answers[0], json.dumps(entry, separators=(",", ":")))


class QaGrader:
    """Exact match and F1 with SQuAD's normalisation; the best of all accepted answers counts.

    The strict grade is exact match, the raw grade F1; the task's metric says which of them makes the score
    (`selected_grade`).
    """

    async def grade(self, gold: Gold, answer: str) -> Grade:
        """Grade one answer."""
        text = readable(answer)
        if not text or gold.answer is None:
            return ZERO
        accepted = accepted_answers(gold)
        return Grade(max(answer_f1(text, a) for a in accepted), max(same_words(text, a) for a in accepted))


def answer_f1(answer: str, gold: str) -> float:
    """F1 of the words; yes, no and noanswer earn and give nothing for a part (hotpot_evaluate_v1.py)."""
    ours, theirs = squad_words(answer), squad_words(gold)
    if ours != theirs and any(len(w) == 1 and w[0] in CLOSED for w in (ours, theirs)):
        return 0.0
    return f1(answer, gold)


# --- the corpus ----------------------------------------------------------------------------------------------------


def outside_corpus(name: str, root: Path) -> Path | None:
    """The corpus file that a task's name gives, if it gives one."""
    kind, _, params = split_name(name)
    return root / params["corpus"] if kind == "qa" and "corpus" in params else None


def task_corpus(
    name: str,
    files: tuple[tuple[str, str], ...],
    directory: Path,
    on_progress: Progress | None = None,
) -> Corpus:
    """The corpus of question sets that are on disk.

    Args:
        name: From the configuration, where it is guarded: a repository alone cannot name a file to be read.
        files: `Manifest.files`, which say what the corpus must be.
        directory: Of the question sets.
        on_progress: Told how far the building of an index is, in thousandths.

    Raises:
        RepositoryError: As `corpus_path`.
    """
    return open_corpus(corpus_path(name, files, directory), on_progress)


def corpus_path(name: str, files: tuple[tuple[str, str], ...], directory: Path) -> Path:
    """The file that such question sets search; it is not indexed. Arguments as of `task_corpus`.

    Raises:
        UsageError: The file cannot be read.
        RepositoryError: No corpus is named, or it is not the one that the questions were made with.
    """
    kept = dict(files)
    if CORPUS_FILE in kept:
        return directory / CORPUS_FILE
    path = outside_corpus(name, directory.parent)
    if path is None or CORPUS_DIGEST not in kept:
        raise RepositoryError(
            f"{name} searches a corpus, but neither {directory / CORPUS_FILE} nor task.name says which",
            hint='hl config set task.name "qa:...?corpus=FILE"',
        )
    if corpus_digest(path) != json.loads(kept[CORPUS_DIGEST]).get("sha256"):
        raise RepositoryError(
            f"{path} is not the corpus that the questions were made with: its sha256 differs",
            hint="put the old file back, or begin anew: hl init, hl bench --out DIR",
        )
    return path
