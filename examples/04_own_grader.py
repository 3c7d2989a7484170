"""Questions of your own, graded by a function of your own: python examples/04_own_grader.py [FOLDER]."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

GRADER = '''
def grade(question, answer, gold):
    """Half the credit for the right number in the wrong unit."""
    (number, unit), (right_number, right_unit) = answer.split(), gold.split()
    return (number == right_number) * (1.0 if unit == right_unit else 0.5)
'''
folder = Path(sys.argv[1]) if sys.argv[1:] else Path(tempfile.mkdtemp(prefix="hl-example-")) / "04"
folder.mkdir(parents=True)
os.environ["HL_CONFIG_DIR"] = str(folder / "config")
(folder / "grader.py").write_text(GRADER)
asked = [{"question": f"How far in {n} hours at 60 km/h?", "answer": f"{60 * n} km"} for n in range(1, 41)]
(folder / "questions.jsonl").write_text("\n".join(map(json.dumps, asked)))
# A scripted solver that gets the units wrong; without these settings it is the embedded model.
rules = [{"when": f" {n} hours", "replies": [f"{60 * n} miles"]} for n in range(1, 41)]
(folder / "solver.json").write_text(json.dumps({"rules": rules}))
settings = ["-c", "solver.engine=scripted", "-c", f"solver.path={folder / 'solver.json'}"]
task = ["--task", "jsonl:questions.jsonl?grader=python:grader.py", "--profile", "small"]
subprocess.run(
    [Path(sys.executable).parent / "hl", "-C", folder, *settings, "init", "agent", *task], check=True
)
