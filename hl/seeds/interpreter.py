"""The interpreter loop: the model writes a program, the program's output is the answer."""

import re

SYSTEM = "You answer every question with a short Python program that prints the answer."

DEMONSTRATIONS = [
    ("What is 17 plus 25, minus 8?", "print(17 + 25 - 8)"),
    ("Compute 12 * 30 * 4.", "print(12 * 30 * 4)"),
    ("What is the remainder when 1234 is divided by 7?", "print(1234 % 7)"),
    ("How many even numbers lie between 1 and 20?", "print(sum(1 for n in range(1, 21) if n % 2 == 0))"),
    ("Write the word lamp in capital letters.", "print('lamp'.upper())"),
    ("Sort these numbers from small to large: 9, 4, 7", "print(sorted([9, 4, 7]))"),
    ("Work out 7.5 - 2.25 - 1.", "print(7.5 - 2.25 - 1)"),
    ("What is 81 - 46 + 3?", "print(81 - 46 + 3)"),
]


def conversation(question):
    """Demonstrations as earlier turns, then the question."""
    messages = [{"role": "system", "content": SYSTEM}]
    for example, code in DEMONSTRATIONS:
        messages.append({"role": "user", "content": example})
        messages.append({"role": "assistant", "content": "```python\n" + code + "\n```"})
    messages.append({"role": "user", "content": question})
    return messages


def write_code(model, question):
    """Ask for a program that prints the answer."""
    return model.chat(conversation(question))


def extract_code(reply):
    """The first fenced block of the reply."""
    blocks = re.findall(r"```(?:python)?\n(.*?)```", reply, re.DOTALL)
    return blocks[0] if blocks else ""


def run_code(model, code):
    """What the program prints."""
    return model.python(code).stdout.strip()


def solve(model, question):
    return run_code(model, extract_code(write_code(model, question)))
