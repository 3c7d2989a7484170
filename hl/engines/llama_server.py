"""xllamacpp's server, wrapped: one loaded GGUF, blocking calls, no printing.

Promises plain values instead of chunks and three kinds of exception, and that llama.cpp's own localhost port
answers nobody without the key that only this process knows. Does not know about threads or event loops:
`hl.engines.llamacpp` calls it from its slots.
"""

import http.client
import json
import os
import secrets
import subprocess
import sys
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hl.errors import EngineError


@dataclass(slots=True)
class Completion:
    """What came out of one request, gathered from its stream."""

    parts: list[str] = field(default_factory=list[str])
    """Pieces of the reply."""
    finish: str = "stop"
    """`stop` or `length`."""
    prompt_tokens: int = 0
    """Of the whole prompt, whether or not it was read before."""
    completion_tokens: int = 0
    """Of the reply."""
    code: int = 0
    """HTTP-like status of a failure, 0 if there was none."""
    error: str = ""
    """What llama.cpp said."""
    overflow: bool = False
    """The prompt is longer than the context."""

    @property
    def text(self) -> str:
        """The reply."""
        return "".join(self.parts)

    def add(self, chunk: Mapping[str, Any]) -> None:
        """Take in one chunk of the stream."""
        if error := chunk.get("error"):
            self.code = int(error.get("code", 500))
            self.error = str(error.get("message", error))
            self.overflow = error.get("type") == "exceed_context_size_error"
            if self.overflow:
                self.finish = "length"
                self.prompt_tokens = int(error.get("n_prompt_tokens", 0))
            return
        if usage := chunk.get("usage"):
            self.prompt_tokens = int(usage["prompt_tokens"])
            self.completion_tokens = int(usage["completion_tokens"])
        for choice in chunk.get("choices", ()):
            self.parts.append(choice["delta"].get("content") or "")
            if choice.get("finish_reason"):
                self.finish = "length" if choice["finish_reason"] == "length" else "stop"


class LlamaServer:
    """A loaded model. Dropping the last reference frees it."""

    def __init__(self, path: Path, *, slots: int, threads: int, context_tokens: int) -> None:
        """Load a model; takes a second for a small one.

        Raises:
            EngineError: llama.cpp refuses the file.
        """
        library = _load_library()
        self._key = secrets.token_hex(16)
        params = library.CommonParams()
        params.model.path = str(path)
        params.n_parallel = slots
        params.n_ctx = slots * context_tokens
        params.cpuparams.n_threads = params.cpuparams_batch.n_threads = threads
        # Measured: without busy waiting and without repacked weights, decoding rises from 67 to 100 tokens a
        # second.
        params.cpuparams.poll = params.cpuparams_batch.poll = 0
        params.no_extra_bufts = True
        params.warmup = False
        params.verbosity = 0
        params.cache_ram_mib = 0  # the snapshots of hl.engines.slots take its place
        params.port = 0
        params.api_keys = [self._key]
        params.slot_save_path = "/proc/self/fd/"  # snapshots are memory files, named by descriptor
        try:
            self._server = library.Server(params)
        except (RuntimeError, ValueError) as error:
            raise EngineError(f"llama.cpp cannot load {path}: {_load_reason(path) or error}") from error

    @property
    def address(self) -> str:
        """Host and port."""
        return str(self._server.listening_address).rpartition("/")[2]

    def complete(self, body: Mapping[str, Any], cancelled: threading.Event) -> Completion:
        """Run a streamed chat completion; stops at the next token once `cancelled` is set."""
        done = Completion()

        def on_chunk(chunk: Mapping[str, Any]) -> bool:
            done.add(chunk)
            return cancelled.is_set()

        try:
            self._server.handle_chat_completions(body, on_chunk)
        except (ValueError, RuntimeError) as error:
            done.code, done.error = 400, str(error)
        return done

    def slot_action(self, slot: int, action: str, handle: int) -> bool:
        """Save or restore a slot's state; says whether it worked. A failure costs time and changes nothing
        else."""
        connection = http.client.HTTPConnection(self.address, timeout=60)
        try:
            connection.request(
                "POST",
                f"/slots/{slot}?action={action}",
                json.dumps({"filename": str(handle)}),
                {"Authorization": f"Bearer {self._key}", "Content-Type": "application/json"},
            )
            response = connection.getresponse()
            response.read()
            return response.status == 200
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()


def _load_library() -> Any:
    """Import xllamacpp with OpenMP threads that sleep while they wait for each other.

    They spin by default. As soon as anything else wants a core (and harnesses do), each step then waits for
    a thread that is not scheduled: measured on two busy cores, 5 to 30 tokens a second instead of 32. OpenMP
    reads the variable once, when it is loaded.
    """
    variable = "OMP_WAIT_POLICY"
    ours = variable not in os.environ
    if ours:
        os.environ[variable] = "passive"
    try:
        import xllamacpp
    finally:
        if ours:
            os.environ.pop(variable, None)
    return xllamacpp


def _load_reason(path: Path) -> str:
    """Why llama.cpp refuses a file. It says so on stderr only, so a child that may talk tries it again."""
    program = (
        "import sys, xllamacpp as x\np = x.CommonParams()\np.model.path = sys.argv[1]\np.n_ctx = 64\n"
        "p.verbosity = 1\np.warmup = False\np.port = 0\nx.Server(p)\n"
    )
    try:
        child = subprocess.run(
            [sys.executable, "-P", "-c", program, str(path)], capture_output=True, timeout=60, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    lines = child.stderr.decode("utf-8", "replace").splitlines()
    reasons = [line.partition(" E ")[2].partition(": ")[2] for line in lines if " E " in line]
    return next((r for r in reasons if "failed to load" not in r), reasons[0] if reasons else "")
