"""Honest harnesses: what a program may expect to work, and the whole of the `model` object."""

import json
from collections.abc import Mapping
from typing import Any

from hl.sandbox.host import Answer, Limits
from hl.types import Status
from tests.sandbox.kit import Box, Echo

ORDINARY = """
import asyncio, base64, bisect, calendar, collections, copy, csv, datetime, decimal, difflib, enum, fractions
import functools, hashlib, heapq, html, inspect, io, itertools, json, math, operator, os, pprint, queue, random, re
import statistics, string, struct, tempfile, textwrap, threading, time, typing, unicodedata, uuid, zoneinfo
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
import helper

@dataclass(order=True)
class Point:
    x: int
    y: int = 0
    tags: list["str"] = field(default_factory=list)

class Colour(enum.Enum):
    RED = 1

async def double(x):
    await asyncio.sleep(0.001)
    return await asyncio.to_thread(lambda: 2 * x)

async def doubles():
    return await asyncio.gather(*(double(i) for i in range(5)))

def solve(model, question):
    print("a trace nobody reads", flush=True)
    with ThreadPoolExecutor(4) as pool:
        squares = list(pool.map(lambda x: x * x, range(4)))
    q = queue.Queue()
    thread = threading.Thread(target=q.put, args=(7,))
    thread.start(); thread.join()
    with open(os.devnull, "w") as sink:
        print("gone", file=sink)
    with io.StringIO() as buffer:
        print("kept", end="", file=buffer)
        kept = buffer.getvalue()
    found = {
        "asyncio": asyncio.run(doubles()),
        "pool": squares,
        "queue": q.get(timeout=5),
        "json": json.loads(json.dumps({"a": [1, 2.5, None]})),
        "re": re.findall(r"[a-z]+", "ab 12 cd"),
        "point": repr(Point(1, tags=["t"])),
        "enum": Colour(1).name,
        "statistics": statistics.mean([1, 2, 3]),
        "fraction": str(fractions.Fraction(1, 3) + 1),
        "decimal": str(decimal.Decimal("0.1") + decimal.Decimal("0.2")),
        "date": datetime.date(2024, 2, 29).isoformat(),
        "zone": datetime.datetime(2024, 7, 1, tzinfo=zoneinfo.ZoneInfo("UTC")).isoformat(),
        "hash": hashlib.sha256(b"x").hexdigest()[:8],
        "csv": next(csv.reader(["a,b"])),
        "helper": helper.greet("you"),
        "source": inspect.getsource(helper.greet).splitlines()[0],
        "file": helper.__file__,
        "kept": kept,
        "real": os.path.realpath("/usr/../usr"),
        "now": time.time() > 1e9 and len(uuid.uuid4().hex) == 32,
    }
    return json.dumps(found)
"""


def test_an_ordinary_program(box: Box) -> None:
    result = box.solve(ORDINARY, helper="def greet(who):\n    return f'hello {who}'\n")
    assert result.status is Status.OK, result.error
    assert json.loads(result.value) == {
        "asyncio": [0, 2, 4, 6, 8],
        "pool": [0, 1, 4, 9],
        "queue": 7,
        "json": {"a": [1, 2.5, None]},
        "re": ["ab", "cd"],
        "point": "Point(x=1, y=0, tags=['t'])",
        "enum": "RED",
        "statistics": 2,
        "fraction": "4/3",
        "decimal": "0.3",
        "date": "2024-02-29",
        "zone": "2024-07-01T00:00:00+00:00",
        "hash": "2d711642",
        "csv": ["a", "b"],
        "helper": "hello you",
        "source": "def greet(who):",
        "file": "helper.py",
        "kept": "kept",
        "real": "/usr",
        "now": True,
    }


def test_modules_that_are_not_preloaded(box: Box) -> None:
    names = "graphlib ipaddress colorsys numbers optparse pathlib sched symtable xml.etree.ElementTree zipfile sqlite3"
    source = f"""
import importlib
def solve(model, question):
    return str([importlib.import_module(name).__name__ for name in {names.split()!r}])
"""
    result = box.solve(source)
    assert result.value == str(names.split()), result.error


def test_traceback_quotes_the_harness_and_not_us(best: Box) -> None:
    helper = "def divide(a):\n    return a / 0  # here\n"
    result = best.solve(
        "import helper\n\ndef solve(model, question):\n    return helper.divide(1)\n", helper=helper
    )
    assert result.status is Status.CRASH
    lines = result.error.splitlines()
    assert lines[0] == "Traceback (most recent call last):"
    assert lines[1:3] == ['  File "harness.py", line 4, in solve', "    return helper.divide(1)"]
    assert '  File "helper.py", line 2, in divide' in lines
    assert "    return a / 0  # here" in lines
    assert lines[-1] == "ZeroDivisionError: division by zero"
    assert "hl sandbox" not in result.error


def test_contract(best: Box) -> None:
    for source, word in (
        ("x = 1", "no function solve"),
        ("solve = 3", "no function solve"),
        ("def solve(model, question): return 3", "returned int"),
        ("def solve(model, question): pass", "returned NoneType"),
        ("async def solve(model, question): return 'x'", "returned coroutine"),
    ):
        result = best.solve(source)
        assert (result.status, result.value) == (Status.CONTRACT, "")
        assert word in result.error


def test_a_subclass_of_str_is_a_string(best: Box) -> None:
    source = "class S(str):\n    def __str__(self): return 'no'\ndef solve(model, question): return S('yes')"
    assert best.solve(source).value == "yes"


def test_random_follows_the_seed(best: Box) -> None:
    source = "import random\ndef solve(model, question): return str(random.random()) + str(hash('x'))"
    first, again, other = (best.solve(source, seed=seed).value for seed in (1, 1, 2))
    assert first == again
    assert first != other


# --- model -----------------------------------------------------------------------------------------------------


def test_model_calls(box: Box) -> None:
    source = """
import json
def solve(model, question):
    b = model.budget
    r = model.python("1/0", timeout_s=2)
    return json.dumps([
        model("p"),
        model("p", system="s", max_tokens=5, temperature=0.5, stop="x"),
        model.chat([{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}], stop=["x", "y"]),
        model.sample("s", 2),
        model.map(["1", "2", "3"], max_tokens=3),
        [r.stdout, r.error],
        [[p.title, p.text] for p in model.search("find", k=2)],
        [b.calls, b.tokens, b.seconds],
    ])
"""
    session = Echo()
    result = box.solve(source, session=session)
    assert json.loads(result.value) == [
        "echo p",
        "echo p",
        "echo b",
        ["echo s", "echo s"],
        ["echo 1", "echo 2", "echo 3"],
        ["out", ""],
        [["t0", "find"], ["t1", "find"]],
        [3, 5, 7.5],
    ]
    chat = [args for op, args in session.asked if op == "chat"]
    assert chat[0] == {
        "messages": [{"role": "user", "content": "p"}],
        "max_tokens": None,
        "temperature": None,
        "stop": None,
    }
    assert chat[1] == {
        "messages": [{"role": "system", "content": "s"}, {"role": "user", "content": "p"}],
        "max_tokens": 5,
        "temperature": 0.5,
        "stop": ["x"],
    }
    assert chat[2]["stop"] == ["x", "y"]
    assert ("python", {"code": "1/0", "timeout_s": 2}) in session.asked


def test_model_refusals_are_exceptions(best: Box) -> None:
    source = """
def solve(model, question):
    seen = []
    for word in ("budget", "value", "unavailable"):
        try:
            model(word)
        except model.BudgetExceeded as error:
            seen.append(f"budget {error}")
        except ValueError as error:
            seen.append(f"value {error}")
        except RuntimeError as error:
            seen.append(f"runtime {error}")
    try:
        model(7)
    except TypeError as error:
        seen.append(str(error))
    return "; ".join(seen)
"""

    def answer(op: str, args: Mapping[str, Any]) -> Answer:
        return Answer(kind=args["messages"][0]["content"], message="no")

    result = best.solve(source, session=Echo(answer))
    assert result.value == "budget no; value no; runtime no; the prompt must be a string, not int"


def test_escaping_budget_is_its_own_status(best: Box) -> None:
    session = Echo(lambda op, args: Answer(kind="budget", message="spent"))
    result = best.solve("def solve(model, question): return model('x')", session=session)
    assert (result.status, result.value) == (Status.BUDGET, "")
    assert "spent" in result.error


def test_calls_from_threads_and_tasks(box: Box) -> None:
    source = """
import asyncio
from concurrent.futures import ThreadPoolExecutor
def solve(model, question):
    with ThreadPoolExecutor(8) as pool:
        a = list(pool.map(model, [str(i) for i in range(100)]))
    async def gather():
        return await asyncio.gather(*(asyncio.to_thread(model, str(i)) for i in range(100)))
    b = asyncio.run(gather())
    c = model.map(str(i) for i in range(200))
    return str(a == b == c[:100] == [f"echo {i}" for i in range(100)] and len(c))
"""
    assert box.solve(source, limits=Limits()).value == "200"


def test_large_messages_both_ways(box: Box) -> None:
    source = """
def solve(model, question):
    replies = model.map(["é" * 100000] * 8)
    return str({len(r) for r in replies})
"""
    assert box.solve(source, "q" * 500000).value == "{100005}"
