"""Self-consistency: several sampled chains of thought, the most frequent answer wins."""

import re
from collections import Counter

INSTRUCTION = "Think step by step. Then write one last line that starts with `Answer:` and holds only the answer."
SAMPLES = 5
TEMPERATURE = 0.7


def ask(model, question):
    """Sample several chains of thought."""
    return model.sample(question + "\n\n" + INSTRUCTION, SAMPLES, temperature=TEMPERATURE)


def extract(reply):
    """What follows the last `Answer:`, or the last line where there is none."""
    found = re.findall(r"answer\s*:\s*(.+)", reply, re.IGNORECASE)
    if found:
        return found[-1].strip().strip("*`").strip()
    lines = [line.strip() for line in reply.splitlines() if line.strip()]
    return lines[-1] if lines else ""


def vote(answers):
    """The most frequent answer; the earliest of equals."""
    given = [answer for answer in answers if answer]
    return Counter(given).most_common(1)[0][0] if given else ""


def solve(model, question):
    return vote([extract(reply) for reply in ask(model, question)])
