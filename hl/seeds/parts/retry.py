def run_or_rewrite(model, code, **options):
    """Run a program; where it fails, show the model the error once and run what it writes instead."""
    result = model.python(code, **options)
    if not result.error or model.budget.calls < 1:
        return result
    error = result.error.strip().splitlines()[-1]
    reply = model("This program fails with " + error + ":\n```python\n" + code + "\n```\nWrite the corrected program.")
    parts = reply.split("```")
    again = model.python(parts[1].removeprefix("python") if len(parts) > 1 else reply, **options)
    return result if again.error else again
