def solve(model, question):
    """Ask for reasoning before the answer."""
    return inner(model, question + "\n\nThink step by step, then give the answer on the last line as `Answer: ...`.")
