def plain_number(text):
    """A number as people write it: no rounding dust, no `.0`, no thousands commas; other texts unchanged."""
    bare = text.strip().replace(",", "")
    try:
        number = float(bare)
    except ValueError:
        return text
    if not abs(number) < 1e15 or ("." not in bare and "e" not in bare.lower()):
        return bare if bare.lstrip("+-").isdigit() else text
    if 0 < abs(number) < 1e-4:
        return text
    number = round(number, 9)
    return str(int(number)) if number == int(number) else format(number, ".9f").rstrip("0")
