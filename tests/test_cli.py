"""The program itself: start-up, help, global options, and every error's way to stderr and an exit code."""

import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest

from hl.cli import OPTIONS, render_help
from hl.commands import VERBS

COMMANDS = Path(__file__).resolve().parent.parent / "hl" / "commands"


def run(
    *arguments: str, cwd: Path | None = None, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "hl.cli", *arguments],
        cwd=cwd,
        env=os.environ | (env or {}),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
    )


def python(code: str, *, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | (env or {}),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
    )


# --- start-up -----------------------------------------------------------------------------------------------

HEAVY = [
    "rich",
    "git",
    "pydantic",
    "torch",
    "reasoning_gym",
    "openai",
    "xllamacpp",
    "asyncio",
    "numpy",
    "scipy",
    "tomlkit",
    "platformdirs",
]


def absent(code: str, names: list[str]) -> None:
    done = python(f"{code}\nimport sys\nprint([n for n in {names!r} if n in sys.modules])")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "[]"


def test_importing_the_program_loads_nothing_heavy() -> None:
    absent("import hl.cli", [*HEAVY, "typer", "hl.types", "hl.config"])


def test_help_and_version_load_no_typer_and_no_verb() -> None:
    verbs = [f"hl.commands.{verb}" for verb in VERBS]
    for arguments in (["--help"], ["--version"], []):
        absent(f"import hl.cli\nhl.cli.run({arguments!r})", [*HEAVY, "typer", *verbs])


def test_a_verbs_help_loads_only_that_verb() -> None:
    others = [f"hl.commands.{verb}" for verb in VERBS if verb != "config"]
    absent(
        "import hl.cli\nassert hl.cli.run(['config', 'list', '--help']) == 0", [*HEAVY, *others, "hl.config"]
    )


# --- the table ----------------------------------------------------------------------------------------------


def test_the_table_names_every_module_and_nothing_else() -> None:
    modules = {path.stem for path in COMMANDS.glob("*.py")} - {"__init__", "context", "place", "quick"}
    assert {m for m in modules if not m.startswith("_")} == set(VERBS)


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_help_with_an_example_and_its_line_from_the_table(verb: str) -> None:
    done = run(verb, "--help", env={"COLUMNS": "100"})
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"Usage: hl {verb}")
    body = " ".join(done.stdout.split())
    assert VERBS[verb] in body
    if "\nCommands:\n" not in done.stdout:
        assert re.search(rf"Examples?: .*hl {verb}\b", body)
        return
    for line in done.stdout.partition("\nCommands:\n")[2].splitlines():
        if line.startswith("  ") and line[2] != " ":
            sub = run(verb, line.split()[0], "--help")
            assert sub.returncode == 0 and "Example" in sub.stdout, line


def test_help_names_every_global_option_that_the_parser_takes() -> None:
    listing = python(
        "import hl.cli\nprint(*(o for p in hl.cli._build().params for o in p.opts))"
    ).stdout.split()
    assert {"-C", "-c", "--no-pager", "--version"} <= set(listing)
    shown = " ".join(name for name, _ in OPTIONS)
    assert all(option in shown for option in listing)


def test_help_is_the_same_page_on_every_way_to_it() -> None:
    page = render_help()
    assert max(map(len, page.splitlines())) <= 80
    for arguments, code in (
        (["--help"], 0),
        (["-h"], 0),
        ([], 2),
        (["--no-pager", "--help"], 0),
        (["--no-pager"], 2),
    ):
        done = run(*arguments)
        assert (done.returncode, done.stdout, done.stderr) == (code, page, ""), arguments


def test_version() -> None:
    from hl import __version__

    for arguments in (["--version"], ["--no-pager", "--version"]):
        assert run(*arguments).stdout == f"hl {__version__}\n"


# --- global options -----------------------------------------------------------------------------------------


def test_directory_and_settings_reach_the_verb(tmp_path: Path) -> None:
    (tmp_path / "repo" / "deep").mkdir(parents=True)
    (tmp_path / "repo" / "hl.toml").write_text("[round]\nproposals = 3\nscoring = 5\n")
    done = run("-C", "repo/deep", "-c", "round.scoring=6", "config", "get", "round.proposals", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "3\n")
    done = run("-C", "repo", "-c", "round.scoring=6", "config", "get", "round.scoring", cwd=tmp_path)
    assert done.stdout == "6\n"


def test_a_directory_that_is_not_there(tmp_path: Path) -> None:
    done = run("-C", "nowhere", "config", "list", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "error: -C nowhere: No such file or directory.\n"


# --- errors -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message", "hint"),
    [
        (["lgo"], "'lgo' is not a command; did you mean 'log'?", "hl --help"),
        (["--frobnicate"], "No such option: --frobnicate", "hl --help"),
        (["config", "get"], "Missing argument 'KEY'.", "hl config get --help"),
        (
            ["config", "list", "--orign"],
            "No such option: --orign (Possible options: --json, --origin)",
            "hl config list --help",
        ),
        (["-c", "round.proposals=0", "config", "list"], "-c: round.proposals = 0:", "hl config get"),
    ],
)
def test_usage_errors_exit_2_with_a_hint(arguments: list[str], message: str, hint: str) -> None:
    done = run(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    first, second = done.stderr.splitlines()
    assert first.startswith(f"error: {message}") and second.startswith(f"hint: {hint}")


FAILING = """
import sys, types
import hl.cli, hl.commands, hl.commands.context, hl.errors
module = types.ModuleType("hl.commands.boom")
module.app = hl.commands.context.new_app()
@module.app.command()
def boom() -> None:
    {body}
sys.modules["hl.commands.boom"] = module
hl.commands.VERBS["boom"] = "Fails"
hl.cli.main(["boom"])
"""


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("HlError", 1),
        ("UsageError", 2),
        ("StoppedEarly", 3),
        ("RepositoryError", 4),
        ("LockedError", 5),
        ("SandboxError", 6),
        ("EngineError", 7),
        ("MissingExtraError", 8),
    ],
)
def test_each_error_of_ours_has_its_exit_code(name: str, code: int) -> None:
    done = python(
        FAILING.format(body=f"print('data'); raise hl.errors.{name}('x is wrong.', hint='hl fix x')")
    )
    assert (done.returncode, done.stdout) == (code, "data\n")
    assert done.stderr == "error: x is wrong.\nhint: hl fix x\n"


def test_a_bug_is_saved_and_its_place_is_shown(tmp_path: Path) -> None:
    done = python(FAILING.format(body="{}['missing']"), env={"HL_STATE_DIR": str(tmp_path)})
    assert (done.returncode, done.stdout) == (70, "")
    [saved] = (tmp_path / "crashes").iterdir()
    assert "Traceback" not in done.stderr and str(saved) in done.stderr and "KeyError" in done.stderr
    assert "KeyError: 'missing'" in saved.read_text()


def test_a_bug_where_nothing_can_be_saved_is_printed(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    done = python(FAILING.format(body="{}['missing']"), env={"HL_STATE_DIR": str(tmp_path / "file")})
    assert done.returncode == 70 and "Traceback" in done.stderr and "bug in hl" in done.stderr


def test_an_interrupt_exits_130() -> None:
    done = python(FAILING.format(body="raise KeyboardInterrupt"))
    assert (done.returncode, done.stderr) == (130, "error: interrupted.\n")


def test_a_reader_that_goes_away_is_no_error(tmp_path: Path) -> None:
    body = "[print('x' * 1000) for _ in range(10_000)]"
    process = subprocess.Popen(
        [sys.executable, "-c", FAILING.format(body=body)], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None and process.stderr is not None
    process.stdout.read(10)
    process.stdout.close()
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait(timeout=60) == 141


def test_a_full_disk_is_no_broken_pipe() -> None:
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full here")
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "hl.cli", "config", "list"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
        )
    assert done.returncode == 1 and "No space left" in done.stderr and "Traceback" not in done.stderr


def test_closed_streams_and_a_terminal_without_unicode_are_no_bug(tmp_path: Path) -> None:
    command = f"{sys.executable} -m hl.cli"
    for line, code in (
        ("--help >&-", 0),
        ("config list >&-", 0),
        ("lgo 2>&-", 2),
        ("config get nothing 2>&- >&-", 2),
    ):
        assert (
            subprocess.run(["sh", "-c", f"{command} {line}"], capture_output=True, timeout=60).returncode
            == code
        )
    done = run("-c", "solver.model=é", "config", "get", "solver.model", env={"PYTHONIOENCODING": "ascii"})
    assert (done.returncode, done.stdout) == (0, "\\xe9\n")


def test_a_directory_that_is_gone(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    done = subprocess.run(
        ["sh", "-c", f"rmdir {gone}; exec {sys.executable} -P -m hl.cli log"],
        cwd=gone,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 1 and done.stderr.startswith(
        "error: the current directory does not exist any more"
    )


# --- a terminal ---------------------------------------------------------------------------------------------


def on_terminal(code: str, env: dict[str, str]) -> str:
    """What a program writes to a terminal."""
    leader, follower = pty.openpty()
    try:
        subprocess.run(
            [sys.executable, "-c", code],
            stdin=subprocess.DEVNULL,
            stdout=follower,
            stderr=follower,
            env=os.environ | {"TERM": "xterm"} | env,
            timeout=60,
            check=True,
        )
    finally:
        os.close(follower)
    text = b""
    try:
        while chunk := os.read(leader, 65536):
            text += chunk
    except OSError:
        pass  # the other end is closed: all is read
    os.close(leader)
    return text.decode().replace("\r\n", "\n")


PAINT = """
from hl.ui import open_output
with open_output({pager!r}) as out:
    out.line(out.paint("word", "red"))
"""


def test_colour_on_a_terminal_and_not_with_no_color() -> None:
    assert on_terminal(PAINT.format(pager=None), {}) == "\x1b[31mword\x1b[0m\n"
    assert on_terminal(PAINT.format(pager=None), {"NO_COLOR": "1"}) == "word\n"
    assert on_terminal(PAINT.format(pager=None), {"TERM": "dumb"}) == "word\n"
    assert python(PAINT.format(pager=None)).stdout == "word\n"


def test_a_pager_gets_the_text_on_a_terminal_only() -> None:
    pager = "sed 's/^/paged: /'"
    assert on_terminal(PAINT.format(pager=pager), {"NO_COLOR": "1"}) == "paged: word\n"
    assert python(PAINT.format(pager=pager)).stdout == "word\n"


def test_a_pager_that_is_left_early_or_missing_is_no_error() -> None:
    code = "from hl.ui import open_output\nwith open_output('head -n 1') as out:\n"
    code += "  for i in range(200000): out.line(str(i))"
    assert on_terminal(code, {}) == "0\n"
    on_terminal(PAINT.format(pager="/nowhere/pager 2>/dev/null"), {})
