import re

SHOWN = 5
"""Demonstrations shown with a question."""


def nearest(demonstrations, question):
    """The demonstrations whose wording is closest to the question's, the closest last."""

    def features(text):
        shape = re.sub(r"\d+", "0", text.lower())
        return set(re.findall(r"[a-z]+|[^\sa-z]", shape)) | {shape[i : i + 4] for i in range(len(shape) - 3)}

    wanted = features(question)

    def likeness(demonstration):
        given = features(demonstration[0])
        return len(given & wanted) / (len(given | wanted) or 1)

    return sorted(demonstrations, key=likeness)[-SHOWN:]
