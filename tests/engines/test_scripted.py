"""The scripted engine: rules, seeds, cuts, log."""

import asyncio
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hl.engines.scripted import ScriptedEngine, cut_reply, parse_script
from hl.errors import EngineError, UsageError
from hl.types import ChatRequest, Message


def ask(*texts, seed=0, max_tokens=100, stop=(), system=None):
    messages = [Message("system", system)] if system is not None else []
    messages += [Message("user" if i % 2 == 0 else "assistant", t) for i, t in enumerate(texts)]
    return ChatRequest(tuple(messages), max_tokens, 0.0, stop, seed)


def reply(engine, request):
    return asyncio.run(engine.chat(request))


RULES = {
    "rules": [
        {"when": {"system": "revise", "last": "gcd"}, "replies": ["edit gcd"]},
        {"when": {"regex": "^sum: \\d+$"}, "replies": ["a", "b", "c"]},
        {"when": "anywhere", "replies": ["found"], "tokens": 7},
        {"when": "down", "fail": "no power"},
    ],
    "default": "nothing",
}


@pytest.mark.parametrize(
    ("request_", "text"),
    [
        (ask("solve gcd", system="you revise code"), "edit gcd"),
        (ask("solve gcd"), "nothing"),
        (ask("solve lcm", system="you revise code"), "nothing"),
        (ask("sum: 12"), "a"),
        (ask("sum: x"), "nothing"),
        (ask("somewhere anywhere", "hm", "last"), "found"),
    ],
)
def test_the_first_rule_whose_conditions_all_hold_answers(request_, text):
    assert reply(ScriptedEngine.from_rules(RULES), request_).text == text


def test_the_seed_alone_chooses_among_replies():
    async def both_orders():
        first, second = ScriptedEngine.from_rules(RULES), ScriptedEngine.from_rules(RULES)
        seeds = range(12)
        forwards = [(await first.chat(ask("sum: 1", seed=s))).text for s in seeds]
        backwards = [(await second.chat(ask("sum: 1", seed=s))).text for s in reversed(seeds)]
        return forwards, backwards[::-1]

    forwards, backwards = asyncio.run(both_orders())
    assert forwards == backwards == ["a", "b", "c"] * 4


def test_tokens_are_words_unless_the_rule_says_otherwise():
    engine = ScriptedEngine.from_rules(RULES)
    assert reply(engine, ask("anywhere at all")).completion_tokens == 7
    answer = reply(engine, ask("sum: 4"))
    assert (answer.prompt_tokens, answer.completion_tokens, answer.finish_reason) == (2, 1, "stop")
    assert engine.calls == 2


def test_a_failing_rule_is_an_engine_failure():
    with pytest.raises(EngineError, match="no power"):
        reply(ScriptedEngine.from_rules(RULES), ask("down"))


def test_limits_cut_as_a_models_would():
    assert cut_reply("one two  three four", max_tokens=3, stop=()) == ("one two  three", "length", 3)
    assert cut_reply("one two three", max_tokens=3, stop=()) == ("one two three", "stop", 3)
    assert cut_reply("keep\n\nspace ", max_tokens=9, stop=()) == ("keep\n\nspace ", "stop", 2)
    assert cut_reply("say END more", max_tokens=9, stop=("nope", "END")) == ("say ", "stop", 1)


@given(st.text(), st.integers(1, 20), st.lists(st.text(min_size=1, max_size=3), max_size=2))
def test_a_cut_reply_is_a_prefix_within_its_limits(text, limit, stop):
    cut, finish, words = cut_reply(text, max_tokens=limit, stop=stop)
    assert text.startswith(cut)
    assert words == len(cut.split()) <= limit
    assert not any(s in cut for s in stop)
    assert finish == "length" or cut == text or any(text[len(cut) :].startswith(s) for s in stop)


def test_a_large_reply_is_written_shortly():
    engine = ScriptedEngine.from_rules({"rules": [{"replies": [{"text": "ab ", "times": 100_000}]}]})
    assert len(reply(engine, ask("x", max_tokens=10**6)).text) == 300_000


def test_a_function_may_answer():
    engine = ScriptedEngine(
        function=lambda messages, request: f"{messages[-1].content} {request.seed}", label="echo"
    )
    assert reply(engine, ask("hello", seed=3)).text == "hello 3"


def test_the_log_has_a_line_for_every_call_that_started(tmp_path):
    rules = tmp_path / "rules.json"
    rules.write_text(
        json.dumps({"rules": [{"when": "down", "fail": "x"}], "default": "y", "log": "calls.jsonl"})
    )
    engine = ScriptedEngine.from_file(rules)
    reply(engine, ask("up", seed=5))
    with pytest.raises(EngineError):
        reply(engine, ask("down"))
    lines = [json.loads(line) for line in (tmp_path / "calls.jsonl").read_text().splitlines()]
    assert [(line["seed"], line["last"]) for line in lines] == [(5, "up"), (0, "down")]
    assert len({line["request"] for line in lines}) == 2


def test_the_digest_follows_the_replies_and_nothing_else(tmp_path):
    slow = {
        "rules": [{**RULES["rules"][0], "delay_s": 9}, *RULES["rules"][1:]],
        "default": "nothing",
        "log": "x",
    }
    assert ScriptedEngine.from_rules(slow).digest == ScriptedEngine.from_rules(RULES).digest
    other = {**RULES, "default": "something"}
    assert ScriptedEngine.from_rules(other).digest != ScriptedEngine.from_rules(RULES).digest


@pytest.mark.parametrize(
    "text",
    [
        "no json",
        "[]",
        '{"rule": []}',
        '{"rules": [{"wen": "x"}]}',
        '{"rules": [{"replies": []}]}',
        '{"rules": [{"replies": [3]}]}',
        '{"rules": [{"when": {"regex": "("}}]}',
        '{"rules": [{"when": 3}]}',
        '{"rules": ["x"]}',
        '{"rules": 3}',
    ],
)
def test_a_wrong_rules_file_is_named(text):
    with pytest.raises(UsageError, match=r"^r\.json is not a rules file: "):
        parse_script(text, "r.json")
