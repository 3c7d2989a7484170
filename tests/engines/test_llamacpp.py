"""The real SmolLM2 through llama.cpp. Needs `hl model pull smollm2`, which `make test` runs first."""

import asyncio
import http.client
import json
import os
import signal
import subprocess
import sys
import time

import pytest

from hl.engines.base import EngineSpec, open_engine
from hl.engines.llamacpp import LlamaCppEngine
from hl.errors import EngineError, UsageError
from hl.types import ChatRequest, Message

pytestmark = pytest.mark.model


def ask(text, *, max_tokens=12, seed=0, temperature=0.0, stop=(), role="user"):
    return ChatRequest((Message(role, text),), max_tokens, temperature, stop, seed)


def replies(engine, *requests):
    async def run():
        return await asyncio.gather(*(engine.chat(r) for r in requests))

    return asyncio.run(run())


def opened(**fields):
    return LlamaCppEngine(EngineSpec("llamacpp", model="smollm2", **fields))


@pytest.fixture(scope="module")
def engine():
    engine = opened(slots=4, context_tokens=1024)
    yield engine
    asyncio.run(engine.aclose())


@pytest.fixture(scope="module")
def steady():
    engine = opened(deterministic=True, context_tokens=1024)
    yield engine
    engine.close()


def test_it_answers(engine):
    [reply] = replies(engine, ask("How many days are in a week?", max_tokens=30))
    assert "7" in reply.text or "seven" in reply.text.lower()
    assert reply.prompt_tokens > reply.completion_tokens > 0
    assert reply.seconds > 0
    assert reply.finish_reason == "stop"


def test_the_limit_and_stop_texts_end_a_reply(engine):
    cut, stopped = replies(
        engine,
        ask("Tell me a story.", max_tokens=5),
        ask("Count: one, two, three", max_tokens=40, stop=("\ud800", "e")),
    )
    assert (cut.finish_reason, cut.completion_tokens) == ("length", 5)
    assert "e" not in stopped.text


def test_deterministic_gives_the_same_text_whatever_ran_before_and_beside(steady):
    questions = [ask(f"Write a sentence about the number {i}.", max_tokens=16) for i in range(3)]
    first = [r.text for r in replies(steady, *questions)]
    second = [r.text for r in replies(steady, *reversed(questions))][::-1]
    assert first == second
    assert len(set(first)) == 3


def test_deterministic_samples_follow_the_seed(steady):
    def sample(seed):
        return replies(steady, ask("Name an animal.", temperature=1.5, seed=seed))[0].text

    assert sample(1) == sample(1)
    assert len({sample(seed) for seed in (1, 2, 3)}) > 1


def test_prompts_that_share_a_prefix_are_answered_from_a_copy_of_its_state(engine, steady):
    prefix = "".join(f"The box number {i} is {'red' if i % 2 else 'blue'}.\n" for i in range(20))
    questions = [ask(f"{prefix}What colour is box {i}? Answer in a word.", max_tokens=6) for i in range(8)]
    together = [r.text for r in replies(engine, *questions)]
    alone = [r.text for r in replies(steady, *questions[:3])]
    assert engine.snapshots == 1, "one of the eight prompts should have been read for all"
    # What runs beside a request may move a word now and then; a wrong state would change them all.
    assert sum(a == b for a, b in zip(alone, together[:3], strict=True)) >= 2


def test_a_prompt_that_is_too_long_is_an_empty_reply_of_finish_reason_length(engine):
    [reply] = replies(engine, ask("word " * 1500))
    assert (reply.text, reply.finish_reason, reply.completion_tokens) == ("", "length", 0)
    assert reply.prompt_tokens > 1024
    assert replies(engine, ask("Hi"))[0].text


@pytest.mark.parametrize(
    "text",
    ["", "\ud800 lone", "\x00\x02user\x03", "<|im_end|>\n<|im_start|>system", "🙂" * 50],
    ids=["empty", "surrogate", "control", "template", "emoji"],
)
def test_odd_prompts_are_answered(engine, text):
    replies(engine, ask(text), ask(text, role="no-such-role"))


def test_a_cancelled_call_stops_at_its_next_token():
    # It would go on for 900 tokens, so that stopping is told from waiting by comparison with 30 of them.
    engine = opened(slots=1, context_tokens=1024, extra_body={"ignore_eos": True})

    async def run():
        await engine.chat(ask("Hi", max_tokens=2))
        start = time.monotonic()
        await engine.chat(ask("Hi", max_tokens=30))
        thirty_s = time.monotonic() - start
        start = time.monotonic()
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(engine.chat(ask("Write a very long story.", max_tokens=900)), thirty_s / 3)
        await engine.chat(ask("Hi", max_tokens=2))
        return (time.monotonic() - start) / thirty_s

    assert asyncio.run(run()) < 15
    engine.close()


def test_a_call_cancelled_in_the_queue_is_never_run(steady):
    async def run():
        busy = asyncio.create_task(steady.chat(ask("Tell me a tale.", max_tokens=30)))
        await asyncio.sleep(0)
        queued = asyncio.create_task(steady.chat(ask("x", max_tokens=900)))
        await asyncio.sleep(0)
        queued.cancel()
        return (await busy).completion_tokens, await asyncio.wait_for(
            steady.chat(ask("Hi", max_tokens=2)), 60
        )

    tokens, last = asyncio.run(run())
    assert tokens > 2
    assert last.text


def test_closing_ends_running_and_waiting_calls():
    async def run():
        engine = opened(deterministic=True, context_tokens=1024)
        calls = [
            asyncio.create_task(engine.chat(ask("Write a very long story.", max_tokens=900)))
            for _ in range(2)
        ]
        await asyncio.sleep(1.0)
        await engine.aclose()
        await engine.aclose()
        for result in await asyncio.wait_for(asyncio.gather(*calls, return_exceptions=True), 30):
            assert isinstance(result, EngineError)
        with pytest.raises(EngineError, match="closed"):
            await engine.chat(ask("Hi"))

    asyncio.run(run())


def test_its_port_answers_nobody_without_the_key(engine):
    replies(engine, ask("Hi", max_tokens=1))
    connection = http.client.HTTPConnection(engine.address, timeout=60)
    body = json.dumps({"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 1})
    connection.request("POST", "/v1/chat/completions", body, {"Content-Type": "application/json"})
    assert connection.getresponse().status == 401
    connection.close()
    assert engine.address.startswith("127.0.0.1:")


def test_settings_that_llama_cpp_refuses_are_our_failure():
    engine = opened(slots=1, context_tokens=512, extra_body={"top_k": "many"})
    with pytest.raises(EngineError, match=r"refuses extra_body or chat_template_kwargs: .*top_k"):
        replies(engine, ask("Hi"))
    engine.close()


def test_a_file_that_is_no_model_is_named_with_the_reason(tmp_path):
    path = tmp_path / "broken.gguf"
    path.write_bytes(b"GGUF" + b"\x99" * 64)
    engine = LlamaCppEngine(EngineSpec("llamacpp", path=str(path)))
    with pytest.raises(EngineError, match=r"cannot load .*broken\.gguf: .*version"):
        replies(engine, ask("Hi"))
    engine.close()


def test_a_model_file_that_was_changed_is_refused(tmp_path, monkeypatch):
    from hl.engines.weights import KNOWN

    monkeypatch.setenv("HL_CACHE_DIR", str(tmp_path))
    path = tmp_path / "models" / KNOWN["smollm2"].file_name
    path.parent.mkdir()
    with path.open("wb") as file:
        file.write(b"GGUF")
        file.truncate(KNOWN["smollm2"].gguf_bytes)
    engine = opened()
    with pytest.raises(EngineError, match="its sha256 differs"):
        replies(engine, ask("Hi"))
    engine.close()


def test_a_missing_model_names_the_command_that_fetches_it(tmp_path, monkeypatch):
    monkeypatch.setenv("HL_CACHE_DIR", str(tmp_path))
    with pytest.raises(EngineError, match="smollm2 is not on this machine") as caught:
        opened()
    assert caught.value.hint == "hl model pull smollm2"


@pytest.mark.parametrize("field", ["threads", "slots", "context_tokens"])
def test_numbers_must_be_positive(field):
    with pytest.raises(UsageError, match=field):
        opened(**{field: 0})


def test_the_digest_follows_what_changes_replies(engine, tmp_path):
    base = opened()
    assert opened(slots=2, threads=1).digest == base.digest
    for other in ({"deterministic": True}, {"context_tokens": 100}, {"extra_body": {"top_k": 1}}):
        assert opened(**other).digest != base.digest
    assert open_engine(EngineSpec("llamacpp", path=str(base.path))).digest == base.digest


LONG = """
import asyncio, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job begins with Ctrl-C ignored
from hl.engines.base import EngineSpec, open_engine
from hl.types import ChatRequest, Message
async def main():
    engine = open_engine(EngineSpec("llamacpp", model="smollm2", slots=2, context_tokens=1024))
    ask = lambda n: engine.chat(ChatRequest((Message("user", "Write a very long story."),), n, 0.0))
    await ask(2)
    print("ready", flush=True)
    while sys.argv[1] == "wait":  # a story may end early: only the signal ends this
        await asyncio.gather(ask(900), ask(900), ask(900))
asyncio.run(main())
"""


@pytest.mark.parametrize("how", ["wait", "leave"])
def test_a_process_ends_at_ctrl_c_or_without_closing_and_prints_nothing(how):
    command = [sys.executable, "-c", LONG, how]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None and child.stdout.readline() == "ready\n"
        if how == "wait":
            time.sleep(0.5)
            os.kill(child.pid, signal.SIGINT)
        try:
            out, err = child.communicate(timeout=60)
        finally:
            child.kill()
    assert out == ""
    if how == "wait":
        assert child.returncode in (1, -signal.SIGINT)
        assert err.rstrip().endswith("KeyboardInterrupt")
    else:
        assert (child.returncode, err) == (0, "")
