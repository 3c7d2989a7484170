"""The seed harnesses: they keep the contract and do what they are named after, in the real sandbox."""

from collections.abc import Sequence

import pytest

from hl.edits import check_harness
from hl.new import load_seed, seed_names
from hl.types import ChatRequest, Message, Status
from tests.proposer.kit import SEED_NAMES, run, seed


def test_all_seeds_are_offered_by_name() -> None:
    names = {"bare", "minimal", "interpreter", "cot", "self-consistency", "react", "reflexion", "retrieval"}
    assert set(seed_names()) == names
    assert load_seed("self-consistency") == seed("self_consistency")


@pytest.mark.parametrize("name", SEED_NAMES)
def test_a_seed_keeps_the_contract(name: str) -> None:
    check_harness(seed(name))


@pytest.mark.parametrize("name", SEED_NAMES)
def test_a_seed_survives_a_model_that_says_nothing(name: str) -> None:
    (attempt,) = run(seed(name), lambda messages, request: "", "What is 1 + 1?")
    assert attempt.status is Status.OK
    assert attempt.answer == ""
    assert attempt.calls > 0


def test_minimal_takes_the_last_tagged_answer_else_the_reply() -> None:
    def talk(messages: Sequence[Message], request: ChatRequest) -> str:
        return (
            "<answer>1</answer> no: <answer> 2 </answer>" if "tagged" in messages[-1].content else " plain "
        )

    answers = [a.answer for a in run(seed("minimal"), talk, "tagged?", "bare?")]
    assert answers == ["2", "plain"]


def test_interpreter_answers_with_what_the_program_prints() -> None:
    def talk(messages: Sequence[Message], request: ChatRequest) -> str:
        assert [m.role for m in messages[:3]] == ["system", "user", "assistant"]
        return "Sure.\n```python\nprint(6 * 7)\n```" if "times" in messages[-1].content else "forty-two"

    attempts = run(seed("interpreter"), talk, "What is 6 times 7?", "Say it.")
    assert [a.answer for a in attempts] == ["42", ""]
    assert [e.kind for e in attempts[0].trace] == ["chat", "python"]


def test_cot_takes_the_answer_line() -> None:
    (attempt,) = run(seed("cot"), lambda m, r: "One and one.\nAnswer: **2**", "What is 1 + 1?")
    assert attempt.answer == "2"


def test_self_consistency_takes_the_majority_of_samples() -> None:
    def talk(messages: Sequence[Message], request: ChatRequest) -> str:
        assert request.temperature == 0.7
        return f"Answer: {'odd one' if request.seed % 5 == 0 else 'most'}"

    (attempt,) = run(seed("self_consistency"), talk, "Which?")
    assert attempt.answer == "most"
    assert attempt.calls == 5


def test_react_observes_and_finishes() -> None:
    def talk(messages: Sequence[Message], request: ChatRequest) -> str:
        seen = messages[-1].content
        return (
            f"Finish: {seen.split()[-1]}" if "Observation" in seen and len(messages) > 1 else "Python: 6 * 7"
        )

    (attempt,) = run(seed("react"), talk, "What is 6 * 7?")
    assert attempt.answer == "42"
    assert [e.kind for e in attempt.trace] == ["chat", "python", "chat"]


def test_reflexion_asks_again_with_the_criticism() -> None:
    def talk(messages: Sequence[Message], request: ChatRequest) -> str:
        prompt = messages[-1].content
        if "Check this solution" in prompt:
            return "CORRECT" if "<answer>2</answer>" in prompt else "The sum is wrong."
        return "<answer>2</answer>" if "The sum is wrong." in prompt else "<answer>3</answer>"

    (attempt,) = run(seed("reflexion"), talk, "What is 1 + 1?")
    assert attempt.answer == "2"
    assert attempt.calls == 4


def test_retrieval_answers_from_its_summaries_alone() -> None:
    prompts: list[str] = []

    def talk(messages: Sequence[Message], request: ChatRequest) -> str:
        prompts.append(messages[-1].content)
        return f"Summary {len(prompts)}." if "Summarise" in prompts[-1] else "so: <answer>Port Vail</answer>"

    (attempt,) = run(seed("retrieval"), talk, "Where was Ada Berg born?")
    assert attempt.answer == "Port Vail"
    assert [e.kind for e in attempt.trace] == ["search", "chat", "search", "chat", "chat"]
    assert attempt.trace[2].request == "Where was Ada Berg born? Summary 1."
    assert "She was born in Port Vail." in prompts[0] and "She was born" not in prompts[2]
    assert prompts[2].startswith("Summary 1.\nSummary 2.\n")
