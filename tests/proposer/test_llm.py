"""A language model as proposer, the engine scripted."""

import asyncio
from collections.abc import Sequence

import pytest

from hl.engines.scripted import ScriptedEngine
from hl.errors import EngineError, StoppedEarly
from hl.proposer.llm import LlmProposer
from hl.types import ChatReply, ChatRequest, Message, Reply
from tests.proposer.kit import context, seed

HERE = context(seed("minimal"))


def test_each_index_asks_with_its_own_seed_and_repeats_it() -> None:
    asked: list[ChatRequest] = []

    def talk(messages: Sequence[Message], request: ChatRequest) -> str:
        asked.append(request)
        return f" reply {request.seed}\n"

    async def go() -> list[Reply]:
        proposer = LlmProposer(ScriptedEngine(function=talk), temperature=0.8, max_tokens=900)
        return [await proposer.propose(HERE, i % 4, 4) for i in range(8)]

    replies = asyncio.run(go())
    assert len({r.text for r in replies[:4]}) == 4
    assert [r.text for r in replies[:4]] == [r.text for r in replies[4:]]
    assert replies[0].text.startswith(" reply") and replies[0].text.endswith("\n"), "nothing is stripped"
    assert {(r.temperature, r.max_tokens) for r in asked} == {(0.8, 900)}
    assert replies[0].prompt_tokens > 0


def test_prompt_and_reply_share_the_context() -> None:
    seen: list[ChatRequest] = []

    def talk(messages: Sequence[Message], request: ChatRequest) -> str:
        seen.append(request)
        return "x"

    proposer = LlmProposer(ScriptedEngine(function=talk), max_tokens=16_384, context_tokens=8_192)
    asyncio.run(proposer.propose(HERE, 0, 1))
    (request,) = seen
    assert request.max_tokens + sum(len(m.content) / 3.5 for m in request.messages) <= 8_192


@pytest.mark.parametrize(
    ("reason", "wanted"), [("length", "length"), ("stop", "stop"), ("content_filter", "stop")]
)
def test_a_cut_reply_is_marked(reason: str, wanted: str) -> None:
    class Cut(ScriptedEngine):
        async def chat(self, request: ChatRequest) -> ChatReply:
            return ChatReply("half", reason, 10, 5, 0.5, cost=0.25)

    reply = asyncio.run(LlmProposer(Cut()).propose(HERE, 0, 1))
    assert (reply.finish_reason, reply.cost, reply.seconds, reply.completion_tokens) == (wanted, 0.25, 0.5, 5)


def test_a_failed_engine_is_a_lost_reply() -> None:
    def talk(messages: Sequence[Message], request: ChatRequest) -> str:
        raise EngineError("the server is down")

    reply = asyncio.run(LlmProposer(ScriptedEngine(function=talk)).propose(HERE, 0, 1))
    assert reply.error == "the server is down" and reply.text == ""


def test_a_run_limit_passes_through() -> None:
    def talk(messages: Sequence[Message], request: ChatRequest) -> str:
        raise StoppedEarly("no calls left")

    with pytest.raises(StoppedEarly):
        asyncio.run(LlmProposer(ScriptedEngine(function=talk)).propose(HERE, 0, 1))


def test_a_repair_continues_the_conversation() -> None:
    def talk(messages: Sequence[Message], request: ChatRequest) -> str:
        roles = [m.role for m in messages]
        return "second" if roles == ["system", "user", "assistant", "user"] else "first"

    async def go() -> Reply:
        proposer = LlmProposer(ScriptedEngine(function=talk))
        first = await proposer.propose(HERE, 0, 1)
        return await proposer.repair(HERE, 0, first, "block 1: SEARCH is not there")

    assert asyncio.run(go()).text == "second"
