"""`--solver NAME=SPEC` and `--proposer NAME=SPEC` -> configuration values. Opens no model."""

import re
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qsl

from hl.config import Config
from hl.config.keys import KEYS
from hl.config.sections import PROPOSER_ENGINES, SOLVER_ENGINES
from hl.engines.scripted import READER
from hl.errors import UsageError

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,39}")


@dataclass(frozen=True, slots=True)
class Model:
    """One column of the tables: a label, and what it stands for."""

    label: str
    engine: str
    overrides: tuple[str, ...] = ()
    """`key=value` texts; none means the configuration as it is."""


def parse_model(text: str, section: str) -> Model:
    """Read `NAME=ENGINE[:MODEL][@URL][?key=value&...]`; `NAME=` may be left out of a spec without a model.

    Args:
        text: As typed.
        section: `solver` or `proposer`: whose keys are set.

    Raises:
        UsageError: No such engine or key, or a name that is no file name.
    """
    option = f"--{section} {text}"
    form = f"write --{section} NAME=llamacpp:MODEL, NAME=openai:MODEL@URL or NAME=scripted:FILE"
    label, equals, spec = text.partition("=")
    if not equals:
        label, spec = text, text
    if not NAME.fullmatch(label):
        raise UsageError(f"{option}: {label!r} is not a name (letters, digits, `.`, `_`, `-`).", hint=form)
    spec, _, query = spec.partition("?")
    engine, _, rest = spec.partition(":")
    engines = PROPOSER_ENGINES if section == "proposer" else SOLVER_ENGINES
    if engine not in engines:
        raise UsageError(f"{option}: {engine!r} is not an engine; there are {', '.join(engines)}.", hint=form)
    # What belongs to the configured model, its key above all, is not this one's.
    values = {"engine": engine, "model": "", "base_url": "", "path": "", "adapter": "", "api_key_env": ""}
    if (engine == "scripted" and rest != READER) or rest.endswith(".gguf"):
        path = Path(rest)
        if not rest or not path.is_file():
            raise UsageError(f"{option}: there is no file {rest!r}.", hint=form)
        values["path"] = str(path.resolve())
    elif engine in ("hf", "vllm") and Path(rest).is_dir():
        values["path"] = str(Path(rest).resolve())
    elif engine == "openai":
        values["model"], _, values["base_url"] = rest.partition("@")
    else:
        values["model"] = rest
    if engine not in ("catalog", "scripted") and not (values["model"] or values["path"]):
        raise UsageError(f"{option}: the engine {engine} needs a model.", hint=form)
    try:
        pairs = parse_qsl(query, keep_blank_values=True, strict_parsing=True) if query else []
    except ValueError:
        raise UsageError(f"{option}: {query!r} is not key=value&key=value.", hint=form) from None
    for key, value in pairs:
        if f"{section}.{key}" not in KEYS:
            raise UsageError(f"{option}: there is no key {section}.{key}.", hint="hl config list")
        values[key] = str(Path(value).resolve()) if key == "adapter" and value else value
    return Model(label, engine, tuple(f"{section}.{key}={value}" for key, value in values.items()))


def configured(config: Config, section: str) -> Model:
    """The model that the configuration names, under its own name."""
    part = config.proposer if section == "proposer" else config.solver
    name = Path(part.path).stem if part.path else part.model
    name += f"@{Path(part.adapter).name}" if part.adapter else ""
    words = part.engine if part.engine == "catalog" or not name else f"{part.engine}-{name}"
    return Model(re.sub(r"[^A-Za-z0-9._-]+", "-", words)[:40] or section, part.engine)
