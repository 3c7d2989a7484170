"""One call: ask the question, take what stands between the answer tags."""

import re

INSTRUCTION = "Give your final answer between <answer> and </answer>."


def ask(model, question):
    """Put the question to the model."""
    return model(question + "\n\n" + INSTRUCTION)


def extract(reply):
    """The text of the last pair of answer tags, or the whole reply where there is none."""
    found = re.findall(r"<answer>(.*?)</answer>", reply, re.DOTALL)
    return found[-1].strip() if found else reply.strip()


def solve(model, question):
    return extract(ask(model, question))
