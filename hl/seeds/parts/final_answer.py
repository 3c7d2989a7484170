import re


def final_answer(text):
    """The answer alone: what is tagged or announced as such, else the last line, without decoration."""
    found = re.findall(r"<answer>(.*?)</answer>|\\boxed\{([^{}]*)\}", text, re.DOTALL)
    if found:
        text = next(part for part in found[-1] if part or part is found[-1][-1])
    lines = [line.strip() for line in text.strip().splitlines() if line.strip(" \t`")]
    line = lines[-1] if lines else ""
    found = re.findall(r"(?:answer|result)\b[^:=\n]{0,40}?(?:\bis\b|:|=)\s*(.+)", line, re.IGNORECASE)
    line = found[-1] if found else line
    equation = re.fullmatch(r"[-+*/^().,\d\s]+=\s*([-+]?[\d.,/]+)", line.rstrip(". "))
    line = equation[1] if equation else line
    return line.strip().strip("*`\"").rstrip(".").strip()
