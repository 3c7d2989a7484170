"""The openai engine against a real server that fails on request."""

import asyncio
import json
import socket
import subprocess
import sys
import time

import pytest

from hl.errors import EngineError, UsageError
from tests.engines.kit import Served, ask, engine


def answers(url, count=60, **fields):
    """Replies (or errors) to that many questions asked together."""

    async def run():
        model = engine(url, **fields)
        try:
            calls = [model.chat(ask(f"question {i}", seed=i)) for i in range(count)]
            return await asyncio.gather(*calls, return_exceptions=True)
        finally:
            await model.aclose()
            await model.aclose()

    return asyncio.run(run())


def one(url, request=None, **fields):
    [result] = answers(url, 1, **fields) if request is None else [asyncio.run(_single(url, request, fields))]
    if isinstance(result, BaseException):
        raise result
    return result


async def _single(url, request, fields):
    model = engine(url, **fields)
    try:
        return await model.chat(request)
    finally:
        await model.aclose()


FAULTS = "500:0.06,503:0.04,429:0.08,hang:0.03,reset:0.05,broken:0.04,empty:0.03,truncated:0.03"


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    with Served(tmp_path_factory.mktemp("plain")) as server:
        replies = answers(server.url)
    assert len({r.text for r in replies}) == 3
    return [(r.text, r.finish_reason, r.prompt_tokens, r.completion_tokens) for r in replies]


@pytest.mark.parametrize("fault_seed", [1, 2])
def test_results_under_faults_equal_those_without(fault_seed, expected, tmp_path):
    with Served(tmp_path, "--faults", FAULTS, "--fault-seed", str(fault_seed)) as server:
        replies = answers(server.url, timeout_s=2.0)
    assert [(r.text, r.finish_reason, r.prompt_tokens, r.completion_tokens) for r in replies] == expected
    assert sum(r.retries for r in replies) >= 10, "the faults did not happen"


@pytest.mark.parametrize("fault", ["500", "503", "429", "hang", "reset", "broken", "empty", "truncated"])
def test_every_kind_of_fault_is_retried_and_counted(fault, tmp_path):
    with Served(tmp_path, "--faults", f"{fault}:1", "--max-faults", "2") as server:
        reply = one(server.url, timeout_s=0.5 if fault == "hang" else 20.0)
    assert (reply.text, reply.retries) == ("yes it is", 2)


def test_retries_are_not_billed(tmp_path):
    with Served(tmp_path, "--faults", "hang:1", "--max-faults", "2") as server:
        start = time.monotonic()
        reply = one(server.url, timeout_s=1.0)
        took = time.monotonic() - start
    assert reply.retries == 2
    assert reply.seconds < took - 2.0


def test_retry_after_is_honoured(tmp_path):
    # Our own back-off would be 0.02 s; the server asks for 0.05 s in its header by default.
    with Served(tmp_path, "--faults", "429:1", "--max-faults", "3") as server:
        start = time.monotonic()
        assert one(server.url).retries == 3
        assert time.monotonic() - start >= 3 * 0.05


def test_a_server_that_is_not_there_fails_with_its_url_and_soon():
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}/v1"
        start = time.monotonic()
        results = answers(url, 100, retries=3)
        took = time.monotonic() - start
    assert all(isinstance(r, EngineError) for r in results)
    assert f"the model server at {url} failed 4 times, last with a connection error" in str(results[0])
    assert took < 60


def test_a_server_that_goes_down_keeps_what_came_before(tmp_path):
    with Served(tmp_path, "--down-after", "20") as server:
        results = answers(server.url, 60, retries=3)
    replies = [r for r in results if not isinstance(r, BaseException)]
    assert 1 <= len(replies) <= 20
    assert all(isinstance(r, EngineError) for r in results if isinstance(r, BaseException))


def test_once_a_server_is_known_to_be_down_calls_fail_without_trying(tmp_path):
    async def run(url):
        model = engine(url, retries=1, timeout_s=1.0)
        try:
            with pytest.raises(EngineError, match="failed 2 times, last with no answer within 1 s"):
                await model.chat(ask("question 1"))
            start = time.monotonic()
            for i in range(50):
                with pytest.raises(EngineError, match="no answer"):
                    await model.chat(ask(f"question {i}"))
            return time.monotonic() - start
        finally:
            await model.aclose()

    with Served(tmp_path, "--faults", "hang:1", "--max-faults", "1000") as server:
        assert asyncio.run(run(server.url)) < 9, "50 calls of two seconds each were not spared"


@pytest.mark.parametrize("status", ["401", "400"])
def test_what_no_retry_can_mend_fails_at_once(status, tmp_path):
    with Served(tmp_path, "--faults", f"{status}:1", "--max-faults", "1000") as server:
        with pytest.raises(
            EngineError, match=f"refused the request with HTTP {status}: injected {status}"
        ) as caught:
            one(server.url)
        if status == "401":
            assert "api_key_env" in (caught.value.hint or "")


def test_a_wrong_path_is_not_retried(tmp_path):
    with Served(tmp_path) as server:
        with pytest.raises(EngineError, match="HTTP 404") as caught:
            one(server.url.removesuffix("/v1") + "/v2")
        assert "/v1" in (caught.value.hint or "")


def test_a_conversation_the_server_refuses_is_the_harness_s_doing(tmp_path):
    rules = {"rules": [], "default": "fine"}
    # The first try of each request is refused for good; "Hello" gets through because a 400 is never tried again.
    with Served(
        tmp_path, "--faults", "400:0.5", "--fault-seed", "3", "--max-faults", "1", rules=rules
    ) as server:
        results = answers(server.url, 12)
    texts = [r.text for r in results if not isinstance(r, BaseException)]
    assert set(texts) == {"", "fine"}


def test_a_prompt_that_is_too_long_is_an_empty_reply_of_finish_reason_length(tmp_path):
    with Served(tmp_path, "--context-tokens", "50") as server:
        reply = one(server.url, ask("word " * 51))
        assert (reply.text, reply.finish_reason) == ("", "length")
        assert one(server.url, ask("word " * 50)).text == "nothing"


def test_missing_usage_is_estimated(tmp_path):
    with Served(tmp_path, "--faults", "nousage:1") as server:
        reply = one(server.url)
    assert reply.text == "yes it is"
    assert (reply.prompt_tokens, reply.completion_tokens) == (3, 3)


def test_prices_add_up(tmp_path):
    with Served(tmp_path) as server:
        reply = one(server.url, price_in=1e6, price_out=2e6)
    assert reply.cost == reply.prompt_tokens + 2 * reply.completion_tokens == 2 + 2 * 3


def test_limits_seed_and_stop_reach_the_server(tmp_path):
    with Served(tmp_path) as server:
        assert one(server.url, ask("question 1", seed=1)).text == "no it is not"
        cut = one(server.url, ask("question 1", seed=1, max_tokens=2))
        assert (cut.text, cut.finish_reason) == ("no it", "length")
        assert one(server.url, ask("question 1", seed=1, stop=(" not",))).text == "no it is"
        assert one(server.url, ask("question 1 \ud800", seed=2**70 + 1)).text


def test_no_more_than_the_configured_number_is_in_flight(tmp_path):
    with Served(tmp_path, "--latency-s", "0.2") as server:
        start = time.monotonic()
        answers(server.url, 12, concurrency=3)
        assert time.monotonic() - start >= 4 * 0.2


def test_cancelling_a_call_leaves_the_engine_usable(tmp_path):
    async def run(url):
        model = engine(url)
        try:
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(model.chat(ask("slow")), 0.5)
            return await model.chat(ask("question 7"))
        finally:
            await model.aclose()

    with Served(tmp_path) as server:
        assert asyncio.run(run(server.url)).text == "yes it is"


def test_a_closed_engine_says_so(tmp_path):
    async def run():
        model = engine("http://127.0.0.1:9/v1")
        await model.aclose()
        with pytest.raises(EngineError, match="closed"):
            await model.chat(ask("question 1"))

    asyncio.run(run())


ECHO = """
import json, sys
from http.server import BaseHTTPRequestHandler, HTTPServer
class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        said = json.dumps({"error": {"message": "key " + self.headers["Authorization"] + " got " + body}}).encode()
        self.send_response(int(sys.argv[1])); self.send_header("Content-Length", str(len(said)))
        self.send_header("Content-Type", "application/json"); self.end_headers(); self.wfile.write(said)
    def log_message(self, *unused): pass
server = HTTPServer(("127.0.0.1", 0), Handler)
print(server.server_address[1], flush=True)
server.serve_forever()
"""


@pytest.mark.parametrize("status", [403, 500])
def test_the_key_is_sent_and_never_shown(status, monkeypatch):
    monkeypatch.setenv("HL_TEST_KEY", "sk-very-secret")
    monkeypatch.setenv("OPENAI_ORG_ID", "org-of-another-server")
    command = [sys.executable, "-c", ECHO, str(status)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            url = f"http://127.0.0.1:{int(server.stdout.readline())}/v1?token=hush"
            with pytest.raises(EngineError) as caught:
                one(url, ask("x"), api_key_env="HL_TEST_KEY", retries=0)
        finally:
            server.terminate()
    shown = f"{caught.value} {caught.value.hint}"
    assert "key Bearer *** got" in shown
    for secret in ("sk-very-secret", "hush"):
        assert secret not in shown


def test_a_url_with_a_password_is_refused_without_showing_it():
    with pytest.raises(UsageError, match="a user or password") as caught:
        engine("http://user:hunter2@127.0.0.1:8000/v1")
    assert "hunter2" not in f"{caught.value} {caught.value.hint}"


def test_extra_fields_and_template_arguments_are_sent_as_configured():
    command = [sys.executable, "-c", ECHO, "403"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            url = f"http://127.0.0.1:{int(server.stdout.readline())}/v1"
            settings = {"extra_body": {"k": 3}, "chat_template_kwargs": {"t": False}}
            with pytest.raises(EngineError) as caught:
                one(url, ask("x", seed=4), **settings)
        finally:
            server.terminate()
    sent = json.loads(str(caught.value).partition(" got ")[2])
    assert sent == {
        "model": "scripted",
        "messages": [{"role": "user", "content": "x"}],
        "max_tokens": 50,
        "temperature": 0.0,
        "seed": 4,
        "k": 3,
        "chat_template_kwargs": {"t": False},
    }


def test_the_digest_follows_what_changes_replies():
    base = engine("http://127.0.0.1:8000/v1")
    assert (
        engine("http://localhost:9000/v1", timeout_s=1.0, concurrency=1, price_in=1.0).digest == base.digest
    )
    assert engine("http://models.example.org/v1").digest != base.digest
    assert engine("http://127.0.0.1:8000/v1", model="other").digest != base.digest
    assert engine("http://127.0.0.1:8000/v1", extra_body={"top_k": 1}).digest != base.digest
    assert engine("http://127.0.0.1:8000/v1", chat_template_kwargs={"a": 1}).digest != base.digest


def test_a_key_variable_that_is_not_set_is_named(monkeypatch):
    monkeypatch.delenv("HL_TEST_KEY", raising=False)
    with pytest.raises(UsageError, match="HL_TEST_KEY"):
        engine("http://127.0.0.1:8000/v1", api_key_env="HL_TEST_KEY")


@pytest.mark.parametrize("faults", ["501:0.1", "500", "500:x", "500:0.7,429:0.7", "500:-1"])
def test_the_server_refuses_meaningless_faults(faults, tmp_path):
    (tmp_path / "r.json").write_text("{}")
    command = [
        sys.executable,
        "-m",
        "hl.engines.scripted",
        "--serve",
        str(tmp_path / "r.json"),
        "--faults",
        faults,
    ]
    child = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert child.returncode == 2
    assert child.stderr.startswith("error: ")
