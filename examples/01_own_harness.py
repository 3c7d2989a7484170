"""Your own harness and your own questions under hl: init, eval, revise, log, diff.

    python examples/01_own_harness.py [FOLDER]

Both models are scripted here, so that the program takes seconds and prints the same every time. The solver is
right only if it is asked politely; the proposer has four ideas, one of which is to ask politely. To use real models,
leave the `-c solver...` and `-c proposer...` settings out: the solver is then SmolLM2-135M-Instruct, and the
edits come from hl's catalog.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

HARNESS = '''\
"""What an agent does before anyone revises it: hand the question over, hand the answer back."""


def solve(model, question):
    return model(question)
'''

IDEAS = [
    """Ask politely

<<<<<<< SEARCH
    return model(question)
=======
    return model("Please answer: " + question)
>>>>>>> REPLACE
""",
    """Ask louder

<<<<<<< SEARCH
    return model(question)
=======
    return model(question.upper())
>>>>>>> REPLACE
""",
    """Ask twice

<<<<<<< SEARCH
    answer = model(question)
=======
    answer = model(question) or model(question)
>>>>>>> REPLACE
""",
    "I would leave it as it is.",
]
"""One is right, one gains nothing, one does not apply, and one is no edit."""


def write_inputs(folder: Path) -> None:
    """The files that a user brings: a harness, questions with answers, and here the scripts of both models."""
    folder.mkdir(parents=True)
    products = {f"What is {a} times {b}?": str(a * b) for a in range(2, 10) for b in range(2, 10)}
    lines = [json.dumps({"question": question, "answer": answer}) for question, answer in products.items()]
    (folder / "questions.jsonl").write_text("\n".join(lines) + "\n")
    (folder / "harness.py").write_text(HARNESS)
    rules = [{"when": {"last": "Please answer: " + q}, "replies": [a]} for q, a in products.items()]
    (folder / "solver.json").write_text(json.dumps({"rules": rules, "default": "Why should I?"}))
    (folder / "proposer.json").write_text(json.dumps({"rules": [{"replies": IDEAS}]}))


def hl(folder: Path, *arguments: str) -> None:
    """Run one hl command in `folder`, and show it."""
    print("$ hl", *(word for word in arguments if word != "--no-pager"), flush=True)
    program = Path(sys.executable).parent / "hl"
    subprocess.run([program, "-C", folder, *arguments], check=True)
    print(flush=True)


def main() -> None:
    """Write the inputs, then type what a user would type."""
    folder = Path(sys.argv[1]) if sys.argv[1:] else Path(tempfile.mkdtemp(prefix="hl-example-")) / "01"
    write_inputs(folder)
    # Which repositories hl trusts is kept in the user's own configuration directory; this program has one to itself.
    os.environ["HL_CONFIG_DIR"] = str(folder / "config")
    settings = {
        "solver.engine": "scripted",
        "solver.path": folder / "solver.json",
        "proposer.engine": "scripted",
        "proposer.path": folder / "proposer.json",
        "round.proposals": 4,
        "round.repair": 0,
        "round.feedback": 4,
        "round.scoring": 8,
        "round.confirmation": 8,
        "round.evaluation": 12,
        "round.pool_rounds": 2,
    }
    options = [word for key, value in settings.items() for word in ("-c", f"{key}={value}")]
    task = f"jsonl:{folder / 'questions.jsonl'}"
    hl(folder, *options, "init", "agent", "--task", task, "--seed", "harness.py")
    agent = folder / "agent"
    hl(agent, "revise", "--rounds", "1")
    hl(agent, "--no-pager", "log", "--all")
    hl(agent, "--no-pager", "diff", "HEAD~1", "HEAD")
    hl(agent, "run", "What is 6 times 7?")
    print(f"The repository is in {agent}.")


if __name__ == "__main__":
    main()
