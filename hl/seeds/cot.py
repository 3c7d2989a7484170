"""Step by step: the model reasons first, its last `Answer:` line counts."""

import re

INSTRUCTION = "Think step by step. Then write one last line that starts with `Answer:` and holds only the answer."


def ask(model, question):
    """Ask for reasoning that ends in an answer line."""
    return model(question + "\n\n" + INSTRUCTION)


def extract(reply):
    """What follows the last `Answer:`, or the last line where there is none."""
    found = re.findall(r"answer\s*:\s*(.+)", reply, re.IGNORECASE)
    if found:
        return found[-1].strip().strip("*`").strip()
    lines = [line.strip() for line in reply.splitlines() if line.strip()]
    return lines[-1] if lines else ""


def solve(model, question):
    return extract(ask(model, question))
