"""What a child may write on its channel, and how the host takes it."""

from collections.abc import Mapping
from typing import Any

import pytest

from hl.sandbox.host import Answer, Limits
from hl.types import Status
from tests.sandbox.kit import Box, Echo

RAW = """
import json, os, struct, sys
def raw(data):
    os.write(3, data)
def frame(payload):
    raw(struct.pack(">I", len(payload)) + payload)
def say(**message):
    frame(json.dumps(message).encode())
def chat(id, text="x"):
    return dict(id=id, op="chat", args={"messages": [{"role": "user", "content": text}]})
"""

VIOLATIONS = {
    "not_json": "frame(b'{')",
    "not_an_object": "frame(b'[1]')",
    "empty": "frame(b'')",
    "not_a_number": "frame(b'{\"op\": \"result\", \"status\": \"ok\", \"value\": NaN, \"error\": \"\"}')",
    "infinity": "frame(b'{\"op\": \"result\", \"status\": \"ok\", \"value\": 1e999, \"error\": \"\"}')",
    "utf_16": "frame('{\"op\": \"ready\"}'.encode('utf-16'))",
    "utf_32": "frame('{\"op\": \"ready\"}'.encode('utf-32-le'))",
    "not_utf_8": "frame(b'{\"op\": \"\\xff\"}')",
    "nested_deeply": "frame(b'{\"a\":' * 100000 + b'1' + b'}' * 100000)",
    "nested_lists": "frame(b'[' * 500000)",
    "many_digits": "frame(b'{\"op\": ' + b'9' * 10000 + b'}')",
    "huge_frame": "raw(struct.pack('>I', 0xFFFFFFFF))",
    "unknown_operation": "say(id=1, op='grade', args={})",
    "operation_of_another_type": "say(id=1, op=['chat'], args={})",
    "no_operation": "say(id=1)",
    "ready_again": "say(op='ready')",
    "negative_id": "say(**chat(-1))",
    "huge_id": "say(**chat(1 << 40))",
    "true_as_id": "say(**chat(True))",
    "text_as_id": "say(**chat('1'))",
    "no_id": "say(op='chat', args={})",
    "same_id_twice": "p = json.dumps(chat(5)).encode(); raw((struct.pack('>I', len(p)) + p) * 2)",
    "arguments_not_an_object": "say(id=1, op='chat', args=[1])",
    "batch_without_calls": "say(op='batch')",
    "batch_of_numbers": "say(op='batch', calls=[1])",
    "batch_in_a_batch": "say(op='batch', calls=[dict(op='batch', calls=[chat(1)])])",
    "result_in_a_batch": "say(op='batch', calls=[dict(op='result', status='ok', value='x', error='')])",
    "batch_with_the_same_id_twice": "say(op='batch', calls=[chat(5), chat(5)])",
    "status_timeout": "say(op='result', status='timeout', value='', error='')",
    "status_lost": "say(op='result', status='lost', value='', error='')",
    "status_of_another_type": "say(op='result', status=['ok'], value='', error='')",
    "error_of_another_type": "say(op='result', status='ok', value='', error=1)",
    "stage_of_another_name": "say(op='stage', stage='done')",
}  # fmt: skip


@pytest.mark.parametrize("name", VIOLATIONS)
def test_violations_end_the_attempt(best: Box, name: str) -> None:
    source = f"{RAW}\ndef solve(model, question):\n    {VIOLATIONS[name]}\n    while True: pass\n"
    result = best.solve(source)
    assert (result.status, result.value) == (Status.CRASH, ""), result
    assert "protocol" in result.error


def test_a_forged_result_is_only_an_answer(best: Box) -> None:
    source = (
        f"{RAW}\ndef solve(model, question):\n    say(op='result', status='ok', value='forged', error='')\n"
    )
    assert best.solve(f"{source}    while True: pass\n").value == "forged"


def test_the_first_result_counts_and_closes_the_channel(best: Box) -> None:
    body = "say(op='result', status='ok', value='first', error='')"
    source = f"""{RAW}
def solve(model, question):
    {body}; say(op='result', status='ok', value='second', error=''); say(**chat(9, 'late'))
    return 'third'
"""
    session = Echo()
    assert best.solve(source, session=session).value == "first"
    assert session.asked == []


@pytest.mark.parametrize("value", ["None", "3", "['x']", "{'a': 'b'}", "True"])
def test_a_forged_result_that_is_no_string(best: Box, value: str) -> None:
    source = (
        f"{RAW}\ndef solve(model, question):\n    say(op='result', status='ok', value={value}, error='')\n"
    )
    result = best.solve(source)
    assert (result.status, result.value) == (Status.CONTRACT, "")


def test_lone_surrogates_do_not_reach_us(best: Box) -> None:
    session = Echo()
    source = r"""
def solve(model, question):
    model("a\ud800b")
    return "c\udfff\U0001F600d"
"""
    result = best.solve(source, session=session)
    assert result.value == "c\ufffd\U0001f600d"
    assert session.asked[0][1]["messages"][0]["content"] == "a\ufffdb"
    error = best.solve(r"def solve(model, question): raise ValueError('\ud800')").error
    error.encode()


def test_broken_into_pieces(best: Box) -> None:
    source = f"""{RAW}
import time
def solve(model, question):
    payload = json.dumps(dict(op='result', status='ok', value='whole', error='')).encode()
    for byte in struct.pack(">I", len(payload)) + payload:
        raw(bytes([byte]))
    time.sleep(60)
"""
    assert best.solve(source).value == "whole"


def test_truncated_frame(best: Box) -> None:
    source = f"{RAW}\ndef solve(model, question):\n    raw(struct.pack('>I', 100) + b'x'); os._exit(0)\n"
    result = best.solve(source)
    assert (result.status, result.value) == (Status.CRASH, "")
    assert "exited with code 0" in result.error


def test_going_on_over_budget_ends_the_attempt(best: Box) -> None:
    refused = 0

    def answer(op: str, args: Mapping[str, Any]) -> Answer:
        nonlocal refused
        refused += 1
        return Answer(kind="budget", message="spent", fatal=Status.BUDGET if refused > 10 else None)

    source = """
def solve(model, question):
    while True:
        try: model("more")
        except BaseException: pass
"""
    result = best.solve(source, session=Echo(answer))
    assert (result.status, result.error) == (Status.BUDGET, "spent")
    assert refused == 11


def test_too_many_calls_at_once(best: Box) -> None:
    source = f"""{RAW}
def solve(model, question):
    for i in range(1, 100000):
        say(**chat(i))
"""
    session = Slow()
    result = best.solve(source, session=session)
    assert result.status is Status.BUDGET
    assert session.asked <= 256


class Slow:
    """Never answers in time."""

    def __init__(self) -> None:
        self.asked = 0

    async def call(self, op: str, args: Mapping[str, Any]) -> Answer:
        import asyncio

        self.asked += 1
        await asyncio.sleep(3600)
        return Answer("")


def test_not_reading_replies(best: Box) -> None:
    source = f"""{RAW}
def solve(model, question):
    for i in range(1, 2000):
        say(**chat(i))
    while True: pass
"""
    session = Echo(lambda op, args: Answer("x" * 1_000_000))
    result = best.solve(source, session=session, limits=Limits(wall_s=5))
    assert result.status in (Status.CRASH, Status.BUDGET)
    assert len(session.asked) < 300


def test_a_batch_counts_every_call(best: Box) -> None:
    flood = "say(op='batch', calls=[dict(id=i, op='budget', args={}) for i in range(1, 10_000)])"
    result = best.solve(f"{RAW}\ndef solve(model, question):\n    {flood}\n    while True: pass\n")
    assert result.status is Status.BUDGET
    assert "too many calls" in result.error
