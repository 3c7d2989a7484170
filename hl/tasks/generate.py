"""Makes reasoning-gym questions. Runs as a program of its own, with PYTHONHASHSEED fixed: five families depend on it.

Reads one JSON request on stdin, writes JSON lines on stdout: `usage` (a parameter is wrong), `item` (a question),
`done` (the counts) or `failed`. Every question that it hands out is new by content across all sets, and its own gold
answer grades 1.0 by the rule that will grade harnesses; what does not is dropped and counted. It decides nothing about
how a small family is shared out: the caller does.
"""

import contextlib
import json
import os
import random
import signal
import sys
import types
from collections.abc import Callable, Generator, Iterator
from typing import Any, TextIO

from hl.tasks import confined
from hl.tasks.codec import encode
from hl.tasks.identity import question_id
from hl.tasks.parameters import ParameterError, typed_params

CHUNK = 2000
"""Data set size of one seed; several families make all of it at once, and `word_ladder` refuses more than 20,000."""
BLOCK = 100_000
"""Seeds of one role: reasoning-gym draws item i from seed + i, so blocks this far apart never share an item."""
BASE_SEED = 10_000_000
ERRORS_IN_A_ROW = 50
HOPELESS = 500
"""Questions without a usable answer after which the parameters are at fault, if hardly any others came."""
ITEM_S = 10.0
"""Processor time for one question: `number_sequence` searches for ever from some seeds. Such a question is left out."""
EXAMPLES = ("example_answer", "possible_answer", "example_correct_answer")
"""Where families without a gold answer keep one that is right."""


def usable(family: str, params: str, item: dict[str, Any]) -> bool:
    """Whether the question has an answer that the grader takes: several families give some that have none."""
    metadata = item["metadata"]
    if family == "codeio" and not metadata["input_data"] and not metadata["output_data"]:
        return False
    answer = item["answer"]
    if answer is None:
        answer = next((metadata[key] for key in EXAMPLES if metadata.get(key)), None)
        if answer is None:
            return True
        answer = answer if isinstance(answer, str) else json.dumps(answer)
    answer = str(answer).strip()
    return bool(answer) and confined.score(family, params, json.dumps(encode(item)), answer) >= 0.999


@contextlib.contextmanager
def limited(seconds: float) -> Generator[None]:
    """TimeoutError in the body once it has used that much processor time."""

    def stop(signum: int, frame: object) -> None:
        raise TimeoutError(f"no question after {seconds:g} s")

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


class Draw:
    """Draws questions of one family, one role's seed block after the other."""

    def __init__(self, family: str, params: dict[str, str]) -> None:
        from reasoning_gym.factory import DATASETS

        self.family = family
        self.cls, self.config_cls = DATASETS[family]
        self.params = typed_params(family, self.config_cls, params)
        self.written = json.dumps(params, sort_keys=True)
        self.seen: set[str] = set()
        self.drawn = self.dropped = 0
        self.exhausted = False

    def items(self, block: int) -> Iterator[dict[str, Any]]:
        """New, usable questions of one seed block, until it or the family runs out."""
        repeats = failures = 0
        for offset in range(0, BLOCK, CHUNK):
            seed = BASE_SEED + block * BLOCK + offset
            data = self.cls(self.config_cls(**self.params, seed=seed, size=CHUNK))
            for index in range(CHUNK):
                random.seed(seed + index)  # for generators that draw from the global state
                self.drawn += 1
                try:
                    with limited(ITEM_S):
                        item = data[index]
                except Exception as error:
                    failures += 1
                    if failures >= ERRORS_IN_A_ROW:
                        raise RuntimeError(f"{type(error).__name__}: {error}") from error
                    continue
                failures = 0
                key = question_id(f"reasoning-gym:{self.family}", item["question"])
                if key in self.seen:
                    repeats += 1
                    if repeats >= min(2000, max(100, 3 * len(self.seen))):
                        self.exhausted = True
                        return
                    continue
                repeats = 0
                self.seen.add(key)
                if not usable(self.family, self.written, item):
                    self.dropped += 1
                    if self.dropped >= HOPELESS and self.dropped * 20 > len(self.seen) * 19:
                        raise RuntimeError(
                            f"{self.dropped} of {len(self.seen)} questions have no answer that grades 1"
                        )
                    continue
                answer = item["answer"]
                yield {
                    "id": key,
                    "question": item["question"],
                    "answer": None if answer is None else str(answer),
                    "entry": encode({"answer": answer, "metadata": item["metadata"]}),
                }


def serve(request: dict[str, Any], write: Callable[[dict[str, Any]], None]) -> None:
    """Answer one request."""
    from reasoning_gym.factory import DATASETS

    family = request["family"]
    config_cls = DATASETS[family][1]
    try:
        params = typed_params(family, config_cls, request["params"])
        config = config_cls(**params, seed=0, size=CHUNK)
        if hasattr(config, "validate"):
            config.validate()
    except ParameterError as error:
        return write({"usage": str(error)})
    except (AssertionError, ValueError, TypeError) as error:
        return write({"usage": f"{family} does not take these parameters: {error or 'out of range'}"})
    draw = Draw(family, request["params"])
    for role, block, size in request["roles"]:
        for _, item in zip(range(size), draw.items(block), strict=False):
            write({"role": role, "item": item})
        if draw.exhausted:
            break
    write(
        {
            "done": {
                "drawn": draw.drawn,
                "dropped": draw.dropped,
                "exhausted": draw.exhausted,
                "distinct": len(draw.seen) - draw.dropped,
            }
        }
    )


def skip_plots() -> None:
    """Stand in for matplotlib, which cellpylib imports for plots that nobody draws: half of the start."""
    for name in (
        "matplotlib.pyplot",
        "matplotlib.animation",
        "matplotlib.collections",
        "mpl_toolkits.mplot3d",
    ):
        parent, _, last = name.partition(".")
        stub = sys.modules[name] = types.ModuleType(name)
        setattr(sys.modules.setdefault(parent, types.ModuleType(parent)), last, stub)
    sys.modules["mpl_toolkits.mplot3d"].Axes3D = None  # pyright: ignore[reportAttributeAccessIssue]


def main() -> None:
    """Keep stdout for the protocol: some generators print."""
    skip_plots()
    out: TextIO = os.fdopen(os.dup(1), "w", encoding="utf-8", errors="surrogatepass")
    os.dup2(2, 1)
    sys.stdout = sys.stderr

    def write(message: dict[str, Any]) -> None:
        out.write(json.dumps(message) + "\n")
        out.flush()

    try:
        serve(json.load(sys.stdin), write)
    except Exception as error:
        write({"failed": f"{type(error).__name__}: {error}"})
    out.close()
