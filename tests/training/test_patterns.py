"""Which pattern an edit has: every seed against `minimal`, every catalog step, and edits written by hand."""

import pytest

from hl.proposer.catalog import steps
from hl.proposer.catalog.evidence import read_evidence
from hl.types import Harness
from tests.proposer.kit import context, one_file, seed
from training.patterns import PATTERNS, classify, features

SEEDS = {
    "bare": "other",
    "cot": "extraction",
    "interpreter": "interpreter loop",
    "minimal": "other",
    "react": "interpreter loop",
    "reflexion": "retry",
    "retrieval": "retrieval change",
    "self_consistency": "voting",
}
STEPS = [
    (steps.interpreter(), "minimal", "interpreter loop"),
    (steps.interpreter(), "self_consistency", "interpreter loop"),
    (steps.examples([("q", "a")]), "minimal", "few-shot"),
    (steps.demonstrations([("q", "print(1)")], "some"), "interpreter", "few-shot"),
    (steps.GENERAL_DEMONSTRATIONS, "interpreter", "few-shot"),
    (steps.NEAREST, "interpreter", "few-shot"),
    (steps.VOTE, "minimal", "voting"),
    (steps.FINAL, "minimal", "extraction"),
    (steps.NUMBERS, "interpreter", "extraction"),
    (steps.LAST_NUMBER, "minimal", "extraction"),
    (steps.FENCES, "interpreter", "extraction"),
    (steps.RETRY, "interpreter", "retry"),
    (steps.NAMES, "interpreter", "retry"),
    (steps.FALLBACK, "minimal", "retry"),
    (steps.VERIFY, "minimal", "retry"),
    (steps.PASSAGES, "retrieval", "retrieval change"),
    (steps.IMPORTS, "interpreter", "other"),
    (steps.PLAN, "minimal", "other"),
    (steps.STEPWISE, "minimal", "other"),
    (steps.TERSE, "minimal", "other"),
    (steps.WARM, "minimal", "other"),
]
BARE = "def solve(model, question):\n    return model(question)\n"
WRITTEN = {
    "direct algorithm": """\
import math, re
def solve(model, question):
    numbers = [int(n) for n in re.findall(r"\\d+", question)]
    if len(numbers) == 2:
        return str(math.gcd(*numbers))
    return model(question)
""",
    "retrieval change": """\
def solve(model, question):
    found = model.search(question, k=3)
    return model(question + found[0].text)
""",
    "few-shot": """\
def solve(model, question):
    return model.chat([{"role": "user", "content": "2 + 2"}, {"role": "assistant", "content": "4"},
                       {"role": "user", "content": question}])
""",
    "voting": """\
def solve(model, question):
    answers = model.sample(question, 5, temperature=0.7)
    return max(set(answers), key=answers.count)
""",
    "retry": """\
def solve(model, question):
    try:
        return str(int(model(question)))
    except ValueError:
        return model(question + " Reply with a number.")
""",
    "extraction": """\
import re
def solve(model, question):
    return re.search(r"\\d+", model(question))[0]
""",
    "other": """\
def solve(model, question):
    return model(question, temperature=0.2)
""",
}


@pytest.mark.parametrize(("name", "pattern"), SEEDS.items())
def test_every_seed_against_minimal(name: str, pattern: str) -> None:
    assert classify(seed("minimal"), seed(name)) == pattern


@pytest.mark.parametrize(("step", "base", "pattern"), STEPS, ids=lambda v: getattr(v, "name", v))
def test_every_catalog_step(step: steps.Step, base: str, pattern: str) -> None:
    evidence = read_evidence(context(seed(base)))
    assert evidence is not None
    changed = step.change(evidence.source)
    assert changed is not None and classify(seed(base), one_file(changed)) == pattern


@pytest.mark.parametrize(("pattern", "text"), WRITTEN.items())
def test_edits_written_by_hand(pattern: str, text: str) -> None:
    assert classify(one_file(BARE), one_file(text)) == pattern


def test_what_does_not_parse_is_other_and_names_are_distinct() -> None:
    assert classify(one_file(BARE), Harness((("harness.py", "def ("),))) == "other"
    assert len(set(PATTERNS)) == 8 and features(one_file("\0")).programs == 0
