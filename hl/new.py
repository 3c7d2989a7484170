"""A new repository: seed harness, question sets, hl.toml, first commit.

Everything that can go wrong with the task, the seed or the configuration goes wrong before the first file is written.
It does not measure anything; `hl init` does that afterwards, as `hl eval` would.
"""

import difflib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from hl.config import FILE, Config, Value, load_config
from hl.edits import EditError, check_harness
from hl.errors import RepositoryError, UsageError
from hl.tasks.base import Generated, Task, locate, open_task, prepare
from hl.types import HARNESS_MAX_BYTES, Harness, Role
from hl.workspace import QUESTIONS, Workspace

SEEDS = Path(__file__).parent / "seeds"


@dataclass(frozen=True, slots=True)
class Created:
    """What `create` made."""

    workspace: Workspace
    generated: Generated
    pool_rounds: int
    """Rounds for which there are fresh questions."""
    commit: str
    notice: str
    """What the ledger wants the user to know (a stand-in identity), or empty."""
    seed: str
    """The seed that was taken, as `--seed` takes it."""


def seed_names() -> tuple[str, ...]:
    """The seed harnesses that come with hl, as `--seed` takes them."""
    return tuple(sorted(p.stem.replace("_", "-") for p in SEEDS.glob("*.py")))


def load_seed(seed: str) -> Harness:
    """A seed by name, or the user's own harness: a `.py` file, or a folder of them with a `harness.py`.

    Raises:
        UsageError: No such seed or file, or it is not a harness.
    """
    own = Path(seed)
    if seed in seed_names():
        harness = Harness(
            (("harness.py", (SEEDS / f"{seed.replace('-', '_')}.py").read_text(encoding="utf-8")),)
        )
    elif own.is_file():
        harness = Harness((("harness.py", _read(own)),))
    elif own.is_dir():
        files = tuple((p.name, _read(p)) for p in sorted(own.glob("*.py")))
        if "harness.py" not in dict(files):
            raise UsageError(
                f"--seed {seed}: the folder has no harness.py.", hint="name the file that defines solve"
            )
        harness = Harness(files)
    else:
        near = difflib.get_close_matches(seed, seed_names(), n=1)
        meant = f"; did you mean {near[0]!r}?" if near else f"; there are {', '.join(seed_names())}."
        raise UsageError(f"--seed {seed}: neither a seed nor a file{meant}", hint="hl init --help")
    try:
        check_harness(harness)
    except EditError as error:
        raise UsageError(f"--seed {seed} is not a harness: {error.detail}", hint="hl init --help") from None
    return harness


def _read(path: Path) -> str:
    try:
        data = path.read_bytes()
        if len(data) > HARNESS_MAX_BYTES:
            raise UsageError(f"{path} is larger than {HARNESS_MAX_BYTES} bytes.")
        return data.decode()
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise UsageError(f"{path} is not UTF-8 text.") from None


def pool_sizes(config: Config, task: Task) -> tuple[dict[Role, int], int]:
    """How many questions to make of each role, and for how many rounds that is."""
    r = config.round
    per_round = r.feedback + r.scoring + r.confirmation
    suggested = task.suggested_pool_rounds(per_round)
    rounds = r.pool_rounds if suggested is None else max(1, min(r.pool_rounds, suggested))
    return {
        Role.FEEDBACK: r.feedback * rounds,
        Role.SCORING: r.scoring * rounds,
        Role.CONFIRMATION: r.confirmation * rounds,
        Role.EVALUATION: r.evaluation,
    }, rounds


def create(
    directory: Path,
    task_name: str,
    *,
    seed: str = "",
    overrides: Sequence[str] = (),
    profile: str | None = None,
    on_progress: Callable[[int, int], None] | None = None,
    on_index: Callable[[int, int], None] | None = None,
    generated: Generated | None = None,
    branch: str = "main",
) -> Created:
    """Make the repository.

    Args:
        directory: Missing, empty, or a git work tree without an hl.toml.
        task_name: Such as `reasoning-gym:gcd`.
        seed: A seed's name or the user's own file or folder; empty for `retrieval` where the task has a corpus, else
            `minimal`.
        overrides: `key=value` texts; they are written to hl.toml.
        profile: A named set of values; written to hl.toml too.
        on_progress: Told (questions made, questions wanted).
        on_index: Told how far the indexing of a corpus is, in thousandths.
        generated: Question sets that were made before, as a benchmark does for all its repositories of a task.
        branch: First branch of a new repository.

    Raises:
        UsageError: Task, seed or configuration is wrong.
        RepositoryError: The directory cannot be used.
    """
    if (directory / FILE).exists():
        raise RepositoryError(f"{directory} already has an {FILE}.", hint=f"hl -C {directory} status")
    from hl.ledger import Ledger

    Ledger.check_place(directory)
    task = open_task(task_name)
    config = load_config(None, [*overrides, f"task.name={locate(task_name)}"], profile=profile)
    seed = seed or ("retrieval" if task.spec.has_corpus else "minimal")
    harness = load_seed(seed)
    prepare(task_name, on_index)
    sizes, rounds = pool_sizes(config, task)
    if generated is None:
        generated = task.generate(sizes, on_progress)
    values = _values(config, harness)

    from hl.config.edit import write_values
    from hl.config.trust import trust
    from hl.tasks.questions import write_sets

    directory.mkdir(parents=True, exist_ok=True)
    ledger = Ledger.create(directory, branch=branch)
    write_sets(directory / QUESTIONS, generated, task.spec, task.identity_family)
    for name, text in harness.files:
        (directory / name).write_text(text, encoding="utf-8", newline="")
    write_values(directory / FILE, values)
    paths = [FILE, *(name for name, _ in harness.files), *_question_files(directory)]
    commit = ledger.commit_files(f"Start with the {Path(seed).stem} harness on {task.spec.name}", paths)
    trust(directory)
    return Created(Workspace(ledger, load_config(directory)), generated, rounds, commit, ledger.notice, seed)


def _question_files(directory: Path) -> list[str]:
    return sorted(f"{QUESTIONS}/{p.name}" for p in (directory / QUESTIONS).iterdir())


def _values(config: Config, harness: Harness) -> Mapping[str, Value]:
    """What the new hl.toml says: the task, the harness's files, and everything that was chosen."""
    chosen: dict[str, Value] = {"task.name": config.task.name}
    names = tuple(name for name, _ in harness.files)
    if names != ("harness.py",):
        chosen["harness.files"] = names
    for key, origin in config.origins.items():
        if origin.kind in ("command line", "profile"):
            chosen[key] = config.get(key)
    return chosen
