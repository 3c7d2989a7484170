def solve(model, question):
    """A little sampling instead of always the likeliest word."""
    return inner(Warmer(model, 0.3), question)
