"""What every engine promises, asked of each in turn: a served script, the real SmolLM2, a random model, and vLLM."""

import asyncio
import importlib.util
import json
from dataclasses import replace

import pytest

from hl.engines.base import EngineSpec, open_engine
from hl.types import ChatRequest, Message
from tests.engines.kit import RULES, Served

LONG = " ".join(f"word{i}" for i in range(200))
ENGINES = [
    "scripted",
    "openai",
    pytest.param("llamacpp", marks=pytest.mark.model),
    pytest.param("hf", marks=pytest.mark.skipif(importlib.util.find_spec("peft") is None, reason="no torch")),
    pytest.param(
        "vllm",
        marks=[
            pytest.mark.vllm,
            pytest.mark.skipif(importlib.util.find_spec("vllm") is None, reason="vLLM is not installed"),
        ],
    ),
]


@pytest.fixture(scope="module", params=ENGINES)
def spec(request, tmp_path_factory):
    """Where each engine's model is."""
    home = tmp_path_factory.mktemp(request.param)
    priced = EngineSpec(request.param, price_in=2.0, price_out=8.0, context_tokens=1024, threads=1)
    rules = {"rules": RULES["rules"], "default": LONG}
    if request.param == "scripted":
        (home / "rules.json").write_text(json.dumps(rules))
        yield replace(priced, path=str(home / "rules.json"))
    elif request.param == "openai":
        with Served(home, rules=rules) as served:
            yield replace(priced, model="scripted", base_url=served.url)
    elif request.param == "llamacpp":
        yield replace(priced, model="smollm2")
    else:
        from scripts.tiny_model import write_tiny

        yield replace(priced, path=str(write_tiny(home / "tiny")))


@pytest.fixture(scope="module")
def runner():
    """One event loop for all calls of an engine, as in a run."""
    with asyncio.Runner() as runner:
        yield runner


@pytest.fixture(scope="module")
def ask(spec, runner):
    """Ask one engine several requests at once."""
    engine = open_engine(spec)

    def run(*requests):
        async def together():
            return await asyncio.gather(*(engine.chat(r) for r in requests))

        return runner.run(together())

    run.engine = engine
    yield run
    runner.run(engine.aclose())


def request(text="Tell me a story.", *, max_tokens=8, stop=(), seed=0, temperature=0.0):
    return ChatRequest((Message("user", text),), max_tokens, temperature, stop, seed)


def test_it_has_a_name_a_digest_and_a_concurrency(ask, spec):
    engine = ask.engine
    assert engine.name.startswith(spec.engine) and engine.name.isprintable()
    assert len(engine.digest) == 64 and int(engine.digest, 16) >= 0
    assert engine.concurrency >= 1
    again = open_engine(spec)
    assert (again.name, again.digest) == (engine.name, engine.digest)


def test_a_reply_is_counted_priced_and_within_its_limit(ask, spec):
    [reply] = ask(request())
    assert (reply.finish_reason, reply.completion_tokens) == ("length", 8)
    assert reply.prompt_tokens > 0 and reply.seconds >= 0 and reply.retries == 0
    assert reply.cost == pytest.approx(spec.price(reply.prompt_tokens, 8))


def test_without_temperature_the_same_request_gives_the_same_text(ask):
    [first], [second] = ask(request()), ask(request())
    assert first.text == second.text


def test_a_stop_text_ends_a_reply_and_is_not_in_it(ask):
    [whole] = ask(request(max_tokens=24))
    stop = whole.text[4:6]
    [cut] = ask(request(max_tokens=24, stop=(stop,)))
    assert cut.text == whole.text[: whole.text.index(stop)] and cut.finish_reason == "stop"


def test_many_at_once_are_all_answered(ask):
    requests = [request(f"question {i}", seed=i, temperature=0.8, max_tokens=3 + i % 3) for i in range(20)]
    replies = ask(*requests)
    assert len(replies) == 20
    assert all(r.completion_tokens <= q.max_tokens for r, q in zip(replies, requests, strict=True))


def test_a_cancelled_call_leaves_the_engine_in_order(ask, runner):
    async def cancel():
        call = asyncio.ensure_future(ask.engine.chat(request("slow", max_tokens=500)))
        await asyncio.sleep(0.2)
        call.cancel()
        return await asyncio.gather(call, return_exceptions=True)

    runner.run(cancel())
    [reply] = ask(request(max_tokens=2))
    assert reply.completion_tokens == 2


def test_texts_that_are_no_unicode_and_odd_roles_are_no_engine_failure(ask):
    odd = ChatRequest((Message("system", "Be brief."), Message("user", "a\ud800b")), 2, 0.0)
    turns = ChatRequest((Message("user", "a"), Message("assistant", "b"), Message("user", "c")), 2, 0.0)
    assert all(r.finish_reason in ("stop", "length") for r in ask(odd, turns))


def test_a_prompt_beyond_the_context_is_an_empty_reply(ask, spec):
    if spec.engine in ("scripted", "openai"):
        pytest.skip("it has no context of its own")
    [reply] = ask(request("many words " * 2000))
    assert (reply.text, reply.finish_reason) == ("", "length")


def test_closing_twice_is_fine(spec, runner):
    engine = open_engine(spec)
    runner.run(engine.aclose())
    runner.run(engine.aclose())
