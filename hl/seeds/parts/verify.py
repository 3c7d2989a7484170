def solve(model, question):
    """Let the model check the answer; where it objects, try again and keep what two tries agree on."""
    first = inner(model, question)
    check = "Question: " + question + "\n\nProposed answer: " + first + "\n\nIs it right? Reply with yes or no."
    if first.strip() and not model(check, max_tokens=4).strip().lower().startswith("no"):
        return first
    others = [inner(Warmer(model, 0.4), question) for _ in range(2) if model.budget.calls > 1]
    agreed = [answer for answer in others if answer.strip() and others.count(answer) > 1]
    return agreed[0] if agreed else first or next((answer for answer in others if answer.strip()), "")
