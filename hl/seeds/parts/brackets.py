def close_brackets(code):
    """The program with its brackets balanced, if that makes it one; else as it is."""
    try:
        compile(code, "code", "exec")
        return code
    except (SyntaxError, ValueError):
        pass
    pairs = {"(": ")", "[": "]", "{": "}"}
    open_brackets, kept, quote = [], [], ""
    for character in code.rstrip():
        if quote:
            quote = "" if character == quote or character == "\n" else quote
        elif character in "\"'":
            quote = character
        elif character in pairs:
            open_brackets.append(pairs[character])
        elif character in pairs.values():
            if not open_brackets:
                continue
            character = open_brackets.pop()
        kept.append(character)
    repaired = "".join(kept) + quote + "".join(reversed(open_brackets))
    try:
        compile(repaired, "code", "exec")
        return repaired
    except (SyntaxError, ValueError):
        return code
