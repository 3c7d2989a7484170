"""Search twice, answer from notes: search, summarise, search, summarise, answer."""

import re

INSTRUCTION = "Give only the answer, between <answer> and </answer>."
PASSAGES = 5


def find(model, query):
    """The best passages, one a line as `title: text`."""
    return "\n".join(p.title + ": " + p.text for p in model.search(query, k=PASSAGES))


def summarise(model, question, passages):
    """What the passages say that may help, in the model's words."""
    return model(passages + "\n\nSummarise in one or two sentences what helps to answer: " + question)


def answer(model, question, notes):
    """Ask with the notes in view."""
    return model("\n".join(notes) + "\n\n" + INSTRUCTION + "\nQuestion: " + question)


def extract(reply):
    """The text of the last pair of answer tags, or the whole reply where there is none."""
    found = re.findall(r"<answer>(.*?)</answer>", reply, re.DOTALL)
    return found[-1].strip() if found else reply.strip()


def solve(model, question):
    first = summarise(model, question, find(model, question))
    second = summarise(model, question, find(model, question + " " + first))
    return extract(answer(model, question, [first, second]))
