"""Reflexion: answer, criticise the answer, answer again with the criticism in mind."""

import re

INSTRUCTION = "Give your final answer between <answer> and </answer>."
CRITIC = "Check this solution. Say in two sentences what is wrong with it, or write only the word CORRECT."
ROUNDS = 2


def ask(model, question, lessons):
    """Put the question, with what was learned from earlier tries."""
    prompt = question + "\n\n" + INSTRUCTION
    if lessons:
        prompt += "\n\nEarlier tries went wrong:\n" + "\n".join("- " + lesson for lesson in lessons)
    return model(prompt)


def criticise(model, question, reply):
    """One lesson, or an empty text if the critic is content."""
    verdict = model("Question: " + question + "\n\nSolution: " + reply + "\n\n" + CRITIC).strip()
    return "" if verdict.upper().startswith("CORRECT") else verdict


def extract(reply):
    """The text of the last pair of answer tags, or the whole reply where there is none."""
    found = re.findall(r"<answer>(.*?)</answer>", reply, re.DOTALL)
    return found[-1].strip() if found else reply.strip()


def solve(model, question):
    lessons = []
    reply = ask(model, question, lessons)
    for _ in range(ROUNDS):
        lesson = criticise(model, question, reply)
        if not lesson:
            break
        lessons.append(lesson)
        reply = ask(model, question, lessons)
    return extract(reply)
