"""Files and command line -> one frozen `Config`, with the origin of every value.

Precedence, weakest first: default, `hl.toml` of the repository, the user's own file, `--profile`, `-c` on
the command line. What a foreign repository must not decide (programs, addresses, key variables, prices) is
refused until the user trusts it: see `hl.config.trust`.
"""

import difflib
import os
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from hl.config.keys import KEYS, Key, Value, check, find_key, parse, show
from hl.config.sections import (
    PROFILES,
    SECTIONS,
    AttemptConfig,
    HarnessConfig,
    ProposerConfig,
    ReportConfig,
    RoundConfig,
    SolverConfig,
    TaskConfig,
)
from hl.errors import RepositoryError, UsageError

FILE = "hl.toml"
"""The repository's configuration file, at the top of its work tree."""
MAX_BYTES = 1024 * 1024
"""Largest configuration file that is read."""


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a value comes from."""

    kind: str
    """`default`, `repository`, `user`, `profile` or `command line`."""
    place: str = ""
    """The file's path, the profile's name, or empty."""

    def __str__(self) -> str:
        return f"{self.kind} {self.place}".rstrip()


@dataclass(frozen=True, slots=True)
class Config:
    """Everything that can be configured, resolved."""

    task: TaskConfig
    harness: HarnessConfig
    solver: SolverConfig
    proposer: ProposerConfig
    round: RoundConfig
    attempt: AttemptConfig
    report: ReportConfig
    origins: Mapping[str, Origin]
    """Dotted key -> where its value comes from."""

    def get(self, name: str) -> Value:
        """The value of a dotted key.

        Raises:
            UsageError: There is no such key.
        """
        key = find_key(name, "configuration")
        return getattr(getattr(self, key.section), key.field)


def config_dir() -> Path:
    """The user's own configuration directory: `HL_CONFIG_DIR`, else the platform's place for it."""
    override = os.environ.get("HL_CONFIG_DIR", "")
    if override:
        return Path(override)
    from platformdirs import user_config_path

    return user_config_path("hl")


def user_file() -> Path:
    """The user's own configuration file, which need not exist."""
    return config_dir() / "config.toml"


def load_config(
    root: Path | None,
    overrides: Sequence[str] = (),
    *,
    profile: str | None = None,
    require_trust: bool = True,
) -> Config:
    """Resolve the configuration.

    Args:
        root: Top of the work tree, where `hl.toml` is looked for; None outside a repository.
        overrides: `key=value` texts of the command line; the last one of a key wins.
        profile: A name from `PROFILES`, or None.
        require_trust: False to show values without using them (`hl config`).

    Raises:
        UsageError: Unknown key, wrong type or out of range; the message names file, key and value.
        RepositoryError: The repository sets guarded keys and the user does not trust it.
    """
    values: dict[str, Value] = {name: key.default for name, key in KEYS.items()}
    origins: dict[str, Origin] = dict.fromkeys(KEYS, Origin("default"))

    def lay(layer: Mapping[str, Value], origin: Origin) -> None:
        values.update(layer)
        origins.update(dict.fromkeys(layer, origin))

    repository: Mapping[str, Value] = {}
    if root is not None:
        repository = read_values(root / FILE)
        lay(repository, Origin("repository", FILE))
    own = user_file()
    lay(read_values(own, user=True), Origin("user", str(own)))
    if profile is not None:
        lay(_profile(profile), Origin("profile", profile))
    lay(parse_overrides(overrides), Origin("command line"))

    if root is not None and require_trust:
        from hl.config.trust import refuse_untrusted

        refuse_untrusted(
            root, repository, [name for name in repository if origins[name].kind == "repository"]
        )
    config = Config(
        **{section: cls(**_section(section, values)) for section, cls in SECTIONS.items()},
        origins=MappingProxyType(origins),
    )
    _cross_check(config)
    return config


def read_values(path: Path, *, user: bool = False) -> dict[str, Value]:
    """The values that a configuration file sets; none where there is no file.

    Args:
        path: A TOML file.
        user: Whether it is the user's own file, which may not set what belongs to a repository.

    Raises:
        UsageError: Not TOML, an unknown key, or a value that its key does not allow.
        RepositoryError: The file cannot be read.
    """
    values: dict[str, Value] = {}
    for key, raw in flatten(read_toml(path), str(path)):
        if user and key.repository_only:
            raise UsageError(
                f"{path}: {key.name} = {show(raw)}: this key belongs in a repository's {FILE}.",
                hint=f"hl config set {key.name} VALUE",
            )
        values[key.name] = check(key, raw, str(path))
    return values


def read_toml(path: Path) -> dict[str, Any]:
    """A TOML file as plain data; empty where there is no file.

    Raises:
        UsageError: Not TOML, or too large.
        RepositoryError: It is not a plain file, or cannot be read.
    """
    try:
        if not path.exists():
            return {}
        if not path.is_file():
            raise RepositoryError(f"{path} is not a plain file.")
        with path.open("rb") as stream:
            data = stream.read(MAX_BYTES + 1)
    except OSError as error:
        raise RepositoryError(f"{path} cannot be read: {error.strerror}.") from None
    if len(data) > MAX_BYTES:
        raise UsageError(f"{path} is larger than {MAX_BYTES} bytes.")
    try:
        return tomllib.loads(data.decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise UsageError(f"{path} is not TOML: {error}.") from None


def flatten(data: Mapping[str, Any], where: str) -> list[tuple[Key, Any]]:
    """Sections of plain data -> (key, raw value) pairs.

    Raises:
        UsageError: A section or key that there is not.
    """
    pairs: list[tuple[Key, Any]] = []
    for section, table in data.items():
        if not isinstance(table, Mapping):
            raise UsageError(
                f"{where}: {section} = {show(table)} stands outside a section "
                f"(sections: {', '.join(SECTIONS)}).",
                hint="hl config list",
            )
        if section not in SECTIONS:
            near = difflib.get_close_matches(section, SECTIONS, n=1)
            meant = f"; did you mean [{near[0]}]?" if near else "."
            raise UsageError(
                f"{where}: unknown section [{show(section)[1:-1]}]{meant}", hint="hl config list"
            )
        pairs.extend((find_key(f"{section}.{field}", where), raw) for field, raw in table.items())  # pyright: ignore[reportUnknownVariableType]
    return pairs


def parse_overrides(overrides: Sequence[str]) -> dict[str, Value]:
    """`key=value` texts of the command line -> values.

    Raises:
        UsageError: No `=`, an unknown key, or a value that its key does not allow.
    """
    values: dict[str, Value] = {}
    for text in overrides:
        name, equals, value = text.partition("=")
        if not equals:
            raise UsageError(f"-c {text}: expected key=value.", hint="hl -c round.proposals=4 COMMAND")
        key = find_key(name.strip(), "-c")
        values[key.name] = parse(key, value, "-c")
    return values


def _profile(name: str) -> Mapping[str, Value]:
    if name not in PROFILES:
        raise UsageError(f"--profile {name}: there is no such profile; there is {', '.join(PROFILES)}.")
    return {key: check(KEYS[key], value, f"profile {name}") for key, value in PROFILES[name].items()}


def _section(section: str, values: Mapping[str, Value]) -> dict[str, Any]:
    return {KEYS[name].field: value for name, value in values.items() if KEYS[name].section == section}


def _cross_check(config: Config) -> None:
    """Rules that hold between keys."""

    def where(name: str) -> str:
        return str(config.origins[name])

    if config.harness.entry not in config.harness.files:
        raise UsageError(
            f"{where('harness.entry')}: harness.entry = {show(config.harness.entry)} is not one of "
            f"harness.files = {show(config.harness.files)}.",
            hint="hl config get harness.files",
        )
    if config.solver.temperature > config.solver.temperature_max:
        raise UsageError(
            f"{where('solver.temperature')}: solver.temperature = {config.solver.temperature:g} lies above "
            f"solver.temperature_max = {config.solver.temperature_max:g}.",
            hint="hl config get solver.temperature_max",
        )
    for name, model in (("solver", config.solver), ("proposer", config.proposer)):
        if model.max_tokens >= model.context_tokens:
            raise UsageError(
                f"{where(name + '.max_tokens')}: {name}.max_tokens = {model.max_tokens} leaves no room in "
                f"{name}.context_tokens = {model.context_tokens}.",
                hint=f"hl config get {name}.context_tokens",
            )
