"""What the tests of remote engines share: a served script in a process of its own."""

import json
import subprocess
import sys
from pathlib import Path

from hl.engines.base import EngineSpec
from hl.engines.openai import OpenAIEngine
from hl.types import ChatRequest, Message

RULES = {
    "rules": [
        {"when": {"regex": "question \\d+"}, "replies": ["yes it is", "no it is not", "perhaps so"]},
        {"when": "slow", "replies": ["late"], "delay_s": 30},
    ],
    "default": "nothing",
}


class Served:
    """`python -m hl.engines.scripted --serve` with some arguments; a context manager."""

    def __init__(self, folder: Path, *arguments: str, rules=None) -> None:
        path = folder / "rules.json"
        path.write_text(json.dumps(rules or RULES))
        command = [
            sys.executable,
            "-m",
            "hl.engines.scripted",
            "--serve",
            str(path),
            "--port",
            "0",
            *arguments,
        ]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        self.url = self.process.stdout.readline().strip()

    def __enter__(self):
        assert self.url.startswith("http://127.0.0.1:"), self.process.communicate()
        return self

    def __exit__(self, *unused):
        self.process.terminate()
        self.said = self.process.communicate(timeout=60)
        assert self.process.returncode == 0, self.said


def engine(url: str, **fields) -> OpenAIEngine:
    """An engine whose waits are short."""
    values = {"model": "scripted", "timeout_s": 20.0, "retries": 6, "concurrency": 8} | fields
    return OpenAIEngine(EngineSpec("openai", base_url=url, **values), first_backoff_s=0.02)


def ask(text: str, *, seed=0, max_tokens=50, stop=()) -> ChatRequest:
    """A question without history."""
    return ChatRequest((Message("user", text),), max_tokens, 0.0, stop, seed)
