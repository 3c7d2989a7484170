import re


def extract_code(reply):
    """The program in a reply: fenced, with the fence left open, or bare lines that Python can read."""
    found = re.search(r"```[ \t]*(?:python|py)?[ \t]*\n(.*?)(?:```|\Z)", reply, re.DOTALL | re.IGNORECASE)
    if found:
        return found[1].strip("\n")
    lines = [line for line in reply.strip().strip("`").splitlines() if line.strip()]
    for start in range(len(lines)):
        for end in range(len(lines), start, -1):
            code = "\n".join(lines[start:end])
            try:
                compile(code, "code", "exec")
            except (SyntaxError, ValueError):
                continue
            if "(" in code or "=" in code:
                return code if "print" in code else "print(" + code + ")"
    return ""
