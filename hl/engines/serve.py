"""A small OpenAI-compatible server that answers from a script and fails on request. Part of the test kit.

Promises that faults depend on nothing but the seed, the request and how often that request was tried, and
that every request gets through after at most `--max-faults` failures, so that a run through this server must
end in the same scores as a run without faults. Listens on 127.0.0.1 only; checks no keys; does not stream.

    python -m hl.engines.scripted --serve replies.json --port 0 --faults
    500:0.1,429:0.1,hang:0.05,reset:0.05,broken:0.05
"""

import argparse
import contextlib
import hashlib
import json
import signal
import socket
import struct
import sys
import threading
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, cast

from hl.engines.scripted import Script, append_call, count_words, cut_reply, parse_script, request_digest
from hl.errors import HlError, UsageError
from hl.types import ChatRequest, Message

FAULTS = ("500", "503", "429", "400", "401", "hang", "reset", "broken", "empty", "truncated", "nousage")
"""`broken`: a 200 that is no JSON. `empty`: no choices. `truncated`: the connection ends inside the body.
`nousage`: a proper reply that lacks token counts."""
_LARGEST_BODY = 32 << 20


@dataclass(slots=True)
class Behaviour:
    """What the server does besides answering."""

    script: Script
    """The replies."""
    faults: tuple[tuple[str, float], ...] = ()
    """Kinds and their probabilities."""
    fault_seed: int = 0
    """Another seed, other victims."""
    max_faults: int = 3
    """A request gets through on the next try after so many faults."""
    latency_s: float = 0.0
    """Added to every answer."""
    hang_s: float = 3600.0
    """How long a hanging request is kept; ends early when the server stops."""
    retry_after_s: float = 0.05
    """What a 429 asks for."""
    down_after: int | None = None
    """From this many requests on, all connections are reset."""
    context_tokens: int | None = None
    """Longer prompts are refused as vLLM does; None takes any."""
    log: Path | None = None
    """File that gets a JSON line for every request that is answered."""
    requests: int = 0
    """Requests so far."""
    tries: Counter[str] = field(default_factory=Counter[str])
    """Tries by request."""
    lock: threading.Lock = field(default_factory=threading.Lock)
    """Guards the counters."""
    stopping: threading.Event = field(default_factory=threading.Event)
    """Ends hanging requests."""

    def fault(self, digest: str) -> str:
        """The fault that meets this try, or an empty text."""
        with self.lock:
            self.requests += 1
            if self.down_after is not None and self.requests > self.down_after:
                return "reset"
            tried = self.tries[digest]
            self.tries[digest] += 1
        if tried >= self.max_faults:
            return ""
        draw = hashlib.sha256(f"{self.fault_seed} {digest} {tried}".encode()).digest()
        point = int.from_bytes(draw[:8], "big") / 2**64
        for kind, probability in self.faults:
            point -= probability
            if point < 0:
                return kind
        return ""


def parse_faults(text: str) -> tuple[tuple[str, float], ...]:
    """Parse `500:0.1,hang:0.05`.

    Raises:
        UsageError: An unknown kind, no number, or more than 1 in all.
    """
    faults: list[tuple[str, float]] = []
    for part in filter(None, (p.strip() for p in text.split(","))):
        kind, _, share = part.partition(":")
        if kind not in FAULTS:
            raise UsageError(f"unknown fault {kind!r}; there are {', '.join(FAULTS)}")
        try:
            faults.append((kind, float(share)))
        except ValueError:
            raise UsageError(f"the fault {part!r} has no probability", hint=f"{kind}:0.1") from None
    if not 0 <= sum(share for _, share in faults) <= 1 or any(share < 0 for _, share in faults):
        raise UsageError(f"the probabilities of {text!r} do not lie between 0 and 1 together")
    return tuple(faults)


class ScriptedServer(ThreadingHTTPServer):
    """The server; `url` is what an engine wants as its base URL."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def __init__(self, behaviour: Behaviour, port: int = 0) -> None:
        self.behaviour = behaviour
        super().__init__(("127.0.0.1", port), _Handler)

    @property
    def url(self) -> str:
        """Up to and including /v1."""
        return f"http://127.0.0.1:{self.server_address[1]}/v1"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients that hang up are this server's daily bread."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    @property
    def behaviour(self) -> Behaviour:
        """The server's."""
        return cast(ScriptedServer, self.server).behaviour

    def do_GET(self) -> None:
        if self.path.rstrip("/") == "/v1/models":
            self._send(200, {"object": "list", "data": [{"id": "scripted", "object": "model"}]})
        else:
            self._send(404, {"error": {"message": f"no such path {self.path}", "code": "not_found"}})

    def do_POST(self) -> None:
        body = self.rfile.read(min(int(self.headers.get("Content-Length") or 0), _LARGEST_BODY))
        if self.path.rstrip("/") != "/v1/chat/completions":
            self._send(404, {"error": {"message": f"no such path {self.path}", "code": "not_found"}})
            return
        try:
            request = _parse_request(json.loads(body))
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            self._send(400, {"error": {"message": f"bad request: {error}", "code": "invalid_request"}})
            return
        behaviour = self.behaviour
        fault = behaviour.fault(request_digest(request))
        if fault in ("hang", "reset"):
            if fault == "hang":
                behaviour.stopping.wait(behaviour.hang_s)
            self._reset()
            return
        if fault.isdigit():
            headers = {"Retry-After": f"{behaviour.retry_after_s:g}"} if fault == "429" else {}
            self._send(int(fault), {"error": {"message": f"injected {fault}", "code": "injected"}}, headers)
            return
        self._answer(request, fault)

    def _answer(self, request: ChatRequest, fault: str) -> None:
        behaviour = self.behaviour
        prompt = count_words(request.messages)
        if behaviour.context_tokens is not None and prompt > behaviour.context_tokens:
            text = f"This model's maximum context length is {behaviour.context_tokens} tokens, not {prompt}."
            self._send(400, {"error": {"message": text, "code": "context_length_exceeded"}})
            return
        rule, full = behaviour.script.answer(request)
        if rule.fail:
            self._send(500, {"error": {"message": rule.fail, "code": "scripted"}})
            return
        if behaviour.stopping.wait(behaviour.latency_s + rule.delay_s):
            self._reset()
            return
        text, finish, words = cut_reply(full, max_tokens=request.max_tokens, stop=request.stop)
        tokens = words if rule.tokens is None else rule.tokens
        choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": finish}
        reply: dict[str, Any] = {
            "id": "chatcmpl-scripted",
            "object": "chat.completion",
            "created": int(time.time()),
            "model": "scripted",
            "choices": [] if fault == "empty" else [choice],
        }
        if fault != "nousage":
            reply["usage"] = {
                "prompt_tokens": prompt,
                "completion_tokens": tokens,
                "total_tokens": prompt + tokens,
            }
        if behaviour.log is not None and fault in ("", "nousage"):
            append_call(behaviour.log, request)
        self._send(200, reply, cut=fault)

    def _send(
        self, status: int, value: Mapping[str, Any], headers: Mapping[str, str] | None = None, cut: str = ""
    ) -> None:
        payload = json.dumps(value).encode()
        length = len(payload)
        if cut == "broken":
            payload = b'{"choices": [{"mess' + b"\xff" * (length - 19)
        elif cut == "truncated":
            payload = payload[: length // 2]
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(length))
        for key, text in (headers or {}).items():
            self.send_header(key, text)
        self.end_headers()
        self.wfile.write(payload)
        if cut == "truncated":
            self.close_connection = True

    def _reset(self) -> None:
        """Close so that the client sees a reset instead of an orderly end."""
        self.close_connection = True
        with contextlib.suppress(OSError):
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.connection.close()

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: stderr belongs to real errors."""


def _parse_request(data: Mapping[str, Any]) -> ChatRequest:
    stop: Any = data.get("stop") or ()
    limit = data.get("max_tokens") or data.get("max_completion_tokens") or 1 << 30
    return ChatRequest(
        messages=tuple(Message(str(m["role"]), str(m["content"])) for m in data["messages"]),
        max_tokens=int(limit),
        temperature=float(data.get("temperature", 1.0)),
        stop=(stop,) if isinstance(stop, str) else tuple(str(s) for s in stop),
        seed=int(data.get("seed") or 0),
    )


def main(arguments: list[str]) -> int:
    """Serve until SIGINT or SIGTERM. Prints the URL as one line on stdout."""
    parser = argparse.ArgumentParser(
        prog="python -m hl.engines.scripted", description="Serve a script as an OpenAI-compatible API."
    )
    parser.add_argument("--serve", metavar="FILE", required=True, help="rules file (see hl.engines.scripted)")
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one")
    parser.add_argument("--faults", default="", help=f"KIND:PROBABILITY,...; kinds: {' '.join(FAULTS)}")
    parser.add_argument("--fault-seed", type=int, default=0, help="which requests fail")
    parser.add_argument(
        "--max-faults", type=int, default=3, help="a request gets through after so many (default 3)"
    )
    parser.add_argument("--latency-s", type=float, default=0.0, help="added to every answer")
    parser.add_argument("--hang-s", type=float, default=3600.0, help="how long a hanging request is kept")
    parser.add_argument("--down-after", type=int, help="reset every connection after so many requests")
    parser.add_argument("--context-tokens", type=int, help="refuse longer prompts with a 400")
    parser.add_argument("--log", type=Path, help="append a JSON line for every answered request")
    options = parser.parse_args(arguments)
    try:
        path = Path(options.serve)
        script = parse_script(path.read_text("utf-8"), options.serve)
        behaviour = Behaviour(
            script=script,
            faults=parse_faults(options.faults),
            fault_seed=options.fault_seed,
            max_faults=options.max_faults,
            latency_s=options.latency_s,
            hang_s=options.hang_s,
            down_after=options.down_after,
            context_tokens=options.context_tokens,
            log=options.log or (path.parent / script.log if script.log else None),
        )
        server = ScriptedServer(behaviour, options.port)
    except (HlError, OSError, UnicodeError) as error:
        sys.stderr.write(f"error: {error}\n")
        return 2
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    sys.stdout.write(server.url + "\n")
    sys.stdout.flush()
    with contextlib.suppress(KeyboardInterrupt):
        server.serve_forever()
    behaviour.stopping.set()
    server.server_close()
    return 0
