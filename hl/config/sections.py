"""The sections of the configuration: every key with its type, default, mark, help and limits, once.

The dataclasses are the table: `hl.config.keys` reads it from their fields. No file is read here.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, TypeVar, cast

PAPER = "paper"
"""A review of the paper, or its project page, says so."""
SECOND_HAND = "second-hand"
"""A third party's summary of the paper says so, unchecked."""
OURS = "ours"
"""We chose."""

T = TypeVar("T")
Table = Mapping[str, Any]
"""A table of JSON values, passed on to an engine as it is."""


def key(
    default: T,
    mark: str,
    help: str,
    *,
    guarded: bool = False,
    repository_only: bool = False,
    low: float | None = None,
    high: float | None = None,
    choices: tuple[str, ...] = (),
    pattern: str = "",
) -> T:
    """Declare one key as a dataclass field.

    Args:
        default: Its type is the key's type: bool, int, float, str, tuple of str, or a table.
        mark: Where the default comes from: PAPER, SECOND_HAND or OURS.
        help: One line, shown by `hl config list` and in written files.
        guarded: Whether a repository's value counts only once the user trusts the repository.
        repository_only: Whether the user's own file may not set it: it belongs to one repository.
        low: Smallest number allowed, inclusive.
        high: Largest number allowed, inclusive.
        choices: The only texts allowed, if there are any.
        pattern: A regular expression that the whole text, or every item of a list, matches.
    """
    metadata = {
        "default": default,
        "mark": mark,
        "help": help,
        "guarded": guarded,
        "repository_only": repository_only,
        "low": low,
        "high": high,
        "choices": choices,
        "pattern": pattern,
    }
    if isinstance(default, Mapping):
        return cast(T, field(default_factory=_empty_table, metadata=metadata))
    return cast(T, field(default=default, metadata=metadata))


def _empty_table() -> Table:
    return MappingProxyType({})


NO_TABLE: Table = MappingProxyType({})

FILE_NAME = r"[A-Za-z_][A-Za-z0-9_]*\.py"
VARIABLE_NAME = r"(?:[A-Za-z_][A-Za-z0-9_]*)?"
WEB_ADDRESS = r"(?:https?://[^\s@/?#]+(?:/[^\s?#]*)?)?"

SOLVER_ENGINES = ("llamacpp", "openai", "scripted", "hf", "vllm")
PROPOSER_ENGINES = ("catalog", *SOLVER_ENGINES)
SELECT_RULES = ("improve", "best", "significant")
"""`improve`: the best, if it beats the parent (second-hand). `best`: the best, whatever the parent scored
(second-hand). `significant`: a paired gain that survives a correction for the number of candidates (ours)."""


@dataclass(frozen=True, slots=True)
class TaskConfig:
    """What the harness is asked to do."""

    name: str = key("", OURS, "the task, as in `reasoning-gym:gcd`", guarded=True, repository_only=True)
    grade: str = key(
        "raw",
        PAPER,
        "which grade is averaged: `raw` keeps partial credit, `strict` is 0 or 1",
        repository_only=True,
        choices=("raw", "strict"),
    )


@dataclass(frozen=True, slots=True)
class HarnessConfig:
    """Which files are the harness; scores follow these files and nothing else."""

    files: tuple[str, ...] = key(
        ("harness.py",), OURS, "the harness's files, side by side", repository_only=True, pattern=FILE_NAME
    )
    entry: str = key(
        "harness.py",
        OURS,
        "the file that defines solve(model, question)",
        repository_only=True,
        pattern=FILE_NAME,
    )


@dataclass(frozen=True, slots=True)
class ModelConfig:
    """What solver and proposer have in common: one model behind one engine."""

    engine: str = key("", OURS, "what runs the model")
    model: str = key("", OURS, "the model's name, as the engine knows it", guarded=True)
    base_url: str = key("", OURS, "address of an OpenAI-compatible server", guarded=True, pattern=WEB_ADDRESS)
    api_key_env: str = key(
        "", OURS, "name of the environment variable that holds the key", guarded=True, pattern=VARIABLE_NAME
    )
    path: str = key("", OURS, "a GGUF file, a model folder, or a file of scripted replies", guarded=True)
    adapter: str = key("", OURS, "a LoRA adapter's folder, which goes onto the model", guarded=True)
    temperature: float = key(0.0, OURS, "sampling temperature where the caller names none", low=0.0, high=5.0)
    max_tokens: int = key(512, OURS, "most tokens of one reply, and the default", low=1, high=1_000_000)
    context_tokens: int = key(
        4096, OURS, "tokens that prompt and reply may take together", low=128, high=10_000_000
    )
    concurrency: int = key(16, OURS, "requests to a server in flight at once", low=1, high=4096)
    timeout_s: float = key(120.0, OURS, "seconds until one request counts as failed", low=0.1, high=86_400.0)
    retries: int = key(6, OURS, "further tries after an engine failure", low=0, high=100)
    deterministic: bool = key(
        False, OURS, "one request at a time without a prompt cache: slower, repeats exactly"
    )
    threads: int = key(2, OURS, "threads of an in-process engine", low=1, high=1024)
    slots: int = key(8, OURS, "parallel sequences of an in-process engine", low=1, high=256)
    price_in: float = key(0.0, OURS, "price of a million prompt tokens", guarded=True, low=0.0, high=1e6)
    price_out: float = key(0.0, OURS, "price of a million completion tokens", guarded=True, low=0.0, high=1e6)
    extra_body: Table = key(  # noqa: RUF009 (a field, as all the others)
        NO_TABLE, OURS, "further fields of every request to a server", guarded=True
    )
    chat_template_kwargs: Table = key(  # noqa: RUF009
        NO_TABLE, OURS, "arguments of the chat template, such as enable_thinking", guarded=True
    )


@dataclass(frozen=True, slots=True)
class SolverConfig(ModelConfig):
    """The frozen model that the harness calls."""

    engine: str = key("llamacpp", OURS, "what runs the solver", choices=SOLVER_ENGINES)
    model: str = key("smollm2", OURS, "the solver's name, as the engine knows it", guarded=True)
    temperature_max: float = key(
        1.0, OURS, "highest temperature that a harness may ask for", low=0.0, high=5.0
    )
    max_tokens: int = key(
        256, OURS, "most tokens that a harness may ask for, and the default", low=1, high=1_000_000
    )
    trials: int = key(1, OURS, "attempts per question, each with its own seed", low=1, high=1000)


@dataclass(frozen=True, slots=True)
class ProposerConfig(ModelConfig):
    """What writes the edits."""

    engine: str = key(
        "catalog", OURS, "what writes edits; `catalog` needs no model", choices=PROPOSER_ENGINES
    )
    temperature: float = key(0.6, SECOND_HAND, "sampling temperature of replies", low=0.0, high=5.0)
    max_tokens: int = key(16_384, SECOND_HAND, "most tokens of one reply", low=1, high=1_000_000)
    context_tokens: int = key(
        32_768, SECOND_HAND, "tokens that prompt and reply may take together", low=128, high=10_000_000
    )
    timeout_s: float = key(600.0, OURS, "seconds until one request counts as failed", low=0.1, high=86_400.0)
    prompt: str = key(
        "full", OURS, "`brief` suits models of a few hundred million weights", choices=("full", "brief")
    )


@dataclass(frozen=True, slots=True)
class RoundConfig:
    """One round: how many proposals, how many questions, who wins."""

    proposals: int = key(8, PAPER, "proposals a round (K)", low=1, high=1024)
    feedback: int = key(16, OURS, "questions a round whose runs the proposer sees", low=1, high=100_000)
    scoring: int = key(32, OURS, "questions a round that choose the winner", low=1, high=100_000)
    confirmation: int = key(
        32, OURS, "fresh questions a round that measure the winner again", low=1, high=100_000
    )
    evaluation: int = key(128, OURS, "held-out questions; what is reported", low=1, high=100_000)
    select: str = key("improve", SECOND_HAND, "how the winner is chosen", choices=SELECT_RULES)
    confirm: bool = key(True, OURS, "whether a winner is measured again before it is accepted")
    repair: int = key(1, OURS, "further turns for a reply whose edits do not apply", low=0, high=10)
    pool_rounds: int = key(
        10, PAPER, "rounds for which `hl init` draws questions; later ones use them again", low=1, high=1000
    )


@dataclass(frozen=True, slots=True)
class AttemptConfig:
    """What one harness may use for one question."""

    calls: int = key(16, OURS, "calls of the model", low=0, high=100_000)
    tokens: int = key(16_384, OURS, "prompt and completion tokens together", low=0, high=1_000_000_000)
    wall_s: float = key(60.0, OURS, "seconds, queueing and retries left out", low=0.1, high=86_400.0)
    cpu_s: int = key(10, OURS, "seconds of processor time", low=1, high=86_400)
    memory_mb: int = key(256, OURS, "memory", low=32, high=1_048_576)
    require_model_call: bool = key(False, OURS, "grade 0 an attempt that never asked the model")


@dataclass(frozen=True, slots=True)
class ReportConfig:
    """What the proposer is told."""

    gold: bool = key(True, OURS, "show the right answers of feedback questions")
    tokens: int = key(8192, OURS, "tokens that a report may take in a prompt", low=256, high=10_000_000)


PROFILES: Mapping[str, Mapping[str, Any]] = MappingProxyType(
    {
        "small": MappingProxyType(
            {
                "round.proposals": 4,
                "round.feedback": 8,
                "round.scoring": 16,
                "round.confirmation": 16,
                "round.evaluation": 64,
            }
        )
    }
)
"""Named sets of values for `--profile`; `small` is ours."""

SECTIONS: Mapping[str, Callable[..., Any]] = MappingProxyType(
    {
        "task": TaskConfig,
        "harness": HarnessConfig,
        "solver": SolverConfig,
        "proposer": ProposerConfig,
        "round": RoundConfig,
        "attempt": AttemptConfig,
        "report": ReportConfig,
    }
)
"""Section name -> dataclass, in the order in which they are shown and written."""
