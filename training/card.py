"""The model card of an adapter: how it was made, with every setting, and what came of it."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hl.config.trust import write_file

TITLES = {"sft": "Supervised fine-tuning on a teacher's revisions", "grpo": "GRPO on the execution score"}
SHOWN = (
    ("loss", "loss"),
    ("eval_loss", "loss on validation families"),
    ("reward", "reward"),
    ("rewards/J/mean", "J, mean grade of the candidates"),
    ("hl/parent", "mean grade of the parents"),
    ("rewards/parse/mean", "replies whose blocks parse"),
    ("rewards/build/mean", "candidates that build"),
    ("rewards/complete/mean", "attempts that completed"),
    ("hl/zero_variance", "groups without a signal"),
    ("entropy", "entropy"),
    ("kl", "KL to where it began"),
    ("completions/mean_length", "tokens a reply"),
)


def write(adapter: Path, manifest: Mapping[str, Any], lines: Sequence[Mapping[str, Any]]) -> None:
    """Write `README.md` beside an adapter's weights.

    Args:
        adapter: Its folder.
        manifest: Of the run.
        lines: Of `metrics.jsonl`.
    """
    write_file(adapter / "README.md", render(manifest, lines))


def render(manifest: Mapping[str, Any], lines: Sequence[Mapping[str, Any]]) -> str:
    """The card as text."""
    base = manifest["settings"]["model"]["base"]
    parts = [
        "---",
        f"base_model: {json.dumps(base)}",
        "library_name: peft",
        "tags: [harness-learning, lora]",
        "---",
        "",
        "# A proposer of harness edits",
        "",
        f"{TITLES[manifest['kind']]}: a LoRA adapter for `{base}`, made by hl {manifest['versions']['hl']}.",
        "It is asked as `hl revise` asks a proposer, with the prompt settings below.",
        "",
        "| figure | first | last |",
        "|---|---|---|",
        *_figures(lines),
        "",
        "```sh",
        manifest["command"],
        "```",
        "",
        "```json",
        json.dumps({k: v for k, v in manifest.items() if k != "command"}, indent=1, sort_keys=True),
        "```",
        "",
    ]
    return "\n".join(parts)


def _figures(lines: Sequence[Mapping[str, Any]]) -> list[str]:
    rows: list[str] = []
    for key, title in SHOWN:
        values = [line[key] for line in lines if isinstance(line.get(key), (int, float))]
        if values:
            rows.append(f"| {title} | {values[0]:.4g} | {values[-1]:.4g} |")
    return rows
