"""Configuration -> what decides a score, before anything runs: the solver's settings, the limits, the engine, identity.

`Workspace` builds its rooms from these; a benchmark compares them with those that a run began with. Starts nothing.
"""

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING

from hl.config import Config
from hl.config.sections import ModelConfig
from hl.evaluate import identity_of, rules_of
from hl.sandbox.host import Limits
from hl.solver import SolverSettings, solver_digest
from hl.tasks.base import selected_grade
from hl.types import Engine

if TYPE_CHECKING:
    from hl.tasks.questions import Manifest


def solver_settings(config: Config) -> SolverSettings:
    """What a harness may ask of the solver."""
    a, s = config.attempt, config.solver
    return SolverSettings(s.temperature, s.temperature_max, s.max_tokens, a.calls, a.tokens)


def limits(config: Config) -> Limits:
    """The `[attempt]` section, as the sandbox takes it."""
    a = config.attempt
    return Limits(wall_s=a.wall_s, cpu_s=a.cpu_s, memory_mb=a.memory_mb)


def open_model(config: ModelConfig, root: Path) -> Engine:
    """The engine of the `[solver]` or `[proposer]` section; no weights are loaded and nothing is connected.

    Args:
        config: The section.
        root: Where a relative path starts.

    Raises:
        UsageError: The section names no model that there is.
        EngineError: Its weights are not here.
    """
    from hl.engines.base import EngineSpec, open_engine

    path = str(root / Path(config.path).expanduser()) if config.path else ""
    adapter = str(root / Path(config.adapter).expanduser()) if config.adapter else ""
    return open_engine(
        EngineSpec(
            engine=config.engine,
            model=config.model,
            base_url=config.base_url,
            api_key_env=config.api_key_env,
            path=path,
            adapter=adapter,
            threads=config.threads,
            slots=config.slots,
            context_tokens=config.context_tokens,
            deterministic=config.deterministic,
            concurrency=config.concurrency,
            timeout_s=config.timeout_s,
            retries=config.retries,
            price_in=config.price_in,
            price_out=config.price_out,
            extra_body=config.extra_body,
            chat_template_kwargs=config.chat_template_kwargs,
        )
    )


def task_digest(manifest: "Manifest") -> str:
    """What decides a grade beside question and answer: family, parameters, grader; not where a file lies."""
    parts = (manifest.family, manifest.spec.params, manifest.spec.version, manifest.files)
    return hashlib.sha256(repr(parts).encode()).hexdigest()


def evaluator_identity(config: Config, engine: str, manifest: "Manifest", *, unsafe: bool) -> str:
    """What `Evaluator.identity` will be.

    Args:
        config: Of the repository.
        engine: The solver engine's digest.
        manifest: Of the question sets.
        unsafe: Whether harnesses will run unconfined.
    """
    rules = rules_of(
        task_digest(manifest), limits(config), unsafe=unsafe, call=config.attempt.require_model_call
    )
    mode = selected_grade(config.task.name, config.task.grade)
    return identity_of(solver_digest(engine, solver_settings(config)), rules, mode)
