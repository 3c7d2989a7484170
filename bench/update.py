"""One update of GRPO in its parts: a random model writes edits, candidates run in the sandbox, a script answers them.

The model is the one of the tests: words of its vocabulary are whole edits, so that replies differ and some apply. It is
as small as models get: generation and update show what goes with a model of any size, and next to no model's time.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from training import record
from training.settings import load_settings

CONTEXTS, GENERATIONS, QUESTIONS, UPDATES = 4, 8, 16, 3
"""Contexts an update, replies a context, questions of a scoring block, and updates, of which the first is left out."""
DELAY_S = 0.05
"""Of a call of the solver."""
PARTS = ("contexts", "generation", "reward", "update")
"""As in `metrics.jsonl`."""
LINES = (
    'INSTRUCTION = "Give your final answer between <answer> and </answer>."',
    r'    return model(question + "\n\n" + INSTRUCTION)',
    "    return extract(ask(model, question))",
)
"""Of the seed `minimal`: one edit changes one of them."""
CHANGED = (
    'INSTRUCTION = "Put nothing but the answer between <answer> and </answer>."',
    r'    return model("Think first. " + question + "\n\n" + INSTRUCTION)',
    "    return extract(ask(model, question)).rstrip('.')",
)


def run(folder: Path) -> tuple[Mapping[str, float], Mapping[str, Any]]:
    """Train for a few updates.

    Args:
        folder: Empty.

    Returns:
        Mean seconds of each part of an update after the first, and the figures of the last one.

    Raises:
        MissingExtraError: torch and its company are not installed.
    """
    from training.models import need_torch

    need_torch()
    from tests.training.tiny import write_tiny
    from training.grpo import train

    edits = [
        f"Edit {n}\n\n<<<<<<< SEARCH\n{old}\n=======\n{new}\n>>>>>>> REPLACE\n"
        for n, (old, new) in enumerate(zip(LINES, CHANGED, strict=True))
    ]
    script = folder / "solver.json"
    rule = {"when": "", "replies": ["<answer>42</answer>"], "delay_s": DELAY_S}
    script.write_text(json.dumps({"rules": [rule]}), encoding="utf-8")
    settings = load_settings(
        None,
        [
            "solver.engine=scripted",
            f"solver.path={script}",
            f"model.base={write_tiny(folder / 'model', [*edits, 'So much. '])}",
            "model.prompt=brief",
            "model.context_tokens=2048",
            "model.reply_tokens=16",
            "model.lora_rank=4",
            "tasks.track=tiny",
            "tasks.rl=number_filtering",
            "tasks.feedback=4",
            f"tasks.scoring={QUESTIONS}",
            f"grpo.contexts={CONTEXTS * UPDATES}",
            f"grpo.contexts_per_update={CONTEXTS}",
            f"grpo.generations={GENERATIONS}",
            "grpo.micro_batch=8",
        ],
    )
    train(settings, folder / "run", command="python -m bench update")
    lines = record.load_metrics(folder / "run")
    steady = [line["seconds"] for line in lines[1:]]
    return {part: sum(s[part] for s in steady) / len(steady) for part in PARTS}, lines[-1]
