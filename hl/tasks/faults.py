"""What is wrong with a piece of JSON, in our words: the parser's own are cut off in mid-sentence or speak of Python."""

import json


def json_fault(error: ValueError | RecursionError) -> str:
    """Why `json` refused a line, as `Expecting value at column 5`."""
    if isinstance(error, UnicodeDecodeError):
        return "it is not UTF-8 text"
    if isinstance(error, json.JSONDecodeError):
        return f"{error.msg.removesuffix(' at')} at column {error.colno}"
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    return "a number of it is too long"
