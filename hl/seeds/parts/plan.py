def solve(model, question):
    """Take the question apart first, then answer it with the parts in view."""
    parts = model(question + "\n\nDo not answer yet. List the two or three steps that lead to the answer.")
    return inner(model, question + "\n\nSteps that may help:\n" + parts.strip()[:600])
