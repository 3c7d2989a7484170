"""The directory of a bench run: made whole or not at all, held by one hl at a time, never another run's.

A run is made in `.NAME.new` beside its place and renamed: a directory that has a manifest has all of it. The lock lies
in the directory and moves with it, so that it is held from the first question to the last row; what a kill leaves
behind is cleared by the next start.
"""

import shutil
from collections.abc import Generator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

from hl.bench import manifest as manifests
from hl.bench.plan import Plan, check
from hl.bench.repositories import (
    Questions,
    check_cells,
    check_corpora,
    load_questions,
    make_questions,
    plan_questions,
    store_questions,
)
from hl.bench.rows import load_rows
from hl.bench.watch import Watch
from hl.errors import HlError, RepositoryError, UsageError
from hl.ledger.locks import hold, is_held
from hl.tasks.base import prepare
from hl.types import Role

LOCK = "lock"


@contextmanager
def open_folder(plan: Plan, out: Path, tier: str, command: str, watch: Watch) -> Generator[None]:
    """Hold the run's directory: made if it is not there, seen to be this very run's if it is.

    Args:
        plan: What is run.
        out: The directory.
        tier: How harnesses are confined here.
        command: As typed.
        watch: Told of the questions that are made.

    Raises:
        UsageError: A model, task or number is wrong; nothing is written.
        HlError: The directory holds another run, or a task has too few questions; nothing is changed.
        RepositoryError: It holds something else, or is damaged; nothing is changed.
        LockedError: Another hl makes or carries out this run.
    """
    place = out.resolve()
    draft = place.with_name(f".{place.name}.new")
    while True:
        if (out / manifests.FILE).exists():
            with hold(out / LOCK):
                see_same(plan, out, tier)
                if draft.exists() and not is_held(draft / LOCK):
                    shutil.rmtree(draft, ignore_errors=True)
                yield
            return
        see_possible(plan, out)
        made = [p for p in (draft, *draft.parents) if not p.exists()]
        with hold(draft / LOCK):
            if (out / manifests.FILE).exists():
                continue  # somebody else has made it meanwhile
            try:
                _make(plan, draft, tier, command, watch)
                draft.replace(out)
            except BaseException as error:
                shutil.rmtree(draft, ignore_errors=True)
                with suppress(OSError):
                    for parent in made[1:]:
                        parent.rmdir()
                if isinstance(error, OSError):
                    raise RepositoryError(f"--out {out} cannot be made: {error.strerror or error}.") from None
                raise
            yield
        return


def check_run(plan: Plan, out: Path, tier: str) -> None:
    """Refuse what `open_folder` would refuse, and change nothing.

    Data sets that are files are read. Of generated families with parameters one question a set is made, which shows
    whether these are right; all would take minutes. A corpus is not indexed.

    Raises:
        HlError: As `open_folder`.
    """
    if (out / manifests.FILE).exists():
        see_same(plan, out, tier)
        return
    see_possible(plan, out)
    for task in plan.tasks:
        if not task.name.startswith("reasoning-gym:"):
            make_questions(plan, task)
        elif "?" in task.name:
            plan_questions(plan, task)[0].generate(dict.fromkeys(Role, 1))


def see_possible(plan: Plan, out: Path) -> None:
    """Refuse a run that cannot be made, before anything is written; quick, and what `--dry-run` checks too.

    Raises:
        UsageError: A model, task or number is wrong.
        EngineError: A model's weights are not here.
        RepositoryError: The directory holds something else.
    """
    check(plan)
    if out.resolve() == Path.cwd():
        raise UsageError(f"--out {out} is the directory you stand in.", hint="choose another --out")
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise RepositoryError(
            f"--out {out} is not empty and holds no bench run.", hint="choose another --out"
        )
    manifests.models(plan)
    for task in plan.tasks:
        plan_questions(plan, task)


def see_same(plan: Plan, out: Path, tier: str) -> None:
    """Refuse to go on with a directory that is not this very run's.

    Raises:
        UsageError: A model, task or number is wrong.
        HlError: Another run is there; the message names the first difference.
        RepositoryError: Its questions or cells are damaged, or a corpus is another one.
    """
    check(plan)
    there, given = manifests.load(out), manifests.asked(plan, tier)
    # A cause is named before its effect, and another run's questions are not looked for.
    if not (differs := manifests.difference(there, given)):
        differs = manifests.difference(there, manifests.derived(plan, load_questions(out, plan), given))
    if differs:
        raise HlError(f"--out {out} holds another run: {differs}.", hint="choose another --out")
    finished = {row.cell for row in load_rows(out)}
    check_cells(out, plan, finished)
    check_corpora(out, plan, finished)


def _make(plan: Plan, draft: Path, tier: str, command: str, watch: Watch) -> None:
    for left in draft.iterdir():
        if left.name != LOCK:
            shutil.rmtree(left) if left.is_dir() else left.unlink()
    made: dict[str, Questions] = {}
    for task in plan.tasks:
        prepare(task.name, partial(watch.index, task.name))
        sets = make_questions(plan, task, partial(watch.questions, task.name))
        made[task.name] = store_questions(draft, task, sets)
    given = manifests.asked(plan, tier)
    manifests.save(draft, {**given, **manifests.derived(plan, made, given)}, command)
