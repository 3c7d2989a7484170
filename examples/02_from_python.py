"""A harness used from Python: `hl.load(path, revision).solve(question)`.

    python examples/02_from_python.py [FOLDER]

Makes a repository with a hand-written harness that asks three times and takes the majority, then calls it from this
program. The harness still runs in the sandbox, so this process hands it a question and gets a string back, and nothing
else. The model is scripted, so that the program takes seconds; leave the `-c solver...` settings out for a real one.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import hl

HARNESS = '''\
"""Ask three times, keep what most replies agree on."""

from collections import Counter


def solve(model, question):
    replies = [reply.strip() for reply in model.sample(question, 3, temperature=0.8)]
    return Counter(replies).most_common(1)[0][0]
'''


def main() -> None:
    """Make the repository, then use it."""
    folder = Path(sys.argv[1]) if sys.argv[1:] else Path(tempfile.mkdtemp(prefix="hl-example-")) / "02"
    folder.mkdir(parents=True)
    os.environ["HL_CONFIG_DIR"] = str(folder / "config")
    (folder / "harness.py").write_text(HARNESS)
    rules = [{"when": "capital of France", "replies": ["Paris"]}]
    (folder / "solver.json").write_text(json.dumps({"rules": rules, "default": "I do not know."}))
    questions = [{"question": f"What is the capital of country {n}?", "answer": str(n)} for n in range(16)]
    (folder / "questions.jsonl").write_text("".join(json.dumps(q) + "\n" for q in questions))

    settings = {
        "solver.engine": "scripted",
        "solver.path": folder / "solver.json",
        "round.feedback": 2,
        "round.scoring": 2,
        "round.confirmation": 2,
        "round.evaluation": 4,
        "round.pool_rounds": 1,
    }
    options = [word for key, value in settings.items() for word in ("-c", f"{key}={value}")]
    command = [Path(sys.executable).parent / "hl", "-C", folder, *options, "init", "agent", "--no-score"]
    command += ["--task", f"jsonl:{folder / 'questions.jsonl'}", "--seed", "harness.py"]
    subprocess.run(command, check=True)

    harness = hl.load(folder / "agent", "HEAD")
    question = "What is the capital of France?"
    print(f"{question} {harness.solve(question)}")


if __name__ == "__main__":
    main()
