"""The distribution: what it declares, what its locks hold, and what importing it costs."""

import ast
import os
import re
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
LOCKS = ("build.txt", "runtime.txt", "dev.txt", "train.txt")


def locked(name: str) -> dict[str, str]:
    """Package to version of one lock, without the locks that it includes."""
    lines = (ROOT / "requirements" / name).read_text().splitlines()
    return dict(line.split("==") for line in lines if line and not line.startswith(("#", "-r ")))


def normal(name: str) -> str:
    """A distribution's name as the locks spell it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def modules_of(package: str) -> Iterator[Path]:
    """The package's own modules; seeds are data."""
    for path in sorted((ROOT / package).rglob("*.py")):
        if (ROOT / "hl" / "seeds") not in path.parents:
            yield path


def imported(path: Path) -> set[str]:
    """Top-level names of all that a module imports, wherever in it."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module.split(".")[0])
    return names


@pytest.mark.parametrize("name", LOCKS)
def test_locks_are_plain_pinned_lines(name: str) -> None:
    for line in (ROOT / "requirements" / name).read_text().splitlines():
        assert re.fullmatch(r"#.*|-r [a-z]+\.txt|[a-z0-9-]+==[0-9][0-9a-z.]*", line), line


def test_every_declared_dependency_is_locked_and_fits() -> None:
    from packaging.requirements import Requirement

    runtime = locked("runtime.txt")
    everything = runtime | locked("build.txt") | locked("dev.txt")
    for text in PROJECT["project"]["dependencies"]:
        requirement = Requirement(text)
        assert requirement.specifier.contains(runtime[normal(requirement.name)]), text
    for text in PROJECT["dependency-groups"]["dev"] + PROJECT["build-system"]["requires"]:
        requirement = Requirement(text)
        assert requirement.specifier.contains(everything[normal(requirement.name)]), text


def test_the_training_extra_is_locked_and_fits() -> None:
    from packaging.requirements import Requirement

    lock = locked("train.txt")
    for text in PROJECT["project"]["optional-dependencies"]["train"]:
        requirement = Requirement(text)
        assert requirement.specifier.contains(lock[normal(requirement.name)]), text
    assert not lock.keys() & locked("runtime.txt").keys()


def test_base_install_has_no_torch() -> None:
    heavy = {"torch", "transformers", "trl", "peft", "vllm"}
    assert not heavy & (locked("runtime.txt") | locked("dev.txt") | locked("build.txt")).keys()


def test_hl_imports_only_what_it_declares() -> None:
    extras = PROJECT["project"].get("optional-dependencies", {})
    texts = PROJECT["project"]["dependencies"] + [text for group in extras.values() for text in group]
    declared = {normal(re.split(r"[^A-Za-z0-9._-]", text)[0]) for text in texts}
    ours = {"hl", "training"} | {"child", "zygote", "lockdown", "harness"}
    known = packages_distributions()
    for path in modules_of("hl"):
        for name in imported(path) - sys.stdlib_module_names - ours:
            distributions = {normal(d) for d in known.get(name, [name])}
            assert distributions & declared, (
                f"{path.relative_to(ROOT)} imports {name}, which nothing declares"
            )


def test_importing_hl_loads_nothing_heavy_and_prints_nothing() -> None:
    heavy = PROJECT["tool"]["ruff"]["lint"]["flake8-tidy-imports"]["banned-module-level-imports"]
    code = f"import sys, hl, hl.cli; print(sorted(set(sys.modules) & set({heavy!r})))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert (done.stdout, done.stderr) == ("[]\n", "")


def test_version_is_said_once() -> None:
    import hl

    assert hl.__version__ == PROJECT["project"]["version"]
    assert f"## [{hl.__version__}]" in (ROOT / "CHANGELOG.md").read_text() or hl.__version__ == "0.1.0"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    """Names in the wheel that the project builds."""
    target = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(target)]
    subprocess.run(
        command, check=True, cwd=ROOT, capture_output=True, env=os.environ | {"PYTHONWARNINGS": "ignore"}
    )
    (path,) = target.glob("*.whl")
    assert path.name == f"harness_learning-{PROJECT['project']['version']}-py3-none-any.whl"
    with zipfile.ZipFile(path) as archive:
        return set(archive.namelist())


def test_wheel_holds_every_module_and_the_seeds(wheel: set[str]) -> None:
    for path in modules_of("hl"):
        assert str(path.relative_to(ROOT)) in wheel
    assert "hl/py.typed" in wheel
    assert any(name.endswith("/licenses/LICENSE") for name in wheel)
    seeds = {str(path.relative_to(ROOT)) for path in (ROOT / "hl" / "seeds").rglob("*.py")}
    assert seeds and seeds <= wheel


def test_wheel_holds_nothing_else(wheel: set[str]) -> None:
    assert {name.split("/")[0] for name in wheel} <= {
        "hl",
        "training",
        f"harness_learning-{PROJECT['project']['version']}.dist-info",
    }


# --- the scripts that a fresh machine meets first -----------------------------------------------------------


def preflight(python: str, path: str) -> subprocess.CompletedProcess[str]:
    """Run the preflight with that interpreter and that PATH."""
    command = ["/bin/bash", str(ROOT / "scripts" / "preflight.sh"), python]
    return subprocess.run(command, capture_output=True, text=True, env={"PATH": path}, timeout=60)


def tools(directory: Path, *without: str) -> str:
    """A PATH that has what the preflight needs, except the named programs."""
    directory.mkdir()
    wanted = {
        "bash",
        "uname",
        "id",
        "git",
        "make",
        "cc",
        "as",
        "ld",
        *os.environ.get("CC", "").split(),
    } - set(without)
    for name in wanted:
        for folder in os.environ["PATH"].split(":"):
            if (Path(folder) / name).exists():
                (directory / name).symlink_to(Path(folder) / name)
                break
    return str(directory)


def test_preflight_is_silent_where_all_is_there(tmp_path: Path) -> None:
    done = preflight(sys.executable, tools(tmp_path / "bin"))
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize(("program", "package"), [("git", "git"), ("make", "make"), ("cc", "gcc libc6-dev")])
def test_preflight_names_the_missing_program_and_the_line_to_type(
    tmp_path: Path, program: str, package: str
) -> None:
    done = preflight(sys.executable, tools(tmp_path / "bin", program))
    assert done.returncode == 1
    assert done.stdout == ""
    assert f"apt-get install {package}\n" in done.stderr
    assert len(done.stderr.splitlines()) == 4


def test_preflight_names_an_interpreter_that_is_not_there(tmp_path: Path) -> None:
    done = preflight("python9", tools(tmp_path / "bin"))
    assert done.returncode == 1
    assert "'python9'" in done.stderr
    assert "apt-get install python3 python3-venv python3-dev\n" in done.stderr


def fake_python(path: Path, answers: dict[str, tuple[str, int]]) -> str:
    """An interpreter that answers by what its code mentions: (text, exit code)."""
    lines = ["#!/bin/bash"]
    for word, (text, code) in answers.items():
        lines.append(f'[[ "$2" == *"{word}"* ]] && {{ printf "%s\\n" "{text}"; exit {code}; }}')
    path.write_text("\n".join([*lines, "exit 1"]))
    path.chmod(0o755)
    return str(path)


def test_preflight_names_an_old_interpreter(tmp_path: Path) -> None:
    old = fake_python(tmp_path / "old", {"%d.%d": ("3.9", 0), "3, 11": ("", 1)})
    done = preflight(old, tools(tmp_path / "bin"))
    assert done.returncode == 1
    assert f"{old} is Python 3.9, and hl needs 3.11 or newer" in done.stderr


@pytest.mark.parametrize(
    ("working", "sentence", "package"),
    [
        ("include", "cannot create virtual environments", "python3.11-venv"),
        ("ensurepip", "has no C headers", "python3.11-dev"),
    ],
)
def test_preflight_names_what_debian_left_out(
    tmp_path: Path, working: str, sentence: str, package: str
) -> None:
    (tmp_path / "Python.h").touch()
    answers = {
        "%d.%d": ("3.11", 0),
        "3, 11": ("", 0),
        "sys.executable": ("/usr/bin/python3", 0),
        "base_prefix": ("/usr", 0),
        "ensurepip": ("", 0 if working == "ensurepip" else 1),
        "include": (str(tmp_path) if working == "include" else "/usr/include/python3.11-none", 0),
    }
    done = preflight(fake_python(tmp_path / "python", answers), tools(tmp_path / "bin"))
    assert done.returncode == 1
    assert sentence in done.stderr
    assert f"apt-get install {package}\n" in done.stderr
