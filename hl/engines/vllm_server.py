"""`vllm serve` as `hl model serve` runs it: what is served -> commands, environments, and lines for `hl.toml`. Pure.

Flags are those of vLLM 0.30. One process a replica, each with GPUs of its own: a dense model gains nothing from data
parallelism inside one server.
"""

import json
import re
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from hl.engines.adapter_names import is_mounted, mount
from hl.engines.adapters import Adapter, read_adapter, refuse_other_base
from hl.engines.base import short_name
from hl.engines.bases import architectures
from hl.engines.supervise import Program
from hl.engines.vllm import room_for_rank
from hl.errors import MissingExtraError, UsageError

SPARE_ADAPTERS = 2
"""Places for adapters that clients load while others are in use."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


@dataclass(frozen=True, slots=True)
class ServerPlan:
    """What is served, and on what."""

    base: str
    """A folder, a known model's name, or a hub id."""
    adapters: tuple[tuple[str, Adapter], ...] = ()
    """Name that requests use as `model` -> adapter."""
    replicas: int = 1
    """Processes, each with the whole model."""
    port: int = 8000
    """Of the first; the others follow."""
    gpus: int = 1
    """GPUs of one replica (tensor parallelism)."""
    gpu_memory: float = 0.9
    """Share of each GPU's memory that vLLM may take."""
    context_tokens: int = 0
    """Prompt and reply together; 0 for what the model was made for."""
    updates: bool = False
    """Whether clients may load and unload adapters, which training does."""
    rank: int = 0
    """Largest rank of adapters that clients load."""
    more: tuple[str, ...] = ()
    """Further arguments of `vllm serve`, as they are."""

    @property
    def served_name(self) -> str:
        """What requests to the base say as `model`."""
        return (
            self.base if self.base.count("/") == 1 and not Path(self.base).is_dir() else short_name(self.base)
        )


def parse_adapters(texts: tuple[str, ...], base: str) -> tuple[tuple[str, Adapter], ...]:
    """Read `NAME=DIR` texts.

    Raises:
        UsageError: No `=`, a name that is none, or one twice.
        EngineError: A folder is no adapter, or its adapter is for another base.
    """
    found: dict[str, Adapter] = {}
    for text in texts:
        name, equals, folder = text.partition("=")
        if not equals or not _NAME.fullmatch(name) or name in found:
            raise UsageError(
                f"--adapter {text}: expected NAME=DIR, each name once.", hint="--adapter sft=runs/sft/adapter"
            )
        found[name] = read_adapter(folder)
        refuse_other_base(found[name], base)
    return tuple(found.items())


def mounted(plan: ServerPlan, folder: Path) -> ServerPlan:
    """The same with adapters under the names that vLLM knows their weights by.

    Args:
        plan: What is served.
        folder: For copies of adapters that have to be renamed; each in a folder of its name.

    Raises:
        EngineError: The base's configuration cannot be read.
    """
    if not plan.adapters or not is_mounted(architectures(plan.base)):
        return plan
    moved = tuple((name, replace(a, path=mount(a, folder / name))) for name, a in plan.adapters)
    return replace(plan, adapters=moved)


def find_program() -> str:
    """The `vllm` program of this environment, or else of the PATH.

    Raises:
        MissingExtraError: There is none.
    """
    beside = Path(sys.executable).with_name("vllm")
    found = str(beside) if beside.is_file() else shutil.which("vllm")
    if found is None:
        raise MissingExtraError("vllm is not installed", hint="pip install 'harness-learning[vllm]'")
    return found


def server_arguments(plan: ServerPlan, folder: str, replica: int) -> list[str]:
    """Arguments of `vllm` for one replica.

    Args:
        plan: What is served.
        folder: The base's folder or hub id, as `hl.engines.bases.model_folder` gives it.
        replica: 0 and up.
    """
    arguments = [
        *("serve", folder),
        *("--served-model-name", plan.served_name),
        *("--host", "127.0.0.1"),
        *("--port", str(plan.port + replica)),
        *("--tensor-parallel-size", str(plan.gpus)),
        *("--gpu-memory-utilization", f"{plan.gpu_memory:g}"),
        *("--load-format", "safetensors"),
        *("--generation-config", "vllm"),
        # What is sampled from: temperature and the like included. The training compares these with its own.
        *("--logprobs-mode", "processed_logprobs"),
    ]
    if plan.context_tokens:
        arguments += ["--max-model-len", str(plan.context_tokens)]
    if plan.adapters or plan.updates:
        rank = max([plan.rank, 1, *(adapter.rank for _, adapter in plan.adapters)])
        places = len(plan.adapters) + (SPARE_ADAPTERS if plan.updates else 0)
        arguments += [
            "--enable-lora",
            "--max-lora-rank",
            str(room_for_rank(rank)),
            "--max-loras",
            str(places),
        ]
    if plan.adapters:
        # As JSON, which any path survives.
        arguments += ["--lora-modules"]
        arguments += [json.dumps({"name": name, "path": str(a.path)}) for name, a in plan.adapters]
    return [*arguments, *plan.more]


def server_environment(plan: ServerPlan, replica: int, visible: str = "") -> Mapping[str, str]:
    """What one replica's environment has besides ours.

    Args:
        plan: What is served.
        replica: 0 and up.
        visible: `CUDA_VISIBLE_DEVICES` as it is; replicas share these GPUs out in order.

    Raises:
        UsageError: There are not enough.
    """
    environment = {"VLLM_NO_USAGE_STATS": "1"}
    if plan.updates:
        environment["VLLM_ALLOW_RUNTIME_LORA_UPDATING"] = "1"
    if plan.replicas > 1:
        wanted = plan.replicas * plan.gpus
        ids = [i.strip() for i in visible.split(",")] if visible.strip() else [str(i) for i in range(wanted)]
        if len(ids) < wanted:
            raise UsageError(
                f"{plan.replicas} replicas with {plan.gpus} GPUs each need {wanted}, and "
                f"CUDA_VISIBLE_DEVICES names {len(ids)}."
            )
        mine = ids[replica * plan.gpus : (replica + 1) * plan.gpus]
        environment["CUDA_VISIBLE_DEVICES"] = ",".join(mine)
    return environment


def server_programs(plan: ServerPlan, program: str, folder: str, visible: str = "") -> tuple[Program, ...]:
    """The processes to run, in the order of their ports."""
    names = (plan.served_name, *(name for name, _ in plan.adapters))
    return tuple(
        Program(
            (program, *server_arguments(plan, folder, replica)),
            server_environment(plan, replica, visible),
            f"http://127.0.0.1:{plan.port + replica}",
            names,
        )
        for replica in range(plan.replicas)
    )


def render_config(plan: ServerPlan, urls: tuple[str, ...]) -> str:
    """Lines for `hl.toml`: the base as solver, the last adapter, or else the base, as proposer."""
    others = "".join(f"# the same at {url}\n" for url in urls[1:])
    name, adapter = plan.adapters[-1] if plan.adapters else (plan.served_name, None)
    lines = f'engine = "openai"\nmodel = {json.dumps(plan.served_name)}\nbase_url = "{urls[0]}"\n'
    text = f"{others}[solver]\n{lines}\n[proposer]\n"
    text += lines.replace(json.dumps(plan.served_name), json.dumps(name))
    if adapter is not None:
        text += f"adapter = {json.dumps(str(adapter.path))}\n"
    return text
