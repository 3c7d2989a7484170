def solve(model, question):
    """Ask for the answer without words around it."""
    return inner(model, question + "\n\nReply with the answer only, no words around it.")
