"""Any OpenAI-compatible server, through the official client: the production path.

Promises explicit time-outs, retries of what may go away (connection resets, time-outs, 408, 409, 429, 5xx,
broken JSON, empty choices) with back-off that honours Retry-After and is not billed, and an `EngineError` at
once for what will not (a wrong key, an unknown model). The key comes from an environment variable that the
user names, and appears in no error. A conversation that the server refuses because of its own content or
length is an empty reply, since a harness caused it.

Where a server reports no usage, tokens are estimated as a quarter of the UTF-8 bytes. Reasoning that a
server returns beside the reply is dropped. Does not start servers and does not stream.
"""

import asyncio
import json
import os
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast
from urllib.parse import urlsplit

from hl.engines.adapters import read_adapter
from hl.engines.base import EngineSpec, clean_text, digest_of, short_name, wire_messages
from hl.engines.retry import MAX_SILENT_TIMEOUTS, Circuit, backoff_s, is_retried, parse_retry_after
from hl.errors import EngineError, UsageError
from hl.types import ChatReply, ChatRequest, Message

_CONNECT_S = 10.0
_OVERFLOW = re.compile(
    r"context.{0,12}(length|size|window)|maximum model length|max_model_len|prompt is too long|too many (input )?tokens"
    r"|input.{0,20}too long",
    re.IGNORECASE,
)
_LOCAL = frozenset({"localhost", "127.0.0.1", "::1"})


@dataclass(slots=True)
class _Failure(Exception):
    """One try that did not give a reply."""

    message: str
    status: int = 0
    code: str = ""
    retry_after_s: float | None = None
    timed_out: bool = False

    @property
    def retried(self) -> bool:
        if self.code == "insufficient_quota":  # a 429 that lasts until somebody pays
            return False
        return self.status == 0 or is_retried(self.status)


class OpenAIEngine:
    """A model behind an OpenAI-compatible URL."""

    def __init__(self, spec: EngineSpec, *, first_backoff_s: float = 0.5) -> None:
        """Check the spec and read the key; connects on the first call.

        Raises:
            UsageError: No URL, no model, a number out of range, or the key's variable is not set.
            EngineError: The adapter's folder is none.
        """
        if "@" in spec.base_url.partition("?")[0]:
            raise UsageError(
                f"the base_url with host {spec.base_url.rpartition('@')[2]!r} has a user or password in it",
                hint='api_key_env = "NAME_OF_THE_VARIABLE"',
            )
        if not spec.base_url.startswith(("http://", "https://")):
            raise UsageError(
                f"base_url = {spec.base_url!r} is not a URL",
                hint='base_url = "http://127.0.0.1:8000/v1" for `vllm serve`',
            )
        if not spec.model:
            raise UsageError(
                "the openai engine needs a model name",
                hint=f"curl {_shown_url(spec.base_url)}/models lists them",
            )
        if spec.concurrency < 1 or spec.timeout_s <= 0 or spec.retries < 0:
            raise UsageError(
                f"one of concurrency = {spec.concurrency}, timeout_s = {spec.timeout_s:g} and"
                f" retries = {spec.retries} is too small"
            )
        self._key = ""
        if spec.api_key_env:
            self._key = os.environ.get(spec.api_key_env, "").strip()
            if not self._key:
                raise UsageError(
                    f"the environment variable {spec.api_key_env} with the API key is not set",
                    hint=f"export {spec.api_key_env}=...",
                )
        self._adapter = read_adapter(spec.adapter) if spec.adapter else None
        self._spec = spec
        self._first_backoff_s = first_backoff_s
        self._url = _shown_url(spec.base_url)
        self._circuit = Circuit()
        self._client: Any = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._slots = asyncio.Semaphore(spec.concurrency)
        self._accepts_plain = False
        self._limit_field = "max_tokens"
        self._closed = False

    @classmethod
    def from_spec(cls, spec: EngineSpec) -> "OpenAIEngine":
        """Open the server that a spec names."""
        return cls(spec)

    @property
    def name(self) -> str:
        """Readable identity; with the adapter that the server is known to serve under the model's name."""
        if self._adapter is None:
            return f"openai {self._spec.model}"
        return f"openai {short_name(self._spec.model)}@{self._adapter.label}"

    @property
    def concurrency(self) -> int:
        """As configured."""
        return self._spec.concurrency

    @property
    def digest(self) -> str:
        """Over the model's name, its adapter, its host (any port of this machine is the same), and what goes with every
        call."""
        host = urlsplit(self._spec.base_url).hostname or ""
        adapter = {"adapter": self._adapter.digest} if self._adapter else {}
        return digest_of(
            engine="openai",
            **adapter,
            model=self._spec.model,
            host="localhost" if host in _LOCAL else host,
            extra_body=self._spec.extra_body,
            chat_template_kwargs=self._spec.chat_template_kwargs,
        )

    async def chat(self, request: ChatRequest) -> ChatReply:
        """Complete one conversation; see `Engine.chat`."""
        before = self._circuit.successes
        tries = timeouts = 0
        while True:
            self._connect()
            probe = False
            try:
                # Waiting here is not billed. The server may have gone down meanwhile, hence the check inside.
                async with self._slots:
                    self._circuit.check()
                    probe = self._circuit.is_probe
                    reply = await self._try(request)
            except _Failure as failure:
                tries += 1
                timeouts += failure.timed_out
                if not failure.retried:
                    return await self._refused(request, failure, tries - 1)
                silent = timeouts >= MAX_SILENT_TIMEOUTS and self._circuit.successes == before
                if probe or silent or tries > self._spec.retries:
                    error = self._error(f"failed {tries} times, last with {failure.message}")
                    self._circuit.give_up(error, successes_before=before)
                    raise error from None
                wait_s = failure.retry_after_s
                if wait_s is None:
                    wait_s = backoff_s(tries, first_s=self._first_backoff_s)
                await asyncio.sleep(wait_s)
            except BaseException:
                if probe:
                    self._circuit.abandon_probe()
                raise
            else:
                self._circuit.succeed()
                return _with_retries(reply, tries)

    async def aclose(self) -> None:
        """Close all connections; idempotent."""
        self._closed = True
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    # --- one try
    # ------------------------------------------------------------------------------------------------

    async def _try(self, request: ChatRequest) -> ChatReply:
        """Send a request once.

        Raises:
            _Failure: No reply came of it.
        """
        import openai

        client = self._connect()
        start = time.perf_counter()
        try:
            # The client's read time-out is per chunk of bytes, so the whole try has one of its own.
            async with asyncio.timeout(self._spec.timeout_s):
                raw = await client.chat.completions.with_raw_response.create(**self._body(request))
                content = raw.http_response.content
        except (openai.APITimeoutError, TimeoutError):
            raise _Failure(f"no answer within {self._spec.timeout_s:g} s", timed_out=True) from None
        except openai.APIStatusError as error:
            raise self._status_failure(error) from None
        except openai.APIError as error:
            cause = error.__cause__
            detail = f": {type(cause).__name__} {cause}".rstrip() if cause is not None else ""
            raise _Failure(self._scrub(f"a connection error{detail}")) from None
        return self._parse(request, content, time.perf_counter() - start)

    def _body(self, request: ChatRequest) -> dict[str, Any]:
        extra: dict[str, Any] = dict(self._spec.extra_body)
        if self._spec.chat_template_kwargs:
            extra["chat_template_kwargs"] = dict(self._spec.chat_template_kwargs)
        body: dict[str, Any] = {
            "model": self._spec.model,
            "messages": wire_messages(request.messages),
            self._limit_field: request.max_tokens,
            "temperature": request.temperature,
            "seed": request.seed % 2**31,
            "extra_body": extra,
        }
        if request.stop:
            body["stop"] = [clean_text(s) for s in request.stop]
        return body

    def _connect(self) -> Any:
        if self._closed:
            raise EngineError(f"the engine {self.name} is closed")
        loop = asyncio.get_running_loop()
        if self._client is None or self._loop is not loop:
            import openai

            client = openai.AsyncOpenAI(
                base_url=self._spec.base_url,
                api_key=self._key or "EMPTY",  # the client insists on one; servers without keys ignore it
                admin_api_key="",
                timeout=openai.Timeout(self._spec.timeout_s, connect=min(_CONNECT_S, self._spec.timeout_s)),
                max_retries=0,
            )
            # The client takes these from the environment, where they are meant for another server.
            client.organization = client.project = None
            self._client, self._loop = client, loop
            self._slots = asyncio.Semaphore(self._spec.concurrency)
        return self._client

    def _parse(self, request: ChatRequest, content: bytes, seconds: float) -> ChatReply:
        try:
            data = json.loads(content)
            choice: Mapping[str, Any] = data["choices"][0]
            message: Mapping[str, Any] = choice["message"]
            text = message.get("content") or ""
            usage: Mapping[str, Any] = data.get("usage") or {}
            if not isinstance(text, str):
                raise TypeError("content is no text")
            prompt = usage.get("prompt_tokens")
            completion = usage.get("completion_tokens")
            if prompt is None:
                prompt = _estimate_tokens("".join(m.content for m in request.messages))
            if completion is None:
                completion = _estimate_tokens(text)
            counts = int(prompt), int(completion)
        except (ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError) as error:
            start = self._scrub(content[:80].decode("utf-8", "replace"))
            raise _Failure(
                f"a reply that is no chat completion ({type(error).__name__}): {start!r}"
            ) from None
        finish = "length" if choice.get("finish_reason") == "length" else "stop"
        return ChatReply(clean_text(text), finish, *counts, seconds=seconds, cost=self._spec.price(*counts))

    # --- failures
    # -----------------------------------------------------------------------------------------------

    def _status_failure(self, error: Any) -> _Failure:
        headers = error.response.headers
        body = cast(Mapping[str, Any], error.body) if isinstance(error.body, dict) else {}
        said = body.get("message") or body.get("detail") or error.response.text
        return _Failure(
            f"HTTP {error.status_code}: {self._scrub(str(said)[:300])}",
            status=error.status_code,
            code=str(body.get("code") or body.get("type") or ""),
            retry_after_s=parse_retry_after(headers.get("retry-after-ms"), headers.get("retry-after")),
        )

    async def _refused(self, request: ChatRequest, failure: _Failure, retries: int) -> ChatReply:
        """The empty reply to a conversation that the server will never take.

        Raises:
            EngineError: The conversation is not what it refuses.
        """
        self._circuit.succeed()
        if (
            failure.status == 400
            and "max_completion_tokens" in failure.message
            and self._limit_field == "max_tokens"
        ):
            self._limit_field = "max_completion_tokens"  # newer hosted models renamed it
            return await self.chat(request)
        empty = ChatReply("", "length", 0, 0, 0.0, retries)
        if failure.status == 413 or (failure.status in (400, 422) and _is_overflow(failure)):
            return empty
        if failure.status in (400, 422) and await self._accepts_plain_request():
            return ChatReply("", "stop", 0, 0, 0.0, retries)
        raise self._error(f"refused the request with {failure.message}", hint=self._hint(failure.status))

    async def _accepts_plain_request(self) -> bool:
        """Whether a harmless conversation passes with the same settings: if not, the settings are wrong."""
        if not self._accepts_plain:
            try:
                await self._try(ChatRequest((Message("user", "Hello"),), max_tokens=1, temperature=0.0))
            except _Failure as failure:
                return failure.retried  # busy or down just now: the next call will tell
            self._accepts_plain = True
        return True

    def _hint(self, status: int) -> str | None:
        if status in (401, 403):
            name = self._spec.api_key_env
            return (
                f"export {name}=..., with a key for this server"
                if name
                else 'api_key_env = "NAME_OF_THE_VARIABLE"'
            )
        if status == 404:
            return f"curl {self._url}/models lists the models; base_url usually ends in /v1"
        return None

    def _error(self, what: str, *, hint: str | None = None) -> EngineError:
        return EngineError(f"the model server at {self._url} {what}", hint=hint)

    def _scrub(self, text: str) -> str:
        """A text from outside, without the key."""
        text = " ".join(text.split())
        return text.replace(self._key, "***") if self._key else text


def _with_retries(reply: ChatReply, retries: int) -> ChatReply:
    return ChatReply(
        reply.text,
        reply.finish_reason,
        reply.prompt_tokens,
        reply.completion_tokens,
        reply.seconds,
        retries,
        reply.cost,
    )


def _is_overflow(failure: _Failure) -> bool:
    return (
        "context_length" in failure.code
        or "context_size" in failure.code
        or bool(_OVERFLOW.search(failure.message))
    )


def _estimate_tokens(text: str) -> int:
    return (len(text.encode("utf-8", "replace")) + 3) // 4


def _shown_url(url: str) -> str:
    """A URL for messages: without user, password, query and fragment."""
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    return f"{parts.scheme}://{host}{parts.path}".rstrip("/")
