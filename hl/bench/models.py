"""`--solver NAME=SPEC` and `--proposer NAME=SPEC` -> configuration values, and the identity of what they name."""

import re
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qsl

from hl.config import Config
from hl.config.keys import KEYS
from hl.config.load import parse_overrides
from hl.config.sections import PROPOSER_ENGINES, SOLVER_ENGINES
from hl.engines.scripted import READER
from hl.errors import UsageError
from hl.rules import open_model
from hl.tasks.base import nearest

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
    if re.search(r"//[^/?#]*@", text):
        # Not repeated: what stands before the @ is likely a password.
        raise UsageError(
            f"--{section}: the address has a user or password in it, and hl keeps no secrets in files.",
            hint="export the key as a variable and name it: NAME=openai:MODEL@URL?api_key_env=VARIABLE",
        )
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
        meant = nearest(engine, engines) or f"; there are {', '.join(engines)}."
        raise UsageError(f"{option}: {engine!r} is not an engine{meant}", hint=form)
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
            meant = nearest(key, [k.partition(".")[2] for k in KEYS if k.startswith(f"{section}.")]) or "."
            raise UsageError(f"{option}: there is no key {section}.{key}{meant}", hint="hl config list")
        values[key] = str(Path(value).resolve()) if key == "adapter" and value else value
    if engine == "openai" and not values["base_url"]:
        raise UsageError(f"{option}: the engine openai needs an address.", hint=form)
    parse_overrides([f"{section}.{key}={value}" for key, value in values.items()])
    return Model(label, engine, tuple(f"{section}.{key}={value}" for key, value in values.items()))


def configured(config: Config, section: str) -> Model:
    """The model that the configuration names, under its own name."""
    part = config.proposer if section == "proposer" else config.solver
    name = Path(part.path).stem if part.path else part.model
    name += f"@{Path(part.adapter).name}" if part.adapter else ""
    words = part.engine if part.engine == "catalog" or not name else f"{part.engine}-{name}"
    return Model(re.sub(r"[^A-Za-z0-9._-]+", "-", words)[:40] or section, part.engine)


def identify(config: Config, section: str) -> dict[str, str]:
    """Name and digest of the engine behind a section, as scores are recorded with them; opens it, and loads nothing.

    Raises:
        UsageError: The section names no model that there is, or its file is no rules file.
        EngineError: Its weights are not here.
    """
    part = config.proposer if section == "proposer" else config.solver
    if part.engine == "catalog":
        from hl.proposer.catalog import CatalogProposer

        return {"name": CatalogProposer.name}
    engine = open_model(part, Path.cwd())
    return {"name": engine.name, "digest": engine.digest}
