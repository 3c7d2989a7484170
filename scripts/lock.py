"""Write the locks in requirements/ from what is installed in the running environment.

Run it with the interpreter of an environment that holds the project, its development group and the build
tools; the versions found there are split by following the requirements in pyproject.toml:

    requirements/build.txt     what builds the project and the dependencies that publish no wheel
    requirements/runtime.txt   what `hl` itself needs
    requirements/dev.txt       runtime.txt, and what the tests and checks need on top
    requirements/train.txt     runtime.txt, and what the extra `train` needs on top

Plain `name==version` lines, sorted. `make lock` resolves everything anew in a scratch environment and calls
this.
"""

import sys
import tomllib
from collections.abc import Iterable
from importlib.metadata import distribution, version
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parent.parent
BUILD_ROOTS = ("hatchling", "editables", "setuptools")


def closure(roots: Iterable[str]) -> set[str]:
    """Normalised names of all that the requirements pull in here, the requirements themselves included."""
    found: set[str] = set()
    waiting = [Requirement(r) for r in roots]
    done: set[tuple[str, frozenset[str]]] = set()
    while waiting:
        requirement = waiting.pop()
        name = canonicalize_name(requirement.name)
        if (name, frozenset(requirement.extras)) in done:
            continue
        done.add((name, frozenset(requirement.extras)))
        found.add(name)
        for text in distribution(name).requires or ():
            child = Requirement(text)
            extras = ("", *requirement.extras)
            if child.marker is None or any(child.marker.evaluate({"extra": e}) for e in extras):
                waiting.append(child)
    return found


def render(header: str, names: Iterable[str], includes: Iterable[str] = ()) -> str:
    """One requirement file."""
    lines = [f"# {header} Written by `make lock`; do not edit.", *(f"-r {name}" for name in includes)]
    # Without the local part: torch's `+cpu` says where it was built for, and pip finds the build for a machine.
    pinned = (f"{name}=={version(name).partition('+')[0]}" for name in sorted(names))
    return "\n".join([*lines, *pinned]) + "\n"


def main() -> int:
    """Write the four files."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    build = closure(BUILD_ROOTS)
    runtime = closure(project["project"]["dependencies"])
    dev = closure(project["dependency-groups"]["dev"])
    train = closure(project["project"]["optional-dependencies"]["train"])
    folder = ROOT / "requirements"
    folder.mkdir(exist_ok=True)
    rest = dev - runtime - build
    for name, text in {
        "build.txt": render("Builds the project and its source-only dependencies.", build),
        "runtime.txt": render("What hl needs.", runtime),
        "dev.txt": render("What the tests and checks need besides.", rest, ("build.txt", "runtime.txt")),
        "train.txt": render("What training needs besides.", train - runtime, ("runtime.txt",)),
    }.items():
        (folder / name).write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
