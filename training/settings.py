"""A TOML file and `-c` texts -> the frozen settings of a training run. Every key is declared once, with mark and help.

Precedence, weakest first: default, file, command line. A settings file is the user's own, as a Makefile is: it may
name models and addresses. Unknown keys are refused with the nearest that there is.
"""

import difflib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hl.config.keys import Value, check, find_key, parse, show, table
from hl.config.load import read_toml
from hl.config.sections import NO_TABLE, OURS, PAPER, SECOND_HAND, Table, key
from hl.errors import UsageError


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """The proposer that is trained, and how it is asked: training and use share every value here."""

    base: str = key("smollm2", OURS, "a model folder, a hub id, or a known model of `hl model pull`")
    adapter: str = key("", OURS, "a LoRA adapter to go on from; empty for a new one")
    dtype: str = key("auto", OURS, "of the base's weights", choices=("auto", "float32", "bfloat16"))
    lora_rank: int = key(32, PAPER, "rank of a new adapter", low=1, high=1024)
    lora_alpha: int = key(32, SECOND_HAND, "its scale is lora_alpha / lora_rank", low=1, high=65_536)
    lora_targets: str = key("all-linear", OURS, "`all-linear`, or a regular expression over module names")
    prompt: str = key(
        "full", OURS, "`brief` suits models of a few hundred million weights", choices=("full", "brief")
    )
    context_tokens: int = key(32_768, SECOND_HAND, "prompt and reply together", low=128, high=10_000_000)
    reply_tokens: int = key(16_384, SECOND_HAND, "longest reply", low=16, high=1_000_000)
    report_tokens: int = key(8192, OURS, "longest report in a prompt", low=32, high=10_000_000)
    chat_template_kwargs: Table = key(  # noqa: RUF009 (a field, as all the others)
        NO_TABLE, OURS, "arguments of the chat template, such as enable_thinking"
    )


@dataclass(frozen=True, slots=True)
class TaskSettings:
    """Which families, and how many questions."""

    track: str = key("paper", OURS, "the split of families: `paper` or `tiny`", choices=("paper", "tiny"))
    sft: tuple[str, ...] = key(
        ("track",), OURS, "families that a teacher writes for; `track` for the track's"
    )
    rl: tuple[str, ...] = key(("track",), OURS, "families of GRPO; `track` for the track's")
    seed: str = key("minimal", OURS, "the seed harness that is revised")
    feedback: int = key(16, OURS, "questions whose runs the report shows", low=1, high=100_000)
    scoring: int = key(32, OURS, "questions that a candidate is scored on", low=1, high=100_000)
    fresh: int = key(64, OURS, "unused questions that measure a teacher's gain again", low=1, high=100_000)
    grade: str = key("raw", PAPER, "`raw` keeps partial credit", choices=("raw", "strict"))


@dataclass(frozen=True, slots=True)
class DataSettings:
    """`hl train data`."""

    teacher: tuple[str, ...] = key(("catalog",), OURS, "who writes: `catalog`, or NAME=ENGINE:MODEL@URL")
    contexts: int = key(8, OURS, "contexts a family", low=1, high=100_000)
    proposals: int = key(8, OURS, "revisions a context", low=1, high=1024)


@dataclass(frozen=True, slots=True)
class SftSettings:
    """`hl train sft`."""

    epochs: float = key(2.9, PAPER, "passes over the rows", low=0.01, high=1000.0)
    learning_rate: float = key(2e-4, OURS, "peak", low=0.0, high=1.0)
    batch: int = key(16, OURS, "rows an update", low=1, high=65_536)
    micro_batch: int = key(1, OURS, "rows in memory at once on each device", low=1, high=65_536)
    validation: float = key(0.05, OURS, "share of families that only measure the loss", low=0.0, high=0.9)
    save_steps: int = key(10, OURS, "updates between checkpoints", low=1, high=1_000_000)
    seed: int = key(0, OURS, "of order and initial weights", low=0, high=2**31 - 1)


@dataclass(frozen=True, slots=True)
class GrpoSettings:
    """`hl train grpo`."""

    mode: str = key(
        "single",
        PAPER,
        "`single`: seeds are revised; `multi`: states that the policy reached too",
        choices=("single", "multi"),
    )
    contexts: int = key(640, PAPER, "contexts in all", low=1, high=10_000_000)
    contexts_per_update: int = key(40, PAPER, "contexts an update", low=1, high=65_536)
    generations: int = key(8, PAPER, "replies a context", low=2, high=1024)
    micro_batch: int = key(4, OURS, "replies in memory at once on each device", low=1, high=65_536)
    learning_rate: float = key(1e-6, PAPER, "constant", low=0.0, high=1.0)
    server: tuple[str, ...] = key(
        (), OURS, "vLLM servers that sample the replies, one address a replica; none: in this process"
    )
    beta: float = key(0.0, SECOND_HAND, "weight of the KL term; 1e-3 for QA", low=0.0, high=10.0)
    log_kl: bool = key(
        True, OURS, "say how far the policy is from where it began, with beta = 0 too: one pass more"
    )
    temperature: float = key(1.0, SECOND_HAND, "of replies; 0.6 is the other value told", low=0.01, high=5.0)
    loss_type: str = key("dapo", OURS, "as TRL names it")
    scale_rewards: str = key("group", OURS, "as TRL names it", choices=("group", "batch", "none"))
    noop: str = key(
        "zero",
        OURS,
        "an edit that changes nothing earns nothing, or what the parent earns",
        choices=("zero", "parent"),
    )
    candidate_s: float = key(
        600.0,
        OURS,
        "seconds of one candidate; what is left then counts as not completed",
        low=0.1,
        high=86_400.0,
    )
    max_lost: float = key(
        0.05, OURS, "share of replies without a reward after which a run stops", low=0.0, high=1.0
    )
    phases: int = key(4, OURS, "multi: parts of a run; chains are rolled between them", low=1, high=1000)
    chain_rounds: int = key(4, OURS, "multi: longest chain that is rolled", low=1, high=100)
    save_steps: int = key(1, OURS, "updates between checkpoints", low=1, high=1_000_000)
    seed: int = key(0, OURS, "of schedule, replies and initial weights", low=0, high=2**31 - 1)


@dataclass(frozen=True, slots=True)
class LogSettings:
    """Where figures go besides `metrics.jsonl`, which is always written."""

    report_to: str = key("none", OURS, "a tracker", choices=("none", "trackio", "tensorboard", "wandb"))


SECTIONS: Mapping[str, Any] = {
    "model": ModelSettings,
    "tasks": TaskSettings,
    "data": DataSettings,
    "sft": SftSettings,
    "grpo": GrpoSettings,
    "log": LogSettings,
}
KEYS = table(SECTIONS)
"""Every key, by dotted name."""
SMALL: Mapping[str, Value] = {
    "tasks.feedback": 8,
    "tasks.scoring": 16,
    "tasks.fresh": 32,
    "data.contexts": 2,
}
"""What the track `tiny` takes where nothing else is said (ours): what two cores do in an hour, as with `hl bench`."""
HL = "hl"
"""`[hl.solver]` and the like: the configuration of `hl` under which candidates run."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything that decides a training run."""

    model: ModelSettings
    tasks: TaskSettings
    data: DataSettings
    sft: SftSettings
    grpo: GrpoSettings
    log: LogSettings
    hl: tuple[str, ...] = ()
    """`key=value` texts for `hl.config`, such as `solver.engine=openai`."""


RECIPES = Path(__file__).with_name("recipes")
"""Settings of the paper's runs, each by its name without `.toml`."""


def recipes() -> tuple[str, ...]:
    """Their names."""
    return tuple(sorted(path.stem for path in RECIPES.glob("*.toml")))


def find_settings(path: Path) -> Path:
    """A file, or else the recipe of that name.

    Raises:
        UsageError: There is neither.
    """
    if path.is_file():
        return path
    if str(path) in recipes():
        return RECIPES / f"{path}.toml"
    raise UsageError(
        f"there is no settings file {path}, and no recipe of that name.",
        hint=f"there are {', '.join(recipes())}",
    )


def load_settings(path: Path | None, overrides: Sequence[str] = ()) -> Settings:
    """Resolve the settings.

    Args:
        path: A TOML file or the name of a recipe, or None for defaults.
        overrides: `key=value` texts; keys of `hl`'s own configuration are passed on to it.

    Raises:
        UsageError: No such file, not TOML, an unknown key, or a value that its key does not allow.
    """
    path = None if path is None else find_settings(path)
    values: dict[str, Value] = {}
    passed: list[str] = []
    for section, fields in (read_toml(path) if path is not None else {}).items():
        if section == HL:
            passed += _passed_on(fields, f"{path}")
            continue
        _section(section, fields, str(path))
        for name, raw in fields.items():
            found = find_key(f"{section}.{name}", str(path), KEYS)
            values[found.name] = check(found, raw, str(path))
    for text in overrides:
        name, equals, value = text.partition("=")
        if not equals:
            raise UsageError(f"-c {text}: expected key=value.", hint="hl -c grpo.contexts=40 train grpo")
        if name.strip().partition(".")[0] in SECTIONS:
            found = find_key(name.strip(), "-c", KEYS)
            values[found.name] = parse(found, value, "-c")
        else:
            passed.append(_absolute(text))
    defaults = {name: k.default for name, k in KEYS.items()}
    track = values.get("tasks.track", defaults["tasks.track"])
    values = {**defaults, **(SMALL if track == "tiny" else {}), **values}
    parts = {
        section: cls(**{k.field: values[n] for n, k in KEYS.items() if k.section == section})
        for section, cls in SECTIONS.items()
    }
    return Settings(**parts, hl=tuple(passed))


def _section(section: str, fields: Any, where: str) -> None:
    if section in SECTIONS and isinstance(fields, Mapping):
        return
    near = difflib.get_close_matches(section, [*SECTIONS, HL], n=1)
    meant = f"; did you mean [{near[0]}]?" if near else f"; there are {', '.join([*SECTIONS, HL])}."
    raise UsageError(f"{where}: unknown section [{show(section)[1:-1]}]{meant}")


def _passed_on(tables: Any, where: str) -> list[str]:
    """`[hl.solver] engine = "openai"` -> `solver.engine=openai`; `hl.config` judges keys and values."""
    texts: list[str] = []
    for section, fields in tables.items() if isinstance(tables, Mapping) else [(HL, tables)]:
        if not isinstance(fields, Mapping):
            raise UsageError(f"{where}: [hl] holds sections such as [hl.solver], not {show(fields)}.")
        texts += [_absolute(f"{section}.{name}={_text(raw)}") for name, raw in fields.items()]
    return texts


def _absolute(text: str) -> str:
    """A file of the user's is relative to where the user is, not to a repository of the run."""
    key, _, value = text.partition("=")
    return f"{key}={Path(value).absolute()}" if key.strip().endswith(".path") and value else text


def _text(raw: Any) -> str:
    """A TOML value as `-c` takes it."""
    return raw if isinstance(raw, str) else json.dumps(raw)
