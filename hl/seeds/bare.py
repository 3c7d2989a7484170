def solve(model, question):
    return model(question)
