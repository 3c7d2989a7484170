"""Replies from rules instead of a model: for tests, examples and dry runs.

A rules file is JSON:

    {"rules": [{"when": "2 + 2", "replies": ["4", "four"], "tokens": 3, "delay_s": 0.5},
               {"when": {"system": "You revise", "last": "chain_sum", "regex": "0[.]5"}, "replies": ["..."]},
               {"when": "boom", "fail": "the server is down"}],
     "default": "no rule matched", "log": "calls.jsonl"}

The first rule whose conditions all hold answers; which of its replies depends on the request's seed alone
(seed modulo count), never on the order of calls, so concurrency cannot change a run. A reply is a text, or
{"text": T, "times": N}. Tokens are words unless the rule says otherwise; `max_tokens` and `stop` cut replies
as a model's would be cut.

`model = "reader"` without a file answers by a shipped function instead: a rule-based reader, see `hl.engines.reader`.

`python -m hl.engines.scripted --serve FILE` answers the same over HTTP, with faults if asked; see
`hl.engines.serve`.
"""

import asyncio
import hashlib
import json
import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from hl.engines.base import EngineSpec, digest_of
from hl.errors import EngineError, UsageError
from hl.types import ChatReply, ChatRequest, Message

Function = Callable[[tuple[Message, ...], ChatRequest], str]
"""A reply computed in Python, for tests."""

READER = "reader"
"""The model name that stands for the shipped reader."""

_WORD = re.compile(r"\S+")


@dataclass(frozen=True, slots=True)
class Rule:
    """One line of a script. All conditions that are set must hold; a rule without any always matches."""

    replies: tuple[str, ...] = ("",)
    """What to answer; the seed picks one."""
    anywhere: str = ""
    """Text that some message contains."""
    last: str = ""
    """Text that the last message contains."""
    system: str = ""
    """Text that a system message contains."""
    regex: str = ""
    """Pattern searched in the last message (dot matches newlines)."""
    tokens: int | None = None
    """Completion tokens to report; None counts words."""
    delay_s: float = 0.0
    """How long the answer takes."""
    fail: str = ""
    """If set, the call raises EngineError with this text instead of answering."""

    def matches(self, messages: Sequence[Message]) -> bool:
        """Whether this rule answers that conversation."""
        last = messages[-1].content if messages else ""
        return (
            any(self.anywhere in m.content for m in messages or (Message("user", ""),))
            and self.last in last
            and (not self.system or any(m.role == "system" and self.system in m.content for m in messages))
            and (not self.regex or re.search(self.regex, last, re.DOTALL) is not None)
        )


@dataclass(frozen=True, slots=True)
class Script:
    """A parsed rules file."""

    rules: tuple[Rule, ...]
    """Tried in order."""
    default: str = ""
    """The answer where no rule matches."""
    log: str = ""
    """File that gets a JSON line for every call, relative to the rules file."""

    def answer(self, request: ChatRequest) -> tuple[Rule, str]:
        """The rule that answers and the reply it gives, uncut."""
        for rule in self.rules:
            if rule.matches(request.messages):
                return rule, rule.replies[request.seed % len(rule.replies)]
        return Rule(), self.default


def parse_script(text: str, name: str = "the script") -> Script:
    """Parse a rules file.

    Raises:
        UsageError: It is not JSON, or has a key or value that means nothing.
    """
    try:
        data = json.loads(text)
        _expect(isinstance(data, dict), "it must be an object with rules")
        _known(data, {"rules", "default", "log"})
        rules = tuple(_parse_rule(entry) for entry in data.get("rules", []))
        return Script(rules, _text(data.get("default", "")), _text(data.get("log", "")))
    except (ValueError, TypeError, re.error) as error:
        raise UsageError(f"{name} is not a rules file: {error}") from error


def _parse_rule(entry: Any) -> Rule:
    _expect(isinstance(entry, dict), f"a rule must be an object, not {entry!r}")
    _known(entry, {"when", "replies", "tokens", "delay_s", "fail"})
    when: Any = entry.get("when", "")
    if isinstance(when, str):
        when = {"anywhere": when}
    _expect(isinstance(when, dict), f"when must be a text or an object, not {when!r}")
    _known(when, {"anywhere", "last", "system", "regex"})
    conditions = {key: _text(value) for key, value in when.items()}
    re.compile(conditions.get("regex", ""))
    replies: Any = entry.get("replies", [""])
    _expect(isinstance(replies, list) and len(replies) > 0, "replies must be a list with at least one text")
    tokens = entry.get("tokens")
    return Rule(
        replies=tuple(_text(reply) for reply in replies),
        tokens=None if tokens is None else int(tokens),
        delay_s=float(entry.get("delay_s", 0.0)),
        fail=_text(entry.get("fail", "")),
        **conditions,
    )


def _text(value: Any) -> str:
    if isinstance(value, dict):
        fields = cast(dict[str, Any], value)
        _known(fields, {"text", "times"})
        return str(fields["text"]) * int(fields.get("times", 1)) if "text" in fields else ""
    _expect(isinstance(value, str), f"{value!r} is not a text")
    return cast(str, value)


def _known(fields: Mapping[str, Any], allowed: set[str]) -> None:
    unknown = sorted(set(fields) - allowed)
    _expect(not unknown, f"unknown key {', '.join(unknown)}; there are {', '.join(sorted(allowed))}")


def _expect(holds: bool, message: str) -> None:
    if not holds:
        raise ValueError(message)


def cut_reply(text: str, *, max_tokens: int, stop: Sequence[str]) -> tuple[str, str, int]:
    """A reply as a model with these limits would have given it: text, finish reason, tokens (words)."""
    finish = "stop"
    ends = [at for at in (text.find(s) for s in stop if s) if at >= 0]
    if ends:
        text = text[: min(ends)]
    words = 0
    for match in _WORD.finditer(text):
        if words == max_tokens:
            return text[: match.start()].rstrip(), "length", words
        words += 1
    return text, finish, words


def count_words(messages: Sequence[Message]) -> int:
    """Prompt tokens of the scripted engine."""
    return sum(len(m.content.split()) for m in messages)


@dataclass(slots=True)
class ScriptedEngine:
    """An engine that answers from a script or a function. The only fake in the project's tests."""

    script: Script = field(default_factory=lambda: Script(()))
    """Rules; ignored where there is a function."""
    function: Function | None = None
    """Computes the reply text; may raise EngineError."""
    label: str = ""
    """Tells functions apart in the digest."""
    log: Path | None = None
    """File that gets one JSON line when a call starts, so that a killed run can be counted."""
    concurrency: int = 64
    """Requests worth having in flight."""
    price: Callable[[int, int], float] = lambda prompt, completion: 0.0
    """Money for a call of so many prompt and completion tokens."""
    calls: int = 0
    """Calls started so far."""

    @classmethod
    def from_file(cls, path: str | Path, *, log: str | Path | None = None) -> "ScriptedEngine":
        """Open a rules file.

        Raises:
            UsageError: The file cannot be read or is not a rules file.
        """
        path = Path(path)
        try:
            script = parse_script(path.read_text("utf-8"), str(path))
        except (OSError, UnicodeError) as error:
            raise UsageError(f"cannot read the rules file {path}: {error}") from error
        if log is None and script.log:
            log = path.parent / script.log
        return cls(script, log=Path(log) if log is not None else None)

    @classmethod
    def from_rules(cls, rules: Mapping[str, Any], *, log: str | Path | None = None) -> "ScriptedEngine":
        """The same from a Python object of the same shape."""
        return cls(parse_script(json.dumps(rules)), log=Path(log) if log is not None else None)

    @classmethod
    def from_spec(cls, spec: EngineSpec) -> "ScriptedEngine":
        """Open the rules file that a spec names."""
        if not spec.path and spec.model == READER:
            from hl.engines.reader import VERSION, read

            return cls(function=lambda messages, request: read(messages), label=VERSION, price=spec.price)
        if not spec.path:
            raise UsageError(
                "the scripted engine needs a rules file", hint='path = "replies.json", or model = "reader"'
            )
        engine = cls.from_file(spec.path)
        engine.price = spec.price
        return engine

    @property
    def name(self) -> str:
        """Readable identity."""
        return f"scripted {self.label}".strip()

    @property
    def digest(self) -> str:
        """Over the rules, or the function's name; delays and the log do not count."""
        if self.function is not None:
            return digest_of(engine="scripted", function=self.label or self.function.__qualname__)
        rules = [
            [r.replies, r.anywhere, r.last, r.system, r.regex, r.tokens, r.fail] for r in self.script.rules
        ]
        return digest_of(engine="scripted", rules=rules, default=self.script.default)

    async def chat(self, request: ChatRequest) -> ChatReply:
        """Answer by the first rule that matches; see `Engine.chat`."""
        self.calls += 1
        if self.log is not None:
            append_call(self.log, request)
        if self.function is not None:
            rule, full = Rule(), self.function(request.messages, request)
        else:
            rule, full = self.script.answer(request)
        if rule.delay_s > 0:
            await asyncio.sleep(rule.delay_s)
        if rule.fail:
            raise EngineError(f"the scripted engine failed: {rule.fail}")
        text, finish, words = cut_reply(full, max_tokens=request.max_tokens, stop=request.stop)
        prompt = count_words(request.messages)
        tokens = words if rule.tokens is None else rule.tokens
        cost = self.price(prompt, tokens)
        return ChatReply(text, finish, prompt, tokens, seconds=rule.delay_s, cost=cost)

    async def aclose(self) -> None:
        """Nothing to free."""


def request_digest(request: ChatRequest) -> str:
    """Hex sha256 of a request: names it in the log, and decides a test server's faults."""
    parts = [[m.role, m.content] for m in request.messages]
    wire = json.dumps([parts, request.max_tokens, request.temperature, list(request.stop), request.seed])
    return hashlib.sha256(wire.encode()).hexdigest()


def append_call(log: Path, request: ChatRequest) -> None:
    """One line with one write: whole even if several processes append and one is killed."""
    last = request.messages[-1].content[:200] if request.messages else ""
    line = json.dumps({"request": request_digest(request), "seed": request.seed, "last": last}) + "\n"
    handle = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
    try:
        os.write(handle, line.encode())
    finally:
        os.close(handle)


if __name__ == "__main__":
    from hl.engines.serve import main

    sys.exit(main(sys.argv[1:]))
