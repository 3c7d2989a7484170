import re


def last_number(text):
    """The last number of the text, where it has one."""
    found = re.findall(r"[-+]?\d[\d,]*(?:\.\d+)?", text)
    return found[-1].replace(",", "").rstrip(".") if found else text
