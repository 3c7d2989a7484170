def solve(model, question):
    """Where there is no answer, ask plainly for one."""
    answer = inner(model, question)
    if answer.strip():
        return answer
    reply = model(question + "\n\nReply with the answer only.")
    lines = [line.strip() for line in reply.splitlines() if line.strip()]
    return lines[-1] if lines else ""
