from collections import Counter

VOTES = 4
"""Sampled tries beside the first one."""


def solve(model, question):
    """The most frequent answer of several tries; among equals the one without sampling."""
    answers = [inner(model, question)]
    for _ in range(VOTES):
        if model.budget.calls < 2:
            break
        answers.append(inner(Warmer(model, 0.5), question))
    given = [answer for answer in answers if answer.strip()]
    return Counter(given).most_common(1)[0][0] if given else ""
