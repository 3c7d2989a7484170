"""What the tests check on a CPU, once more on a GPU: engines, adapters, one update of GRPO. A few minutes, one GPU.

    python scripts/gpu_check.py [--cpu]

Makes a small random model on the spot, so it needs no download. Without a GPU it says so and exits 0; `--cpu` runs
what can be run there anyway. What this machine lacks (vLLM, a sandbox) is skipped with its reason; exits 1 if
anything failed.
"""

import argparse
import asyncio
import importlib.util
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
LIMIT_S = 480
TOLERANCE = 0.03
"""Mean absolute difference of log-probabilities that two ways to compute them may have."""
GRPO = """\
[model]
base = "{base}"
adapter = "{adapter}"
prompt = "brief"
lora_rank = 4
context_tokens = 8192
reply_tokens = 64

[tasks]
rl = ["qa:tiny"]
feedback = 2
scoring = 4

[grpo]
contexts = 1
contexts_per_update = 1
generations = 4
learning_rate = 1e-3

[hl.solver]
engine = "scripted"
model = "reader"
"""


class Skipped(Exception):
    """This machine lacks what a step needs."""


def replies(spec, count: int) -> list[str]:
    """Texts of one engine for one prompt under several seeds, the first at temperature 0."""
    from hl.engines.base import open_engine
    from hl.types import ChatRequest, Message

    async def ask() -> list[str]:
        engine = open_engine(spec)
        try:
            requests = [
                ChatRequest((Message("user", "Revise this."),), 32, 1.0 if i else 0.0, (), i)
                for i in range(count)
            ]
            return [r.text for r in await asyncio.gather(*(engine.chat(r) for r in requests))]
        finally:
            await engine.aclose()

    return asyncio.run(ask())


def check_log_probs(base: Path, adapter: Path, device: str) -> str:
    """An adapter changes log-probabilities, taking it off restores them, and the device agrees with the CPU."""
    from hl.engines.hf import load_model, reply_log_probs

    prompt, reply = list(range(10, 60)), list(range(60, 90))
    model, _ = load_model(str(base), device=device)
    plain = reply_log_probs(model, prompt, reply)
    tuned, _ = load_model(str(base), str(adapter), device=device)
    changed = distance(plain, reply_log_probs(tuned, prompt, reply))
    restored = distance(plain, reply_log_probs(tuned.unload(), prompt, reply))
    untouched = distance(plain, reply_log_probs(model, prompt, reply))
    model, _ = load_model(str(base), device="cpu")
    apart = distance(plain, reply_log_probs(model, prompt, reply))
    assert changed > TOLERANCE, f"the adapter changes log-probabilities by {changed:.4f} only"
    assert restored == untouched == 0, f"the base moved by {restored:g} and {untouched:g}"
    assert apart < TOLERANCE, f"{device} and CPU differ by {apart:.4f}"
    return f"adapter {changed:.3f}, base after it {restored:g}, {device} from CPU {apart:.1e}"


def check_engine(engine: str, base: Path, adapter: Path) -> str:
    """Eight replies to one prompt, with and without the adapter."""
    from hl.engines.base import EngineSpec

    if engine == "vllm" and importlib.util.find_spec("vllm") is None:
        raise Skipped("vLLM is not installed: pip install 'harness-learning[vllm]'")
    spec = EngineSpec(engine, path=str(base), context_tokens=2048, slots=8)
    tuned = EngineSpec(engine, path=str(base), adapter=str(adapter), context_tokens=2048, slots=8)
    start = time.monotonic()
    first, changed = replies(spec, 8), replies(tuned, 8)
    assert len(set(first)) > 1, "eight seeds gave one reply"
    assert first[0] == replies(spec, 1)[0], "the reply at temperature 0 depends on its neighbours"
    assert first[0] != changed[0], "the adapter changes no reply"
    return f"{time.monotonic() - start:.1f} s"


def check_grpo(base: Path, adapter: Path, home: Path) -> str:
    """One update by its own command; what comes out is an adapter that loads."""
    from hl.engines.adapters import read_adapter

    config = home / "grpo.toml"
    config.write_text(GRPO.format(base=base, adapter=adapter))
    out = home / "grpo"
    command = [sys.executable, "-m", "hl.cli", "train", "grpo", str(config), "--out", str(out)]
    start = time.monotonic()
    done = subprocess.run(
        command, env=os.environ | {"PYTHONPATH": str(ROOT)}, cwd=home, capture_output=True, text=True
    )
    if done.returncode == 6:
        raise Skipped(f"no sandbox: {done.stderr.strip().splitlines()[-1]}")
    assert done.returncode == 0, f"exit code {done.returncode}: {done.stderr.strip()[-2000:]}"
    trained = read_adapter(out / "adapter")
    assert trained.digest != read_adapter(adapter).digest, "the update changed nothing"
    return f"{time.monotonic() - start:.1f} s, {trained.label}"


def distance(a: list[float], b: list[float]) -> float:
    """Mean absolute difference."""
    return sum(abs(x - y) for x, y in zip(a, b, strict=True)) / len(a)


def main() -> int:
    """Run the steps; prints a line for each."""
    parser = argparse.ArgumentParser(description="Check engines and training on one GPU.")
    parser.add_argument("--cpu", action="store_true", help="run on the CPU where there is no GPU")
    options = parser.parse_args()
    if importlib.util.find_spec("torch") is None:
        print("gpu-check: skipped, torch is not installed: pip install 'harness-learning[train]'")
        return 0
    import torch
    from transformers.utils import logging

    logging.disable_progress_bar()
    logging.set_verbosity_error()
    gpu = torch.cuda.is_available()
    if not gpu and not options.cpu:
        print("gpu-check: skipped, there is no GPU here")
        return 0
    print(
        f"gpu-check: {torch.cuda.get_device_name() if gpu else 'CPU'}, torch {torch.__version__}", flush=True
    )

    def out_of_time(number: int, frame: FrameType | None) -> None:
        raise TimeoutError(f"not done within {LIMIT_S} s")

    signal.signal(signal.SIGALRM, out_of_time)
    signal.alarm(LIMIT_S)
    from scripts.tiny_model import write_adapter, write_tiny

    failed = 0
    with tempfile.TemporaryDirectory(prefix="hl-gpu-check-") as scratch:
        home = Path(scratch)
        base = write_tiny(home / "tiny", layers=4, width=256)
        adapter = write_adapter(base, home / "adapter", scale=0.1)
        device = "cuda" if gpu else "cpu"
        steps: list[tuple[str, Callable[[], str]]] = [
            ("log-probabilities", lambda: check_log_probs(base, adapter, device)),
            ("engine hf", lambda: check_engine("hf", base, adapter)),
            ("engine vllm", lambda: check_engine("vllm", base, adapter)),
            ("one update of GRPO", lambda: check_grpo(base, adapter, home)),
        ]
        for name, step in steps:
            try:
                state, detail = "ok", step()
            except Skipped as reason:
                state, detail = "skipped", str(reason)
            except Exception as error:
                state, detail, failed = "FAILED", f"{type(error).__name__}: {error}", failed + 1
            print(f"{state:8}{name:20}{detail}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
