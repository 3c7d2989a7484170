"""llama.cpp in this process: the embedded default engine, for SmolLM2-135M and any other GGUF.

Promises that the event loop is never blocked (each slot has a daemon thread, in which llama.cpp runs without
the interpreter's lock), that a cancelled call stops at its next token, that nothing is printed, and that
closing frees the model. A prompt longer than the context is a reply with empty text and finish reason
`length`, and a conversation that the model's chat template refuses is an empty reply: a harness caused them,
so they are no `EngineError`.

Modes. By default, slots are computed together and equal prefixes are read once (`hl.engines.slots`); what
runs beside a request moves its logits a little, so that replies may differ between runs even at temperature
0. `deterministic` computes one request at a time, without a prompt cache, on a fixed number of threads: the
same request gives the same text, about three times slower.

The chat template is the model's own. SmolLM2's puts the system message "You are a helpful AI assistant named
SmolLM, trained by Hugging Face" before conversations that have none; hl leaves it so, since that is the model
as published.
"""

import asyncio
import atexit
import os
import queue
import threading
import time
import weakref
from collections import deque
from pathlib import Path
from typing import Any

from hl.engines.base import EngineSpec, clean_text, digest_of, wire_messages
from hl.engines.call import Call
from hl.engines.llama_server import LlamaServer
from hl.engines.slots import Plan, SlotMap, render_messages
from hl.engines.weights import KNOWN, locate, sha256_of
from hl.errors import EngineError, UsageError
from hl.types import ChatReply, ChatRequest, Message

_SNAPSHOT_BYTES = 256 << 20
_JOIN_S = 10.0
_REFUSED = frozenset({400, 413, 422})


class _FairClock:
    """Service time of calls that are computed together: each gets an equal share of the seconds that pass."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._active = 0
        self._share = 0.0
        self._at = time.perf_counter()

    def start(self) -> float:
        with self._lock:
            self._advance()
            self._active += 1
            return self._share

    def stop(self, start: float) -> float:
        with self._lock:
            self._advance()
            self._active -= 1
            return self._share - start

    def _advance(self) -> None:
        now = time.perf_counter()
        if self._active:
            self._share += (now - self._at) / self._active
        self._at = now


class LlamaCppEngine:
    """One GGUF model, loaded on the first call."""

    def __init__(self, spec: EngineSpec) -> None:
        """Find the model file, without loading it.

        Raises:
            EngineError: The file is not on this machine.
            UsageError: The spec names no model, or a number in it is out of range.
        """
        self._model = spec.path or spec.model
        if not self._model:
            raise UsageError("the llamacpp engine needs a model", hint='model = "smollm2"')
        for key, value in (
            ("threads", spec.threads),
            ("slots", spec.slots),
            ("context_tokens", spec.context_tokens),
        ):
            if value < 1:
                raise UsageError(f"{key} = {value} is not a positive number")
        self._spec = spec
        self._path = locate(self._model)
        self._slots = 1 if spec.deterministic else spec.slots
        self._map = SlotMap(self._slots, 0 if spec.deterministic else _SNAPSHOT_BYTES, os.close)
        self._lock = threading.Lock()
        """Guards the map, the waiting calls and the lists below."""
        self._waiting: deque[Call] = deque()
        self._running: set[Call] = set()
        self._work: queue.SimpleQueue[tuple[Call, Plan] | None] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._closed = False
        self._loading = threading.Lock()
        self._server: LlamaServer | None = None
        self._sha256 = ""
        self._accepts_plain = False
        self._clock = _FairClock()

    @classmethod
    def from_spec(cls, spec: EngineSpec) -> "LlamaCppEngine":
        """Open the model that a spec names."""
        return cls(spec)

    @property
    def name(self) -> str:
        """Readable identity."""
        return f"llamacpp {Path(self._model).stem if self._model.endswith('.gguf') else self._model}"

    @property
    def concurrency(self) -> int:
        """Two calls a slot: one computed, one ready."""
        return self._slots * 2

    @property
    def digest(self) -> str:
        """Over weights, llama.cpp's version and what goes with every call; threads where texts repeat."""
        from importlib.metadata import version

        spec = self._spec
        return digest_of(
            engine="llamacpp",
            version=version("xllamacpp"),
            weights=self._weights_sha256(),
            context_tokens=spec.context_tokens,
            extra_body=spec.extra_body,
            chat_template_kwargs=spec.chat_template_kwargs,
            deterministic=spec.threads if spec.deterministic else False,
        )

    @property
    def path(self) -> Path:
        """The model file."""
        return self._path

    @property
    def address(self) -> str:
        """Host and port of llama.cpp's own server; empty before the first call."""
        return self._server.address if self._server is not None else ""

    @property
    def snapshots(self) -> int:
        """Prefixes whose state is kept."""
        with self._lock:
            return len(self._map.snapshots)

    async def chat(self, request: ChatRequest) -> ChatReply:
        """Complete one conversation; see `Engine.chat`."""
        loop = asyncio.get_running_loop()
        messages = tuple(Message(m.role, clean_text(m.content)) for m in request.messages)
        job = Call(request, loop, loop.create_future(), render_messages(messages))
        with self._lock:
            if self._closed:
                raise EngineError(f"the engine {self.name} is closed")
            self._start_threads()
            self._waiting.append(job)
            self._dispatch()
        try:
            return await job.future
        finally:
            job.cancelled.set()
            with self._lock:
                if job in self._waiting:
                    self._waiting.remove(job)

    async def aclose(self) -> None:
        """Stop all calls and free the model; idempotent."""
        await asyncio.to_thread(self.close)

    def close(self) -> None:
        """`aclose` for callers without an event loop; also runs at exit."""
        with self._lock:
            self._closed = True
            failed = [*self._waiting, *self._running]
            self._waiting.clear()
            threads, self._threads = self._threads, []
        for job in failed:
            job.cancelled.set()
            job.finish(EngineError(f"the engine {self.name} was closed during a call"))
        for _ in threads:
            self._work.put(None)
        deadline = time.monotonic() + _JOIN_S
        for thread in threads:
            thread.join(max(0.0, deadline - time.monotonic()))
        if not any(thread.is_alive() for thread in threads):
            with self._lock:
                self._map.clear()
            self._server = None
            atexit.unregister(self.close)

    # --- threads
    # ------------------------------------------------------------------------------------------------

    def _start_threads(self) -> None:
        if self._threads:
            return
        # A daemon thread inside C++ must not outlive the interpreter: stop them before that is torn down.
        close = weakref.WeakMethod(self.close)
        atexit.register(lambda: (method := close()) and method())
        for index in range(self._slots):
            thread = threading.Thread(target=self._worker, name=f"llamacpp-{index}", daemon=True)
            thread.start()
            self._threads.append(thread)

    def _dispatch(self) -> None:
        """Give idle slots to waiting calls in order of arrival, except to those that wait for a lead."""
        for job in list(self._waiting):
            if not self._map.idle:
                return
            plan = self._map.plan(job.text)
            if plan is not None:
                self._waiting.remove(job)
                self._running.add(job)
                self._work.put((job, plan))

    def _worker(self) -> None:
        while (item := self._work.get()) is not None:
            job, plan = item
            text = job.text
            result: ChatReply | BaseException
            try:
                if job.cancelled.is_set():
                    result = EngineError("the call was cancelled")
                    text = ""
                else:
                    result = self._run(job, plan)
                    text += f"\x02assistant\x03{result.text}"
            except Exception as error:
                result = error
            job.finish(result)
            with self._lock:
                self._running.discard(job)
                self._map.release(plan.slot, text)
                self._dispatch()

    # --- one call
    # -----------------------------------------------------------------------------------------------

    def _run(self, job: Call, plan: Plan) -> ChatReply:
        server = self._load()
        start = self._clock.start()
        try:
            if plan.restore is not None:
                server.slot_action(plan.slot, "restore", plan.restore.handle)
            if plan.lead:
                self._lead(server, job, plan.slot)
            done = server.complete(self._body(job.request, plan.slot), job.cancelled)
            if done.code in _REFUSED and not done.overflow:
                self._check_plain(server, plan.slot, done.error)
            elif done.code and not done.overflow:
                raise EngineError(f"llama.cpp failed on {self.name}: {done.error}")
        finally:
            seconds = self._clock.stop(start)
        cost = self._spec.price(done.prompt_tokens, done.completion_tokens)
        return ChatReply(
            done.text, done.finish, done.prompt_tokens, done.completion_tokens, seconds, cost=cost
        )

    def _body(self, request: ChatRequest, slot: int) -> dict[str, Any]:
        body: dict[str, Any] = dict(self._spec.extra_body)
        if self._spec.chat_template_kwargs:
            body["chat_template_kwargs"] = dict(self._spec.chat_template_kwargs)
        return body | {
            "messages": wire_messages(request.messages),
            "max_tokens": request.max_tokens,
            "temperature": request.temperature,
            "stop": [clean_text(s) for s in request.stop],
            "seed": request.seed % 0xFFFFFFFF,  # 0xFFFFFFFF means a random seed
            "id_slot": slot,
            "cache_prompt": not self._spec.deterministic,
            "stream": True,
            "stream_options": {"include_usage": True},
        }

    def _lead(self, server: LlamaServer, job: Call, slot: int) -> None:
        """Read the prompt, keep the slot's state, and let those go on that wait for it."""
        handle = -1
        try:
            done = server.complete(self._body(job.request, slot) | {"max_tokens": 1}, job.cancelled)
            if not done.code and not job.cancelled.is_set():
                handle = os.memfd_create("hl-llamacpp")  # freed by the kernel however this process ends
                if not server.slot_action(slot, "save", handle):
                    os.close(handle)
                    handle = -1
        finally:
            with self._lock:
                if handle >= 0:
                    self._map.keep(slot, handle, os.fstat(handle).st_size)
                else:
                    self._map.end_lead(slot)
                self._dispatch()

    def _check_plain(self, server: LlamaServer, slot: int, reason: str) -> None:
        """Tell a refused conversation (the harness's doing) from refused settings (the user's).

        Raises:
            EngineError: A plain question with the same settings is refused too.
        """
        if self._accepts_plain:
            return
        plain = ChatRequest((Message("user", "Hello"),), max_tokens=1, temperature=0.0)
        done = server.complete(self._body(plain, slot), threading.Event())
        if done.code:
            raise EngineError(
                f"{self.name} refuses extra_body or chat_template_kwargs: {reason}",
                hint="hl config list --origin",
            )
        self._accepts_plain = True

    # --- the model
    # ----------------------------------------------------------------------------------------------

    def _weights_sha256(self) -> str:
        known = KNOWN.get(self._model)
        if known is not None:
            return known.gguf_sha256
        if not self._sha256:
            self._sha256 = sha256_of(self._path)
        return self._sha256

    def _load(self) -> LlamaServer:
        with self._loading:
            if self._server is None:
                known = KNOWN.get(self._model)
                if known is not None and sha256_of(self._path) != known.gguf_sha256:
                    raise EngineError(
                        f"{self._path} is not the published {known.title}: its sha256 differs",
                        hint=f"hl model pull {known.name}",
                    )
                spec = self._spec
                self._server = LlamaServer(
                    self._path, slots=self._slots, threads=spec.threads, context_tokens=spec.context_tokens
                )
            return self._server
