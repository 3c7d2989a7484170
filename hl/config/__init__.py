"""Configuration: `hl.toml`, the user's own file and the command line -> one frozen `Config`.

`load_config` is the way in. The table of keys is in `sections`; what a value must be in `keys`; precedence
in `load`; when a repository's guarded keys count in `trust`; changing files in `edit`, which imports
tomlkit only when called.
"""

from hl.config.keys import KEYS, Key, Value
from hl.config.load import FILE, Config, Origin, config_dir, load_config, user_file
from hl.config.sections import (
    PROFILES,
    AttemptConfig,
    HarnessConfig,
    ModelConfig,
    ProposerConfig,
    ReportConfig,
    RoundConfig,
    SolverConfig,
    TaskConfig,
)

__all__ = [
    "FILE",
    "KEYS",
    "PROFILES",
    "AttemptConfig",
    "Config",
    "HarnessConfig",
    "Key",
    "ModelConfig",
    "Origin",
    "ProposerConfig",
    "ReportConfig",
    "RoundConfig",
    "SolverConfig",
    "TaskConfig",
    "Value",
    "config_dir",
    "load_config",
    "user_file",
]
