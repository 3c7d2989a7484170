"""transformers in process, on a two-layer random model made here; and the dequantised SmolLM2 against llama.cpp."""

import asyncio
import json
import math
import shutil

import pytest

pytest.importorskip("torch")
pytest.importorskip("peft")

from hl.engines.adapters import CONFIG, read_adapter
from hl.engines.base import EngineSpec, open_engine
from hl.engines.chat_template import ChatTemplate
from hl.engines.hf import HfEngine, load_model, reply_log_probs
from hl.errors import EngineError, UsageError
from hl.types import ChatRequest, Message
from scripts.tiny_model import write_adapter, write_tiny

pytestmark = pytest.mark.filterwarnings(
    # Both come out of torch and peft themselves.
    "ignore:.*deprecated.*:DeprecationWarning",
    "ignore:.*deprecated.*:FutureWarning",
)


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    home = tmp_path_factory.mktemp("models")
    base = write_tiny(home / "tiny")
    return base, write_adapter(base, home / "sft")


@pytest.fixture(scope="module")
def engine(folders):
    engine = HfEngine(EngineSpec("hf", path=str(folders[0]), slots=8, threads=1))
    yield engine
    engine.close()


def ask(text, *, max_tokens=24, temperature=0.0, seed=0, stop=()):
    return ChatRequest((Message("user", text),), max_tokens, temperature, stop, seed)


def replies(engine, *requests):
    async def run():
        return await asyncio.gather(*(engine.chat(r) for r in requests))

    return asyncio.run(run())


def opened(folders, **fields):
    return HfEngine(EngineSpec("hf", path=str(folders[0]), threads=1, **fields))


def test_a_batch_gives_what_each_request_gives_alone(engine, folders):
    mixed = [
        ask("short", seed=1),
        ask("a much longer question " * 9, seed=2),
        ask("warm", temperature=1.0, seed=3),
        ask("warm", temperature=1.0, seed=4),
        ask("warmer, and longer", temperature=2.0, seed=3, max_tokens=9),
    ]
    together = replies(engine, *mixed)
    alone = [replies(engine, request)[0] for request in mixed]
    assert [r.text for r in together] == [r.text for r in alone]
    assert [r.prompt_tokens for r in together] == [r.prompt_tokens for r in alone]
    assert together[2].text != together[3].text
    steady = opened(folders, deterministic=True)
    assert steady.concurrency == 1
    assert [r.text for r in replies(steady, *mixed)] == [r.text for r in together]
    steady.close()


def test_waiting_requests_are_one_batch(engine):
    batches = []
    inner = engine._answer
    engine._answer = lambda calls: (batches.append(len(calls)), inner(calls))
    replies(engine, *(ask("eight at once", temperature=1.0, seed=i, max_tokens=4) for i in range(8)))
    del engine._answer
    assert batches == [8]


def test_samples_follow_the_model_at_the_temperature(engine, folders):
    model, tokenizer = load_model(str(folders[0]))
    prompt = ChatTemplate(tokenizer, "tiny").render((Message("user", "count"),))
    texts = [
        r.text
        for r in replies(engine, *(ask("count", max_tokens=1, temperature=1.0, seed=i) for i in range(400)))
    ]
    ids = {text: tokenizer.encode(text, add_special_tokens=False) for text in set(texts)}
    likely = max((t for t in ids if len(ids[t]) == 1), key=texts.count)
    [log_prob] = reply_log_probs(model, prompt, ids[likely])
    share, p = texts.count(likely) / len(texts), math.exp(log_prob)
    assert abs(share - p) < 4 * math.sqrt(p * (1 - p) / len(texts))


def test_limits_stops_and_a_prompt_that_is_too_long(engine, folders):
    [free] = replies(engine, ask("tell me", max_tokens=30))
    assert free.finish_reason == "length" and free.completion_tokens == 30
    stop = free.text[3:5]
    [cut] = replies(engine, ask("tell me", max_tokens=30, stop=(stop,)))
    assert cut.finish_reason == "stop" and cut.text == free.text[: free.text.index(stop)]
    assert cut.completion_tokens < 30
    small = opened(folders, context_tokens=64)
    long, near = replies(small, ask("x" * 80), ask("x" * 40))
    small.close()
    assert (long.text, long.finish_reason, long.completion_tokens) == ("", "length", 0)
    assert near.finish_reason == "length" and near.prompt_tokens + near.completion_tokens == 64


def test_cancelled_and_closed(folders):
    engine = opened(folders)

    async def run():
        slow = asyncio.ensure_future(engine.chat(ask("hi", max_tokens=8000)))
        await asyncio.sleep(0.5)
        slow.cancel()
        quick = await asyncio.wait_for(engine.chat(ask("quick", max_tokens=2)), 30)
        waiting = asyncio.ensure_future(engine.chat(ask("hi", max_tokens=8000)))
        await asyncio.sleep(0.2)
        await engine.aclose()
        with pytest.raises(EngineError, match="closed"):
            await waiting
        with pytest.raises(EngineError, match="closed"):
            await engine.chat(ask("late"))
        return quick

    assert asyncio.run(run()).completion_tokens == 2


def test_an_adapter_changes_log_probabilities_and_not_the_base(folders):
    base, adapter = folders
    before = {p.name: p.read_bytes() for p in base.iterdir()}
    plain, tokenizer = load_model(str(base))
    prompt, reply = (
        ChatTemplate(tokenizer, "tiny").render((Message("user", "hi"),)),
        tokenizer.encode("hello there"),
    )
    first = reply_log_probs(plain, prompt, reply)
    tuned, _ = load_model(str(base), str(adapter))
    changed = reply_log_probs(tuned, prompt, reply)
    assert max(abs(a - b) for a, b in zip(first, changed, strict=True)) > 0.01
    assert reply_log_probs(tuned.unload(), prompt, reply) == first == reply_log_probs(plain, prompt, reply)
    assert {p.name: p.read_bytes() for p in base.iterdir()} == before
    assert not any(p.requires_grad for p in tuned.parameters() if p.ndim > 2)
    trainable, _ = load_model(str(base), str(adapter), trainable=True)
    assert {n.split(".")[-3] for n, p in trainable.named_parameters() if p.requires_grad} == {
        "lora_A",
        "lora_B",
    }


def test_an_adapter_is_part_of_name_digest_and_reply(engine, folders):
    tuned = opened(folders, adapter=str(folders[1]))
    digest = read_adapter(folders[1]).digest
    assert engine.name == "hf tiny" and tuned.name == f"hf tiny@sft:{digest[:16]}"
    assert engine.digest != tuned.digest
    [plain], [changed] = replies(engine, ask("hi")), replies(tuned, ask("hi"))
    tuned.close()
    assert plain.text != changed.text


def test_unfit_adapters_are_refused_with_a_reason(folders, tmp_path):
    base, adapter = folders
    other = write_tiny(tmp_path / "wide", width=96)
    with pytest.raises(EngineError, match="does not fit") as caught:
        load_model(str(other), str(adapter))
    assert str(base) in (caught.value.hint or "")
    deeper = write_adapter(write_tiny(tmp_path / "deep", layers=3), tmp_path / "deeper")
    with pytest.raises(EngineError, match="for other modules"):
        load_model(str(base), str(deeper))

    def changed(**fields):
        copy = tmp_path / "changed"
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(adapter, copy)
        config = json.loads((copy / CONFIG).read_text()) | fields
        (copy / CONFIG).write_text(json.dumps(config))
        return str(copy)

    with pytest.raises(EngineError, match="trained on org/another, not on smollm2"):
        open_engine(EngineSpec("hf", model="smollm2", adapter=changed(base_model_name_or_path="org/another")))


def test_a_model_without_a_chat_template_or_with_pickled_weights_is_refused(folders, tmp_path):
    bare = write_tiny(tmp_path / "bare", template="")
    with pytest.raises(EngineError, match="no chat template"):
        load_model(str(bare))
    for path in bare.glob("*.safetensors"):
        path.rename(bare / "pytorch_model.bin")
    with pytest.raises(EngineError, match=r"no \*\.safetensors"):
        open_engine(EngineSpec("hf", path=str(bare)))
    with pytest.raises(EngineError, match=r"no config\.json"):
        open_engine(EngineSpec("hf", path=str(folders[1])))
    with pytest.raises(UsageError, match="extra_body"):
        open_engine(EngineSpec("hf", path=str(folders[0]), extra_body={"top_k": 1}))


def test_a_refused_conversation_is_an_empty_reply_and_refused_settings_an_error(tmp_path):
    template = (
        "{% if messages[0]['role'] != 'user' or mode == 'wrong' %}{{ raise_exception('no') }}{% endif %}"
        "{{ messages[0]['content'] }}"
    )
    base = write_tiny(tmp_path / "strict", template=template)
    engine = HfEngine(EngineSpec("hf", path=str(base)))
    refused = ChatRequest((Message("assistant", "me first"),), 5, 0.0)
    [reply, fine] = replies(engine, refused, ask("hi", max_tokens=3))
    engine.close()
    assert (reply.text, reply.finish_reason) == ("", "stop") and fine.completion_tokens == 3
    wrong = HfEngine(EngineSpec("hf", path=str(base), chat_template_kwargs={"mode": "wrong"}))
    with pytest.raises(EngineError, match="chat_template_kwargs: no"):
        replies(wrong, ask("hi"))
    wrong.close()


@pytest.mark.model
def test_the_dequantised_model_says_what_llama_cpp_says():
    questions = [
        ask("What is the capital of France? Also 12345 naïve?", max_tokens=12),
        ask("Count: 1 2\n3, naïvely", max_tokens=6),
    ]
    ours = open_engine(EngineSpec("hf", model="smollm2", threads=1))
    theirs = open_engine(EngineSpec("llamacpp", model="smollm2", deterministic=True))
    mine, other = replies(ours, *questions), replies(theirs, *questions)
    asyncio.run(ours.aclose())
    asyncio.run(theirs.aclose())
    assert [r.prompt_tokens for r in mine] == [r.prompt_tokens for r in other]
    assert mine[0].text == other[0].text and "Paris" in mine[0].text
    assert mine[0].finish_reason == other[0].finish_reason == "stop"
