"""reasoning-gym families as tasks. Makes their questions in a process of its own; the host never imports the library.

Sets come from disjoint seed blocks and are de-duplicated by content across all sets (reasoning-gym's seeds overlap
between splits: item i is drawn from seed + i). A family with fewer questions than
asked for is shared out by `sharing.py`.
"""

import difflib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import hl
from hl.errors import HlError, UsageError
from hl.tasks.base import Generated, Progress, RunFunction
from hl.tasks.families import FAMILIES, GRADER_VERSION, REASONING_GYM_VERSION, Family
from hl.tasks.formats import CANONICAL, CHOICES, FORMATS_VERSION, PARAMETER, VARIED, vary
from hl.tasks.graders import FormGrader, ReasoningGymGrader, TextGrader
from hl.tasks.sharing import PRIORITY, Item, as_sets, share_out, shortage
from hl.tasks.text_rules import RULES
from hl.types import Gold, Grader, Question, Role, TaskSpec

PATIENCE_S = 120.0
"""Generation time that `suggested_pool_rounds` stays under."""


@dataclass(frozen=True, slots=True)
class ReasoningGymTask:
    """One family with its parameters."""

    family: Family
    params: tuple[tuple[str, str], ...]
    """The family's own, sorted by name, as written."""
    varied: bool = False
    """Whether each question asks for its answer in a form of its own (`formats.py`)."""

    @classmethod
    def open(cls, name: str, params: Mapping[str, str]) -> "ReasoningGymTask":
        """The task of that family.

        Raises:
            UsageError: Unknown family, with the nearest names; or a refused one, with the reason.
        """
        family = FAMILIES.get(name)
        if family is None:
            near = (
                difflib.get_close_matches(name, FAMILIES, n=3, cutoff=0.5)
                or [other for other in FAMILIES if name and name in other][:3]
            )
            hint = f"did you mean {' or '.join(near)}?" if near else "hl bench families"
            raise UsageError(f"reasoning-gym has no family {name!r}", hint=hint)
        if family.status == "refused":
            raise UsageError(f"the family {name} is refused: {family.reason}", hint="hl bench families")
        own = dict(params)
        chosen = own.pop(PARAMETER, CANONICAL)
        if chosen not in CHOICES:
            raise UsageError(
                f"parameter {PARAMETER!r} must be {' or '.join(CHOICES)}, not {chosen!r}",
                hint=f"write reasoning-gym:{name}?{PARAMETER}={VARIED}",
            )
        return cls(family, tuple(sorted(own.items())), chosen == VARIED)

    @property
    def identity_family(self) -> str:
        """The family without its parameters: the same question under other parameters is the same question."""
        return f"reasoning-gym:{self.family.name}"

    @property
    def spec(self) -> TaskSpec:
        """Name, parameters, version and the description for the proposer."""
        family = self.family
        version = f"reasoning-gym {REASONING_GYM_VERSION}, hl grader {GRADER_VERSION}"
        form = "White space at the ends of an answer does not matter; an empty answer earns 0."
        if self.varied:
            form += (
                " The last sentence of each question names one more demand on the form, which differs from question to "
                "question; an answer in any other form earns 0, and the rest is graded as if it were not there."
            )
        return TaskSpec(
            name=self.identity_family,
            description=(
                f"Questions of the reasoning-gym family {family.name}. Each question {family.asks}, "
                f"and says in its own words how the answer is to be written. {form} {family.rule}"
            ),
            params=tuple(sorted((*self.params, (PARAMETER, VARIED)))) if self.varied else self.params,
            version=f"{version}, hl formats {FORMATS_VERSION}" if self.varied else version,
            gold_visible=family.gold_visible,
        )

    def suggested_pool_rounds(self, per_round: int) -> int | None:
        """Rounds whose questions take about two minutes to make; None where making them is quick."""
        if self.family.seconds == 0.0:
            return None
        return max(1, int(PATIENCE_S / (self.family.seconds * max(1, per_round))))

    def grader(self, run_function: RunFunction) -> Grader:
        """In process for exact texts and numbers, else in the sandbox."""
        if self.family.host:
            grader: Grader = TextGrader(RULES[self.family.host])
        else:
            grader = ReasoningGymGrader(
                self.family.name, json.dumps(dict(self.params), sort_keys=True), run_function
            )
        return FormGrader(grader) if self.varied else grader

    def generate(self, sizes: Mapping[Role, int], progress: Progress | None = None) -> Generated:
        """Make the sets in a child process.

        Raises:
            UsageError: A parameter is wrong.
            HlError: The generator failed, or the family is too small even for minimal sets.
        """
        request = {
            "family": self.family.name,
            "params": dict(self.params),
            "roles": [(str(role), list(Role).index(role), sizes[role]) for role in PRIORITY],
        }
        items: dict[Role, list[Item]] = {role: [] for role in Role}
        total, done, summary = sum(sizes[role] for role in Role), 0, {}
        for message in _generate(request):
            if "usage" in message:
                raise UsageError(message["usage"], hint="write reasoning-gym:FAMILY?key=value")
            if "failed" in message:
                raise HlError(f"the generator of {self.family.name} failed: {message['failed']}")
            if "item" in message:
                items[Role(message["role"])].append(self._item(message["item"]))
                done += 1
                if progress is not None:
                    progress(done, total)
            summary = message.get("done", summary)
        if not summary:
            raise HlError(f"the generator of {self.family.name} ended before its questions were made")
        if done < total:
            pool = [item for role in PRIORITY for item in items[role]]
            items = share_out(pool, sizes, f"the family {self.family.name} with these parameters")
        note = shortage(f"the family {self.family.name}", done, sizes, items) if done < total else ""
        return Generated(as_sets(items), summary["distinct"], summary["drawn"], done < total, note)

    def _item(self, row: Mapping[str, Any]) -> Item:
        if self.varied:
            text, gold = vary(row["id"], row["question"], row["answer"], row["entry"])
            return Question(row["id"], text), gold
        entry = json.dumps(row["entry"], separators=(",", ":"))
        return Question(row["id"], row["question"]), Gold(row["id"], row["answer"], entry)


def generator_environment() -> dict[str, str]:
    """The variables of the process that makes questions: what could change them is fixed, whatever the user's says."""
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "LC_ALL": "C.UTF-8",
        "TZ": "UTC",
        "PYTHONHASHSEED": "0",
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
    }


def _generate(request: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Messages of `generate.py`, run with a fixed PYTHONHASHSEED (`-I` would ignore it)."""
    root = str(Path(hl.__file__).resolve().parent.parent)
    program = f"import sys; sys.path.append({root!r}); from hl.tasks.generate import main; main()"
    # codeio runs the library's example programs, some of which leave files where they are run.
    with tempfile.TemporaryFile() as complaints, tempfile.TemporaryDirectory(prefix="hl-") as scratch:
        child = subprocess.Popen(
            [sys.executable, "-s", "-P", "-c", program],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=complaints,
            env=generator_environment(),
            cwd=scratch,
        )
        assert child.stdin is not None and child.stdout is not None
        with child.stdin, child.stdout:
            try:
                child.stdin.write(json.dumps(request).encode())
                child.stdin.close()
                for line in child.stdout:
                    yield json.loads(line)
                if child.wait() != 0:
                    complaints.seek(0)
                    last = complaints.read()[-4000:].decode(errors="replace").strip().split("\n")[-1]
                    yield {"failed": last or f"exit status {child.returncode}"}
            finally:
                if child.poll() is None:
                    child.kill()
                    child.wait()
