"""Paths and command lines."""

import sys
import sysconfig
from pathlib import Path

from hl.sandbox.bwrap import bwrap_command, find_interpreter, readable_paths


def test_interpreter_is_the_base_one() -> None:
    python = find_interpreter()
    assert Path(python.executable).is_file()
    assert python.prefix == str(Path(sys.base_prefix).resolve())
    assert (Path(python.stdlib) / "dataclasses.py").is_file()


def test_no_installed_package_and_no_project_is_readable() -> None:
    paths = [Path(path) for path in readable_paths(find_interpreter(), ())]
    secret = [
        Path(sysconfig.get_path("purelib")),
        Path(__file__),
        Path.cwd(),
        Path("/etc"),
        Path("/usr/lib/python3"),
    ]
    for path in paths:
        assert not path.name.endswith("-packages")
        for hidden in secret:
            assert not hidden.resolve().is_relative_to(path), (path, hidden)


def test_no_environment_is_bound() -> None:
    python = find_interpreter()
    command = bwrap_command("bwrap", python, ["true"], (), die_with_parent=True)
    bound = {command[i + 1] for i, word in enumerate(command) if word.startswith("--ro-bind")}
    prefix = Path(sys.prefix).resolve()
    if sys.prefix != sys.base_prefix:
        assert not any(prefix.is_relative_to(path) for path in bound)
    assert not {"/", "/usr", "/home", "/root", "/tmp", "/proc", "/etc"} & bound
    assert "--proc" not in command
    assert command[-2:] == ["--", "true"]


def test_parent_death_is_asked_for_only_where_it_means_the_process() -> None:
    python = find_interpreter()
    flags = [
        "--die-with-parent" in bwrap_command("bwrap", python, [], (), die_with_parent=it)
        for it in (True, False)
    ]
    assert flags == [True, False]
