"""A benchmark on your own models: two proposers on two families, one table, and the paper's numbers beside it.

    python examples/03_bench_run.py [FOLDER]

Both models are scripted here, so that the program takes half a minute and prints the same every time: the solver
can write a program, but cannot calculate; one of the proposer's ideas is to run what it writes. With real models:

    hl bench reasoning-gym --families gcd,lcm --solver q=openai:MODEL@URL --proposer base=openai:MODEL@URL
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

RUN_IT = """Let the solver write a program, and run it

<<<<<<< SEARCH
def solve(model, question):
    return extract(ask(model, question))
=======
def solve(model, question):
    numbers = [int(n) for n in re.findall(r"[0-9]+", question)]
    code = model("Write Python that prints the answer; `numbers` holds the numbers. " + question)
    return model.python(f"numbers = {numbers}\\n{code}").stdout.strip()
>>>>>>> REPLACE
"""
ASK_TWICE = """Ask for tags twice

<<<<<<< SEARCH
    return model(question + "\\n\\n" + INSTRUCTION)
=======
    return model(INSTRUCTION + "\\n\\n" + question + "\\n\\n" + INSTRUCTION)
>>>>>>> REPLACE
"""
NONE = "I would leave it as it is."


def write_scripts(folder: Path) -> None:
    """The two models."""
    folder.mkdir(parents=True)
    programs = {
        "Divisor": "import math\nprint(math.gcd(*numbers))",
        "Multiple": "import math\nprint(math.lcm(*numbers))",
    }
    rules = [
        {"when": {"last": "Write Python", "anywhere": word}, "replies": [text]}
        for word, text in programs.items()
    ]
    (folder / "solver.json").write_text(json.dumps({"rules": rules, "default": "About 12, I would say."}))
    ideas = {"rules": [{"replies": [RUN_IT, ASK_TWICE, NONE]}]}
    (folder / "ideas.json").write_text(json.dumps(ideas))


def hl(folder: Path, *arguments: str) -> None:
    """Run one hl command in `folder`, and show it."""
    print("$ hl", *arguments, flush=True)
    subprocess.run([Path(sys.executable).parent / "hl", "-C", folder, *arguments], check=True)
    print(flush=True)


def main() -> None:
    """Write the scripts, then type what a user would type."""
    folder = Path(sys.argv[1]) if sys.argv[1:] else Path(tempfile.mkdtemp(prefix="hl-example-")) / "03"
    write_scripts(folder)
    # Which repositories hl trusts is kept in the user's own configuration directory; this program has one to itself.
    os.environ["HL_CONFIG_DIR"] = str(folder / "config")
    models = ["--solver", "script=scripted:solver.json", "--proposer", "catalog"]
    models += ["--proposer", "ideas=scripted:ideas.json"]
    sizes = ["--proposals", "3", "--feedback", "2", "--scoring", "4", "--evaluation", "8"]
    hl(folder, "bench", "reasoning-gym", "--families", "gcd,lcm", *models, *sizes, "--out", "results")
    hl(folder, "bench", "show", "results", "--paper")
    print("In results/:", *sorted(path.name for path in (folder / "results").iterdir()))


if __name__ == "__main__":
    main()
