"""Measure every family of reasoning-gym and write hl/tasks/catalogue.json: size, speed and the score of a constant.

python scripts/measure_families.py                  every family, about ten minutes on two cores
python scripts/measure_families.py gcd maze         these, the others kept as they are

One process a family, with a fixed PYTHONHASHSEED and a time limit; questions come from a seed block that no question
set uses. Half of the questions give the constants (their own most frequent answers, beside STOCK), the other half
grades them, so that an answer does not find itself. Counts and floors repeat exactly where the time limits do not
bite; speeds are those of one machine and are rounded.
"""

import asyncio
import json
import subprocess
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from hl.tasks.families import FAMILIES, GRADER_VERSION, REASONING_GYM_VERSION

OUT = Path(__file__).resolve().parent.parent / "hl" / "tasks" / "catalogue.json"
STOCK = (
    "",
    "0",
    "1",
    "2",
    "3",
    "-1",
    "0.5",
    "True",
    "False",
    "Yes",
    "No",
    "A",
    "B",
    "[]",
    "none",
    "infeasible",
)
"""Constants tried on every family."""
GOLDS = 24
"""Most frequent answers of the first half that are tried too."""
BLOCK = 9
"""Seed block; 0 to 3 are those of the question sets."""
DRAW = 2000
"""Questions drawn at most."""
DRAW_S, FLOOR_S, WALL_S = 8.0, 20.0, 500.0
"""Processor seconds for drawing beyond the first 2 * HALF questions and for grading; wall seconds a family."""
HALF = 64
SLOW_S = 60.0
"""Processor seconds after which fewer than 2 * HALF questions must do."""


def measure(name: str) -> dict[str, Any]:
    """What the catalogue says of one family; runs in a process of its own."""
    from hl.tasks.generate import EXAMPLES, Draw, skip_plots

    skip_plots()
    draw = Draw(name, {})
    start = time.process_time()
    kept: list[dict[str, Any]] = []
    made = 0
    for item in draw.items(BLOCK):
        made += 1
        if len(kept) < 2 * HALF:
            kept.append(item)
        spent = time.process_time() - start
        if made >= DRAW or spent > SLOW_S or (spent > DRAW_S and made >= 2 * HALF):
            break
    seconds = time.process_time() - start
    first, second = kept[: len(kept) // 2], kept[len(kept) // 2 :]
    golds: Counter[str] = Counter()
    for item in first:
        answer = item["answer"]
        if answer is None:
            found = (item["entry"]["metadata"].get(key) for key in EXAMPLES)
            answer = next((x if isinstance(x, str) else json.dumps(x) for x in found if x), "")
        golds[answer.strip()] += 1
    constants = list(dict.fromkeys((*STOCK, *(text for text, _ in golds.most_common(GOLDS)))))
    raw, strict, graded = grade_constants(name, constants, second)
    best_raw, best_strict = (max(range(len(constants)), key=totals.__getitem__) for totals in (raw, strict))
    return {
        "category": draw.cls.__module__.split(".")[1],
        "drawn": draw.drawn,
        "distinct": len(draw.seen),
        "dropped": draw.dropped,
        "exhausted": draw.exhausted,
        "per_second": float(f"{made / max(seconds, 1e-3):.1g}"),
        "floor_raw": round(raw[best_raw] / graded, 3),
        "floor_raw_answer": constants[best_raw][:60],
        "floor_strict": round(strict[best_strict] / graded, 3),
        "floor_strict_answer": constants[best_strict][:60],
        "floor_n": graded,
    }


def grade_constants(
    name: str, constants: list[str], items: list[dict[str, Any]]
) -> tuple[list[float], list[float], int]:
    """Sums of raw and strict grades by constant, and over how many questions.

    In this process: questions and constants are reasoning-gym's and ours.
    """
    from hl.tasks import confined
    from hl.tasks.graders import ZERO, TextGrader, as_grade, readable
    from hl.tasks.text_rules import RULES
    from hl.types import Gold

    raw, strict, graded = [0.0] * len(constants), [0.0] * len(constants), 0
    host = TextGrader(RULES[FAMILIES[name].host]) if FAMILIES[name].host else None
    start = time.process_time()
    for item in items:
        entry = json.dumps(item["entry"])
        for i, constant in enumerate(constants):
            text = readable(constant)
            if not text:
                grade = ZERO
            elif host is not None:
                grade = asyncio.run(host.grade(Gold(item["id"], item["answer"], entry), text))
            else:
                grade = as_grade(confined.score(name, "{}", entry, text))
            raw[i] += grade.raw
            strict[i] += grade.strict
        graded += 1
        if time.process_time() - start > FLOOR_S and graded >= 16:
            break
    return raw, strict, graded


def run(name: str) -> dict[str, Any] | None:
    """`measure` in a child; None where it failed or took too long."""
    program = str(Path(__file__).resolve())
    try:
        with tempfile.TemporaryDirectory(
            prefix="hl-"
        ) as scratch:  # example programs leave files where they run
            done = subprocess.run(
                [sys.executable, "-s", "-W", "ignore", program, "--child", name],
                cwd=scratch,
                capture_output=True,
                text=True,
                timeout=WALL_S,
                env={"PYTHONHASHSEED": "0", "OMP_NUM_THREADS": "1", "PYTHONPATH": str(OUT.parents[2])},
                check=False,
            )
    except subprocess.TimeoutExpired:
        print(f"{name}: more than {WALL_S:g} s", file=sys.stderr)
        return None
    if done.returncode != 0:
        print(f"{name}: {done.stderr.strip()[-300:]}", file=sys.stderr)
        return None
    return json.loads(done.stdout.splitlines()[-1])


def main() -> int:
    """Measure and write."""
    if sys.argv[1:2] == ["--child"]:
        out, sys.stdout = sys.stdout, sys.stderr  # some generators print
        print(json.dumps(measure(sys.argv[2])), file=out)
        return 0
    names = sys.argv[1:] or [name for name, family in FAMILIES.items() if family.status != "refused"]
    known: dict[str, Any] = json.loads(OUT.read_text())["families"] if OUT.exists() else {}
    failed = False
    with ThreadPoolExecutor(2) as pool:
        for name, row in zip(names, pool.map(run, names), strict=True):
            failed |= row is None
            if row is not None:
                known[name] = row
                print(name, row["distinct"], row["per_second"], row["floor_raw"], row["floor_strict"])
    lines = ",\n".join(
        f"    {json.dumps(name)}: {json.dumps(known[name], ensure_ascii=False)}" for name in sorted(known)
    )
    head = {
        "schema": 1,
        "reasoning_gym": REASONING_GYM_VERSION,
        "grader": GRADER_VERSION,
        "stock_constants": STOCK,
        "golds_tried": GOLDS,
    }
    text = json.dumps(head, indent=2, ensure_ascii=False).removesuffix("\n}")
    OUT.write_text(f'{text},\n  "families": {{\n{lines}\n  }}\n}}\n', encoding="utf-8")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
