"""ReAct: thought, action, observation, in turns; the action is a line of Python or the end."""

import re

RULES = (
    "Work in steps. In each step write `Thought:` with one sentence, then one action line:\n"
    "`Python: <one expression>` to have an expression evaluated, or\n"
    "`Finish: <answer>` when you know the answer.\n"
    "After each Python action you are told its result as `Observation:`."
)
STEPS = 5


def first_message(question):
    """The rules and the question."""
    return {"role": "user", "content": RULES + "\n\nQuestion: " + question}


def next_action(reply):
    """The first action of a reply as (kind, argument); ("", "") where there is none."""
    found = re.search(r"^\W*(Python|Finish)\s*:\s*(.+)$", reply, re.MULTILINE | re.IGNORECASE)
    return (found[1].lower(), found[2].strip().strip("`")) if found else ("", "")


def observe(model, expression):
    """What the expression evaluates to, or the last line of the error."""
    result = model.python("print(" + expression + ")")
    if result.error:
        return result.error.strip().splitlines()[-1]
    return result.stdout.strip()


def last_line(reply):
    """The reply's last line that is not blank."""
    lines = [line.strip() for line in reply.splitlines() if line.strip()]
    return lines[-1] if lines else ""


def solve(model, question):
    messages = [first_message(question)]
    observation = ""
    reply = ""
    for _ in range(STEPS):
        reply = model.chat(messages, stop=["Observation:"])
        kind, argument = next_action(reply)
        if kind == "finish":
            return argument
        if kind == "python":
            observation = observe(model, argument)
            told = "Observation: " + observation
        else:
            told = "Observation: that was no action line. Write `Python:` or `Finish:`."
        messages.append({"role": "assistant", "content": reply})
        messages.append({"role": "user", "content": told})
    return observation or last_line(reply)
