def solve(model, question):
    """Run the program that the model writes; where it prints nothing, answer as before."""
    output = run_code(model, extract_code(write_code(model, question)))
    return output or inner(model, question)
