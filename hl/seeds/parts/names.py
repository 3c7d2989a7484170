import re


def run_with_suggestions(model, code, **options):
    """Run a program; where Python suggests another name for an unknown one, take it and run again."""
    result = model.python(code, **options)
    for _ in range(3):
        found = re.search(r"name '(\w+)' is not defined. Did you mean: '(\w+)'", result.error or "")
        if not found:
            break
        code = re.sub(r"\b" + found[1] + r"\b", found[2], code)
        result = model.python(code, **options)
    return result
