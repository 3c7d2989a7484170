"""Write docs/cli.md from the commands' own `--help`, or check that it is not stale.

python scripts/cli_reference.py            write it
python scripts/cli_reference.py --check    exit 1 where it differs
"""

import os
import re
import subprocess
import sys
from pathlib import Path

from hl.commands import VERBS

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "cli.md"
HEAD = """# Command reference

Written from `--help` by `make docs`; do not edit. Exit codes and their meaning are in [errors.md](errors.md),
the words in the [glossary](glossary.md).
"""


def help_of(*command: str) -> str:
    """What `hl COMMAND... --help` prints on a terminal of 100 columns without colour."""
    plain = {"COLUMNS": "100", "TERMINAL_WIDTH": "100", "NO_COLOR": "1", "TERM": "dumb", "LC_ALL": "C.UTF-8"}
    dropped = ("FORCE_COLOR", "GITHUB_ACTIONS", "PY_COLORS")
    environment = {k: v for k, v in os.environ.items() if k not in dropped} | plain
    arguments = [str(Path(sys.executable).parent / "hl"), *command, "--help"]
    done = subprocess.run(arguments, capture_output=True, text=True, env=environment, cwd=ROOT, check=False)
    if done.returncode != 0:
        raise SystemExit(f"hl {' '.join(command)} --help failed:\n{done.stderr}")
    return "\n".join(line.rstrip() for line in done.stdout.strip("\n").splitlines()) + "\n"


def subcommands(text: str) -> list[str]:
    """Names under `Commands:`, in the order of the help."""
    _, found, rest = text.partition("\nCommands:\n")
    if not found:
        return []
    block = rest.split("\n\n")[0]
    return re.findall(r"^  ([a-z][a-z-]*)(?:  |$)", block, re.M)


def render() -> str:
    """The whole page."""
    parts = [HEAD, f"## hl\n\n```text\n{help_of()}```\n"]
    waiting: list[tuple[str, ...]] = [(verb,) for verb in VERBS]
    while waiting:
        command = waiting.pop(0)
        text = help_of(*command)
        title = " ".join(("hl", *command))
        parts.append(f"{'#' * (1 + len(command))} {title}\n\n```text\n{text}```\n")
        waiting[:0] = [(*command, name) for name in subcommands(text)]
    return "\n".join(parts)


def main() -> int:
    """Write or check."""
    text = render()
    if "--check" not in sys.argv[1:]:
        PAGE.write_text(text)
        return 0
    if PAGE.exists() and PAGE.read_text() == text:
        return 0
    print("docs/cli.md is stale: type `make docs` and commit it", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
