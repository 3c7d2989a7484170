"""The harness decides the score on `qa:tiny`: same reader, same corpus, other hand-overs; in the real sandbox."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from hl.cache import Cache
from hl.edits import apply_edits, parse_reply
from hl.engines.base import EngineSpec, open_engine
from hl.evaluate import Evaluator, Work
from hl.proposer.catalog.evidence import read_evidence
from hl.proposer.catalog.proposer import render_revision
from hl.proposer.catalog.steps import PASSAGES
from hl.sandbox.host import Limits, Sandbox
from hl.solver import Meter, MeteredEngine, Solver, SolverSettings
from hl.tasks.passages import render_passage
from hl.tasks.qa import QaGrader, QaTask
from hl.tasks.retrieval import Corpus, open_corpus
from hl.tasks.tiny import make_world, shuffled
from hl.types import Harness, QuestionSet, Role
from tests.proposer.kit import context, seed

COUNT = 96


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HL_CACHE_DIR", str(tmp_path / "cache"))


def revised(harness: Harness) -> Harness:
    """What the catalog makes of a harness when it proposes to hand on passages."""
    evidence = read_evidence(context(harness))
    assert evidence is not None
    reply = render_revision(evidence, (PASSAGES,))
    assert reply is not None
    return apply_edits(harness, parse_reply(reply))


def questions() -> QuestionSet:
    sizes = {Role.FEEDBACK: 2, Role.SCORING: 4, Role.CONFIRMATION: 2, Role.EVALUATION: COUNT}
    return QaTask.open("tiny", {}, Path()).generate(sizes).sets.evaluation


def corpus_of(path: Path, passages: Sequence[tuple[str, str]]) -> Corpus:
    path.write_text("".join(render_passage(*p) for p in passages), encoding="utf-8")
    return open_corpus(path)


def score(harnesses: Sequence[Harness], corpus: Corpus) -> list[float]:
    async def go() -> list[float]:
        cache, meter = Cache(None), Meter()
        reader = MeteredEngine(open_engine(EngineSpec("scripted", model="reader")), cache, meter)
        async with Sandbox() as sandbox:
            evaluator = Evaluator(
                sandbox=sandbox,
                solver=Solver(reader, SolverSettings()),
                grader=QaGrader(),
                mode="strict",
                cache=cache,
                meter=meter,
                limits=Limits(wall_s=60),
                search=corpus.search,
            )
            block = questions()
            found = await evaluator.score([Work(h, block) for h in harnesses])
            assert all(a.status == "ok" for _, attempts in found for a in attempts)
            return [measurement.score.mean for measurement, _ in found]

    return asyncio.run(go())


@pytest.mark.slow
def test_passages_win_and_shuffled_passages_do_not(tmp_path: Path) -> None:
    first = seed("retrieval")
    world = make_world()
    before, after = score([first, revised(first)], corpus_of(tmp_path / "true.jsonl", world.passages))
    assert before < 0.35
    assert after > 0.7
    lost = corpus_of(tmp_path / "shuffled.jsonl", shuffled(world.passages))
    guessed, none = score([first, revised(first)], lost)
    # The reader knows nothing but its prompt: what the winner gained was in the passages.
    assert abs(none - before) < 0.1
    assert abs(none - guessed) < 0.1
