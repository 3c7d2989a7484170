"""The pages tell the truth: commands and options exist, links lead somewhere, words match the code."""

import ast
import functools
import os
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from hl import errors, types
from hl.commands import VERBS
from hl.config.keys import KEYS
from training.settings import KEYS as TRAINING_KEYS

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), *(ROOT / "examples").glob("*.md")])
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def page(name: str) -> str:
    """Text of a page."""
    return (ROOT / name).read_text()


def blocks(text: str, language: str) -> list[str]:
    """Fenced blocks of one language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.M | re.S)


def table(text: str, heading: str) -> list[list[str]]:
    """Cells of the first table under a heading, without its two header rows."""
    _, found, rest = text.partition(f"\n{heading}\n")
    assert found, f"no heading {heading!r}"
    rows: list[list[str]] = []
    for line in rest.splitlines():
        if line.startswith("|"):
            rows.append([cell.strip() for cell in line.strip("|").split("|")])
        elif rows:
            break
    return rows[2:]


def by_page(found: Iterator[tuple[Path, str]]) -> list[object]:
    """(page, text) pairs as parameters with readable ids."""
    return [pytest.param(path, text, id=f"{path.name}: {text[:60]}") for path, text in found]


# --- commands -----------------------------------------------------------------------------------------------


def commands() -> Iterator[tuple[Path, str]]:
    """Every command typed in a console block of a page."""
    for path in PAGES:
        for block in blocks(path.read_text(), "console"):
            for line in re.findall(r"^\$ (.*)$", block, re.M):
                for part in line.split("&&"):
                    yield path, part.strip()


@functools.cache
def help_of(*command: str) -> str:
    """What `hl COMMAND... --help` prints."""
    arguments = [sys.executable, "-m", "hl.cli", *command, "--help"]
    wide = os.environ | {"COLUMNS": "200", "TERMINAL_WIDTH": "200"}
    done = subprocess.run(arguments, capture_output=True, text=True, env=wide, check=True, timeout=60)
    return done.stdout


def takes(command: tuple[str, ...], option: str) -> bool:
    """Whether the command's help names the option."""
    return re.search(rf"(?<![\w-]){re.escape(option)}(?![\w-])", help_of(*command)) is not None


def check_hl(words: list[str]) -> None:
    """Fail where a word of an hl command line is not what hl takes; what follows `--` goes to another program."""
    words = words[: words.index("--")] if "--" in words else words
    while words and words[0].startswith("-"):
        option = words.pop(0)
        assert takes((), option), f"hl has no global option {option}"
        if option == "-c":
            assert words.pop(0).partition("=")[0] in {*KEYS, *TRAINING_KEYS}
        elif option == "-C":
            words.pop(0)
    if not words:
        return
    verb = words.pop(0)
    assert verb in VERBS, f"hl has no command {verb!r}"
    command = (verb,)
    if "\nCommands:\n" in help_of(verb):
        assert re.search(rf"^  {re.escape(words[0])}\b", help_of(verb), re.M), (
            f"hl {verb} has no {words[0]!r}"
        )
        command = (verb, words.pop(0))
    for word in words:
        if re.match(r"--?[A-Za-z]", word):
            assert takes(command, word.partition("=")[0]), f"hl {' '.join(command)} has no option {word}"
    if command == ("config", "set"):
        assert next(word for word in words if not word.startswith("-")) in KEYS


OTHERS = {"git", "cd", "pip", "python", "apt-get", "cat", "bash", "vllm", "export", "torchrun"}
"""Programs of other people that pages tell to type."""


@pytest.mark.parametrize(("path", "command"), by_page(commands()))
def test_typed_commands_exist(path: Path, command: str) -> None:
    words = shlex.split(command, comments=True)
    while words and re.fullmatch(r"[A-Z_]+=.*", words[0]):
        words.pop(0)
    program, rest = words[0], words[1:]
    if program == "hl":
        check_hl(rest)
    elif program == "make":
        targets = re.findall(r"^([a-z-]+):", page("Makefile"), re.M)
        assert {word for word in rest if "=" not in word} <= set(targets)
    else:
        assert program in OTHERS, program


def test_every_command_is_in_the_reference() -> None:
    reference = page("docs/cli.md")
    for verb in VERBS:
        assert f"\n## hl {verb}\n" in reference


# --- other snippets -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", PAGES, ids=lambda p: p.name)
def test_snippets_parse(path: Path) -> None:
    text = path.read_text()
    assert text.count("\n```") % 2 == 0, "a fence is not closed"
    for block in blocks(text, "python"):
        ast.parse(block)
    for block in blocks(text, "toml"):
        settings = tomllib.loads(block)
        passed = settings.pop("hl", {})  # of a training run, to hl's own configuration
        for section, keys in [*settings.items(), *passed.items()]:
            assert {f"{section}.{key}" for key in keys} <= {*KEYS, *TRAINING_KEYS}


# --- links --------------------------------------------------------------------------------------------------


def links() -> Iterator[tuple[Path, str]]:
    """Every link of a page that leads to another place in the project."""
    for path in PAGES:
        without_code = re.sub(r"^```.*?^```$", "", path.read_text(), flags=re.M | re.S)
        for target in re.findall(r"\]\(([^)\s]+)\)", without_code):
            if not re.match(r"[a-z]+:", target):
                yield path, target


def anchors(path: Path) -> set[str]:
    """Anchors of a page's headings, as code hosts make them."""
    headings = re.findall(r"^#+ (.*)$", path.read_text(), re.M)
    return {re.sub(r"[^\w -]", "", h.lower()).replace(" ", "-") for h in headings}


@pytest.mark.parametrize(("path", "target"), by_page(links()))
def test_links_lead_somewhere(path: Path, target: str) -> None:
    name, _, anchor = target.partition("#")
    place = path.parent / name if name else path
    assert place.exists()
    if anchor:
        assert anchor in anchors(place)


# --- words and tables ---------------------------------------------------------------------------------------


def test_exit_codes_are_those_of_the_code() -> None:
    from hl import cli

    documented = {int(row[0]) for row in table(page("docs/errors.md"), "## Exit codes")}
    raised = {e.exit_code for e in vars(errors).values() if isinstance(e, type) and hasattr(e, "exit_code")}
    assert documented == {0, *raised, cli.EXIT_USAGE, cli.EXIT_BUG, cli.EXIT_INTERRUPTED, cli.EXIT_PIPE}


@pytest.mark.parametrize(
    ("heading", "words"),
    [
        ("## Outcomes of a proposal", types.Outcome),
        ("## Status of an attempt", types.Status),
        ("## Why a question failed", types.FailureClass),
    ],
)
def test_typed_words_are_those_of_the_code(heading: str, words: type[types.Outcome]) -> None:
    assert [row[0].strip("`") for row in table(page("docs/errors.md"), heading)] == [w.value for w in words]


def test_hand_over_classes_are_those_of_the_code() -> None:
    rows = table(page("docs/errors.md"), "## Why a question failed")
    assert {row[0].strip("`") for row in rows if row[2] == "yes"} == {c.value for c in types.HAND_OVER}


def test_glossary_explains_each_word_once_and_the_code_s_words_too() -> None:
    words = re.findall(r"^\| ([^|]+) \|", page("docs/glossary.md"), re.M)
    words = [w for w in words if w not in ("word", "mark")]
    assert len(words) == len(set(words))
    explained = page("docs/glossary.md")
    for word in [*types.Role, *types.Decision, *types.Evidence, *types.FailureClass, *types.Status]:
        assert re.search(rf"\b{re.escape(word.value)}\b", explained), word


def test_architecture_lists_the_layers_that_are_checked() -> None:
    (contract,) = [c for c in PROJECT["tool"]["importlinter"]["contracts"] if c["type"] == "layers"]
    checked = [layer.replace("hl.", "") for layer in contract["layers"]]
    (listed,) = blocks(page("docs/architecture.md"), "text")
    assert listed.strip().splitlines() == checked


def test_architecture_names_every_file_of_the_package() -> None:
    named = {row[0].strip("`").rstrip("/") for row in table(page("docs/architecture.md"), "## Layout")}
    found = {
        f"hl/{path.name}"
        for path in (ROOT / "hl").iterdir()
        if path.name not in ("__init__.py", "__main__.py", "py.typed", "__pycache__")
        and (path.suffix == ".py" or any(path.iterdir()))
    }
    assert {name for name in named if name.startswith("hl/")} == found


def test_architecture_says_why_each_library_was_chosen() -> None:
    rows = table(page("docs/architecture.md"), "## Third-party libraries")
    named = " ".join(row[0].lower() for row in rows)
    needed = PROJECT["project"]["dependencies"] + PROJECT["dependency-groups"]["dev"]
    for text in needed + PROJECT["build-system"]["requires"]:
        assert re.split(r"[^a-z0-9-]", text.lower())[0] in named, text
    assert all(len(row) == 4 and row[3] for row in rows)


def test_changelog_keeps_its_format() -> None:
    text = page("CHANGELOG.md")
    assert text.startswith("# Changelog\n")
    versions = re.findall(r"^## (.*)$", text, re.M)
    assert versions[0] == "[Unreleased]"
    for version in versions[1:]:
        assert re.fullmatch(r"\[\d+\.\d+\.\d+\] - \d{4}-\d{2}-\d{2}", version), version
    kinds = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}
    assert set(re.findall(r"^### (.*)$", text, re.M)) <= kinds


def test_readme_s_first_screen_has_the_two_commands() -> None:
    screen = "\n".join(page("README.md").splitlines()[:12])
    assert "make demo" in screen and "hl init" in screen


# --- what does not belong here ------------------------------------------------------------------------------

FORBIDDEN = (
    "/" + "work/",
    "/" + "tmp/hl/",
    "py" + "pi.org",
    "python" + "hosted",
    "npm" + "js.",
    "deb." + "debian",
)
"""Paths of one machine, and hosts of package registries: pip's own configuration decides about those."""


def texts() -> Iterator[Path]:
    """Every text file of the project."""
    for folder in ("hl", "training", "tests", "docs", "examples", "scripts", "bench", "requirements", ".ci"):
        for path in sorted((ROOT / folder).rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                yield path
    yield from (path for path in sorted(ROOT.iterdir()) if path.is_file())


def test_nothing_names_a_machine_or_a_registry() -> None:
    for path in texts():
        content = path.read_bytes().decode("utf-8", "replace")
        for word in FORBIDDEN:
            assert word not in content, f"{path.relative_to(ROOT)} says {word}"
