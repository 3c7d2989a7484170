"""The metered way to a model: every chat of a harness or a proposer passes here.

Promises: a reply is on disk before it is delivered; equal requests of one trial are paid for once; budgets and clamps
are enforced on the host, whatever the harness asks for; run limits (calls, tokens, money, seconds) stop new calls at
once. It does not run harness code and does not grade.
"""

import asyncio
import hashlib
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from hl.cache import Cache, cache_key
from hl.errors import HlError, StoppedEarly
from hl.sandbox.host import Answer, PythonResult
from hl.types import ChatReply, ChatRequest, Cost, Engine, Message, Question, Status, TraceEvent

RunPython = Callable[..., Awaitable[PythonResult]]
Search = Callable[[str, int], Awaitable[tuple[Sequence[tuple[str, str]], float]]]
"""`await search(query, k)`: (title, text) of the best passages, and the seconds of work that it was."""

MAX_PROMPT_CHARS = 256 * 1024
"""Longest conversation a harness may send in one call (ours)."""
MAX_PYTHON_RUNS = 32
"""`model.python` runs an attempt may make (ours, DESIGN section 10)."""
MAX_SEARCHES = 64
"""`model.search` calls an attempt may make (ours)."""
MAX_QUERY_CHARS = 4096
"""Longest query that is searched for; what follows is left out (ours)."""
MAX_PASSAGES = 100
"""Most passages that one search gives (ours)."""
MAX_REFUSALS = 8
"""Calls over budget after which the attempt is ended (ours): enough for parallel samples, no more."""
TRACE_CHARS = 8 * 1024
"""Longest request or reply kept in a trace event; the middle is cut (ours)."""


@dataclass(frozen=True, slots=True)
class RunLimits:
    """What a whole command may spend; None is no limit."""

    calls: int | None = None
    tokens: int | None = None
    seconds: float | None = None
    money: float | None = None


class Meter:
    """Counts what is really paid for, across solver and proposer, and says when to stop."""

    def __init__(self, limits: RunLimits | None = None, spent: Cost | None = None) -> None:
        self.limits = limits or RunLimits()
        self._before = spent or Cost()
        self._now = Cost()
        self._started = time.monotonic()
        self.cached = 0
        """Replies answered from the cache."""
        self.stopped = False
        """Whether a limit has ended the run."""

    def add(self, reply: ChatReply) -> None:
        """Count one reply that the engine gave."""
        self._now = self._now + Cost(1, reply.prompt_tokens, reply.completion_tokens, reply.cost)

    @property
    def cost(self) -> Cost:
        """Everything so far, seconds included, with what earlier parts of the same run had spent."""
        return self._before + self._now + Cost(seconds=time.monotonic() - self._started)

    def exceeded(self, in_flight: int = 0) -> str:
        """Which limit is reached, as `1,000 of 1,000 calls`; empty while there is room.

        Tokens, money and seconds of calls under way are not known: those limits are passed by as much.
        """
        cost, limits = self.cost, self.limits
        tokens = cost.prompt_tokens + cost.completion_tokens
        for used, limit, unit in (
            (cost.calls + in_flight, limits.calls, "calls"),
            (tokens, limits.tokens, "tokens"),
            (cost.seconds, limits.seconds, "seconds"),
            (cost.money, limits.money, "of the cost limit"),
        ):
            if limit is not None and used >= limit:
                return f"{used:,.6g} of {limit:,.6g} {unit}"
        return ""

    def check(self, in_flight: int = 0) -> None:
        """Refuse to go on over a limit.

        Args:
            in_flight: Calls that are made, but not yet counted.

        Raises:
            StoppedEarly: A limit is reached.
        """
        if reason := self.exceeded(in_flight):
            self.stopped = True
            raise StoppedEarly(
                f"The run's budget is used up: {reason}.", hint="hl revise --continue, with a higher limit"
            )


class MeteredEngine:
    """An engine behind the cache and the meter; itself an `Engine`."""

    def __init__(self, engine: Engine, cache: Cache, meter: Meter) -> None:
        self._engine = engine
        self._cache = cache
        self._meter = meter
        self._flying: dict[str, _Call] = {}
        self.name = engine.name
        self.digest = engine.digest
        self.concurrency = engine.concurrency

    async def chat(self, request: ChatRequest, occurrence: int = 0) -> ChatReply:
        """The recorded reply to this request, or a new one, recorded before it is returned.

        Args:
            request: What to complete.
            occurrence: How many equal requests came before it in the same attempt: samples differ by it.

        Raises:
            StoppedEarly: A run limit is reached.
            EngineError: The engine failed for good.
        """
        key = cache_key(
            {
                "engine": self.digest,
                "messages": [[m.role, m.content] for m in request.messages],
                "max_tokens": request.max_tokens,
                "temperature": request.temperature,
                "stop": list(request.stop),
                "seed": request.seed,
                "occurrence": occurrence,
            }
        )
        if (stored := self._cache.reply(key)) is not None:
            self._meter.cached += 1
            return stored
        call = self._flying.get(key)
        if call is None:
            self._meter.check(in_flight=len(self._flying))
            call = _Call(asyncio.ensure_future(self._complete(key, request, occurrence)))
            self._flying[key] = call
        call.waiting += 1
        try:
            return await asyncio.shield(call.task)
        except asyncio.CancelledError:
            # A limit only keeps new calls from being made: what is under way is paid for, and kept.
            if call.waiting == 1 and not self._meter.stopped:
                self._forget(key, call.task)  # nobody may join it any more
                call.task.cancel()
                await asyncio.gather(call.task, return_exceptions=True)
            raise
        finally:
            call.waiting -= 1

    async def _complete(self, key: str, request: ChatRequest, occurrence: int) -> ChatReply:
        try:
            reply = await self._engine.chat(_with_occurrence(request, occurrence))
            self._meter.add(reply)
            self._cache.put_reply(key, reply)
            return reply
        finally:
            self._forget(key, asyncio.current_task())

    def _forget(self, key: str, task: "asyncio.Task[Any] | None") -> None:
        if (call := self._flying.get(key)) is not None and call.task is task:
            del self._flying[key]

    async def aclose(self) -> None:
        """Close the engine behind; after a limit, once the calls under way are recorded."""
        await asyncio.gather(*(call.task for call in self._flying.values()), return_exceptions=True)
        await self._engine.aclose()


@dataclass(slots=True)
class _Call:
    """A call under way."""

    task: "asyncio.Task[ChatReply]"
    waiting: int = 0
    """Callers that want its reply."""


def _with_occurrence(request: ChatRequest, occurrence: int) -> ChatRequest:
    if occurrence == 0:
        return request
    seed = (request.seed + occurrence * 7919) % 2**31
    return ChatRequest(request.messages, request.max_tokens, request.temperature, request.stop, seed)


@dataclass(frozen=True, slots=True)
class SolverSettings:
    """What a harness may ask of the solver; part of every score's identity."""

    temperature: float = 0.0
    """Used when the harness names none."""
    temperature_max: float = 1.0
    """Higher requests are clamped to it."""
    max_tokens: int = 256
    """Reply tokens when the harness names none, and the most it may ask for."""
    calls: int = 16
    """Calls an attempt may make."""
    tokens: int = 16384
    """Prompt and reply tokens an attempt may use; the call that crosses the line is the last."""


class Solver:
    """The frozen language model, with the settings that harnesses run under.

    Args:
        engine: Behind cache and meter.
        settings: Budgets and clamps.
        ablation: `empty` replaces every reply with empty text (the solver ablation); no call is made.
    """

    def __init__(self, engine: MeteredEngine, settings: SolverSettings, *, ablation: str = "") -> None:
        self.engine = engine
        self.settings = settings
        self.ablation = ablation
        self.name = engine.name if not ablation else f"{engine.name} ({ablation} replies)"
        self.digest = hashlib.sha256(
            repr(
                (engine.digest, settings, ablation, MAX_PYTHON_RUNS, MAX_SEARCHES, MAX_PROMPT_CHARS)
            ).encode()
        ).hexdigest()[:16]

    def session(
        self, question: Question, trial: int, *, wall_s: float, python: RunPython, search: Search | None
    ) -> "AttemptSession":
        """A fresh conversation partner for one attempt."""
        return AttemptSession(
            self, trial_seed(question.id, trial), wall_s=wall_s, python=python, search=search
        )


def trial_seed(question_id: str, trial: int) -> int:
    """The seed of a trial: a function of question and trial alone, so that all candidates draw the same (paired)."""
    return int.from_bytes(hashlib.sha256(f"{question_id}/{trial}".encode()).digest()[:4], "big") >> 1


class AttemptSession:
    """The host's side of one attempt's `model` object: implements `hl.sandbox.host.Session`."""

    def __init__(
        self, solver: Solver, seed: int, *, wall_s: float, python: RunPython, search: Search | None
    ) -> None:
        self._solver = solver
        self._seed = seed
        self._python = python
        self._search = search
        self._wall_s = wall_s
        self._seen: Counter[str] = Counter()
        self._asked: list[str] = []
        self._refusals = 0
        self._python_runs = 0
        self._searches = 0
        self.calls = 0
        self.prompt_tokens = 0
        self.completion_tokens = 0
        self.cost = 0.0
        self.seconds = 0.0
        self._events: list[TraceEvent | None] = []
        self.stopped: HlError | None = None
        """Set when our own side failed or a run limit was reached: the attempt is lost, not wrong."""

    @property
    def trace(self) -> tuple[TraceEvent, ...]:
        """The calls that were answered, in the order of asking."""
        return tuple(e for e in self._events if e is not None)

    @property
    def seed(self) -> int:
        """Seeds `random` in the sandbox too."""
        return self._seed

    def behaviour(self, answer: str) -> str:
        """Digest of all calls made (in any order) and the answer."""
        return hashlib.sha256(
            "\n".join([*sorted(self._asked), repr(answer)]).encode("utf-8", "replace")
        ).hexdigest()[:16]

    async def call(self, op: str, args: Mapping[str, Any]) -> Answer:
        """Serve one call of the harness. Arguments are untrusted JSON."""
        if op == "chat":
            return await self._chat(args)
        if op == "python":
            return await self._run_python(args)
        if op == "search":
            return await self._run_search(args)
        if op == "budget":
            return Answer(value=self._budget())
        return Answer(kind="value", message=f"unknown call {op[:40]!r}")

    def _budget(self) -> dict[str, float]:
        settings = self._solver.settings
        return {
            "calls": max(0, settings.calls - self.calls),
            "tokens": max(0, settings.tokens - self.prompt_tokens - self.completion_tokens),
            "seconds": max(0.0, self._wall_s - self.seconds),
        }

    def _refuse(self, what: str) -> Answer:
        self._refusals += 1
        fatal = Status.BUDGET if self._refusals > MAX_REFUSALS else None
        return Answer(kind="budget", message=f"the attempt's budget of {what} is used up", fatal=fatal)

    async def _chat(self, args: Mapping[str, Any]) -> Answer:
        settings = self._solver.settings
        if self.calls >= settings.calls:
            return self._refuse(f"{settings.calls} calls")
        if self.prompt_tokens + self.completion_tokens >= settings.tokens:
            return self._refuse(f"{settings.tokens} tokens")
        try:
            request = self._request(args)
        except ValueError as error:
            return Answer(kind="value", message=str(error))
        self.calls += 1
        text = repr(request)
        occurrence = self._seen[text]
        self._seen[text] += 1
        self._asked.append(f"chat {text}")
        place = self._place()
        if self._solver.ablation:
            reply = ChatReply("", "stop", 0, 0, 0.0)
        else:
            try:
                reply = await self._solver.engine.chat(request, occurrence)
            except HlError as error:
                self.stopped = error
                raise
        self.prompt_tokens += reply.prompt_tokens
        self.completion_tokens += reply.completion_tokens
        self.cost += reply.cost
        self._note(place, "chat", request.messages[-1].content, reply.text, "", reply.seconds, reply)
        return Answer(value=reply.text, seconds=reply.seconds)

    def _request(self, args: Mapping[str, Any]) -> ChatRequest:
        settings = self._solver.settings
        raw = args.get("messages")
        if not isinstance(raw, list) or not raw:
            raise ValueError("messages must be a non-empty list of {role, content}")
        messages: list[Message] = []
        for item in cast("list[Any]", raw):
            role = item.get("role") if isinstance(item, dict) else None
            content = item.get("content") if isinstance(item, dict) else None
            if role not in ("system", "user", "assistant") or not isinstance(content, str):
                raise ValueError("each message needs a role (system, user or assistant) and a text content")
            messages.append(Message(role, _clean(content)))
        if sum(len(m.content) for m in messages) > MAX_PROMPT_CHARS:
            raise ValueError(f"the conversation is longer than {MAX_PROMPT_CHARS} characters")
        max_tokens = _number(args.get("max_tokens"), settings.max_tokens, "max_tokens")
        temperature = _number(args.get("temperature"), settings.temperature, "temperature")
        stop = args.get("stop") or []
        if isinstance(stop, str):
            stop = [stop]
        if not isinstance(stop, list) or not all(isinstance(s, str) and s for s in cast("list[Any]", stop)):
            raise ValueError("stop must be a text or a list of texts")
        return ChatRequest(
            tuple(messages),
            max_tokens=int(min(max(1, max_tokens), settings.max_tokens)),
            temperature=float(min(max(0.0, temperature), settings.temperature_max)),
            stop=tuple(_clean(s) for s in cast("list[str]", stop)[:8]),
            seed=self._seed,
        )

    async def _run_python(self, args: Mapping[str, Any]) -> Answer:
        code = args.get("code")
        if not isinstance(code, str):
            return Answer(kind="value", message="code must be a text")
        if self._python_runs >= MAX_PYTHON_RUNS:
            return self._refuse(f"{MAX_PYTHON_RUNS} python runs")
        self._python_runs += 1
        try:
            timeout_s = min(max(0.1, _number(args.get("timeout_s"), 5.0, "timeout_s")), 30.0)
        except ValueError as error:
            return Answer(kind="value", message=str(error))
        self._asked.append(f"python {code!r}")
        place = self._place()
        try:
            result = await self._python(_clean(code), timeout_s=timeout_s)
        except HlError as error:
            self.stopped = error
            raise
        self._note(place, "python", code, result.stdout, result.error, result.seconds)
        return Answer(value={"stdout": result.stdout, "error": result.error}, seconds=result.seconds)

    async def _run_search(self, args: Mapping[str, Any]) -> Answer:
        if self._search is None:
            return Answer(
                kind="unavailable",
                message="this task has no corpus: model.search works only where it has one",
            )
        if self._searches >= MAX_SEARCHES:
            return self._refuse(f"{MAX_SEARCHES} searches")
        query, k = args.get("query"), args.get("k", 5)
        if not isinstance(query, str) or not isinstance(k, int):
            return Answer(kind="value", message="search needs a text query and a whole number k")
        query, k = _clean(query[:MAX_QUERY_CHARS]), min(max(1, k), MAX_PASSAGES)
        self._searches += 1
        self._asked.append(f"search {query!r} {k}")
        place = self._place()
        try:
            passages, seconds = await self._search(query, k)
        except HlError as error:
            self.stopped = error
            raise
        self._note(
            place, "search", query, "\n".join(f"{title}: {text}" for title, text in passages), "", seconds
        )
        return Answer(value=[{"title": title, "text": text} for title, text in passages], seconds=seconds)

    def _place(self) -> int:
        # Reserved when the call starts: parallel calls finish in any order, the trace keeps the order of asking.
        self._events.append(None)
        return len(self._events) - 1

    def _note(
        self,
        place: int,
        kind: str,
        request: str,
        reply: str,
        error: str,
        seconds: float,
        usage: ChatReply | None = None,
    ) -> None:
        self.seconds += seconds
        tokens = usage.prompt_tokens + usage.completion_tokens if usage else 0
        event = TraceEvent(kind, abridge(request), abridge(reply), abridge(error), tokens, round(seconds, 3))
        self._events[place] = event


def abridge(text: str, limit: int = TRACE_CHARS) -> str:
    """The text with its middle cut where it is longer than `limit` characters, saying how much went."""
    text = _clean(text)
    if len(text) <= limit:
        return text
    half = max(8, (limit - 40) // 2)
    return f"{text[:half]}\n[... {len(text) - 2 * half} characters cut ...]\n{text[-half:]}"


def _clean(text: str) -> str:
    """Text that every encoder accepts: lone surrogates replaced."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _number(value: Any, default: float, name: str) -> float:
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value != value:
        raise ValueError(f"{name} must be a number")
    return min(max(value, -1e9), 1e9)
