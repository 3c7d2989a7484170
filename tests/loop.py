"""A whole loop that needs no model: questions, a seed that fails, edits that mend it, and a solver that knows only its
prompt. Used by the tests of the verbs that run harnesses.

The scripted solver answers right only where the prompt says `carefully: `; the seed says `guess: `. The scripted
proposer's replies hold a good edit, one that applies and gains nothing, and one that does not apply.
"""

import json
from pathlib import Path

SEED = '''\
def ask(model, question):
    """One call."""
    return model("guess: " + question)


def solve(model, question):
    return ask(model, question).strip()
'''

GOOD = """\
Ask carefully

<<<<<<< SEARCH
    return model("guess: " + question)
=======
    return model("carefully: " + question)
>>>>>>> REPLACE
"""
IDLE = """\
Ask politely

<<<<<<< SEARCH
    return model("guess: " + question)
=======
    return model("please guess: " + question)
>>>>>>> REPLACE
"""
LOST = """\
Ask the oracle

<<<<<<< SEARCH
    return oracle(question)
=======
    return model(question)
>>>>>>> REPLACE
"""
NONE = "I would not change a thing."

SETTINGS = {
    "round.proposals": "4",
    "round.feedback": "3",
    "round.scoring": "6",
    "round.confirmation": "6",
    "round.evaluation": "8",
    "round.pool_rounds": "2",
    "round.repair": "0",
}


def write_loop(folder: Path, replies: list[str] | None = None, *, delay_s: float = 0.0) -> list[str]:
    """Write questions, seed and scripts; returns the `-c` arguments that use them.

    Args:
        folder: Where.
        replies: The proposer's; which one a proposal gets depends on its seed.
        delay_s: How long the solver takes over a question.
    """
    folder.mkdir(parents=True, exist_ok=True)
    rows = [(f"What is {n} + {n * 7}?", str(n * 8)) for n in range(1, 60)]
    (folder / "sums.jsonl").write_text(
        "".join(json.dumps({"question": q, "answer": a}) + "\n" for q, a in rows), encoding="utf-8"
    )
    (folder / "seed.py").write_text(SEED, encoding="utf-8")
    solver = [{"when": {"last": f"carefully: {q}"}, "replies": [a], "delay_s": delay_s} for q, a in rows]
    script = {
        "rules": [*solver, {"when": "", "replies": ["no idea"], "delay_s": delay_s}],
        "log": "solver.log",
    }
    (folder / "solver.json").write_text(json.dumps(script), encoding="utf-8")
    proposer = {
        "rules": [{"when": "", "replies": replies or [GOOD, IDLE, LOST, NONE]}],
        "log": "proposer.log",
    }
    (folder / "proposer.json").write_text(json.dumps(proposer), encoding="utf-8")
    values = {
        **SETTINGS,
        "solver.engine": "scripted",
        "solver.path": str(folder / "solver.json"),
        "proposer.engine": "scripted",
        "proposer.path": str(folder / "proposer.json"),
    }
    return [part for key, value in values.items() for part in ("-c", f"{key}={value}")]


def calls(folder: Path, name: str = "solver.log") -> int:
    """Calls that the scripted engine answered so far."""
    path = folder / name
    return len(path.read_text(encoding="utf-8").splitlines()) if path.exists() else 0
