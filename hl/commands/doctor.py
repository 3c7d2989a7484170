"""`hl doctor`: what this machine can do, the sandbox first."""

from typing import TYPE_CHECKING, Annotated

import typer

from hl.commands.context import JsonOption, find_root, invocation, new_app

if TYPE_CHECKING:
    from hl.sandbox.preflight import Probe

app = new_app()

GOOD, MISSING, BAD = "ok", "missing", "FAILED"
"""`missing` limits what can be done here; only `FAILED` makes the exit code 6."""


@app.command()
def doctor(
    context: typer.Context,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Every probe with what it tried.")] = False,
    json: JsonOption = False,
) -> None:
    """Check what this machine can do, the sandbox first.

    Starts a real sandboxed process that tries to read files, open sockets, start processes and
    look around. Exits 6 if any of it gets through, or if there is no sandbox here.

    \b
    Examples:
      hl doctor
      hl doctor --verbose
    """
    from hl.errors import SandboxError
    from hl.ui import columns, open_output, write_json

    checks = [*_machine(), *_engines(), *_configuration(invocation(context).overrides)]
    tier, probes, failure = _sandbox()
    through = [p for p in probes if not p.blocked]
    if failure:
        checks.insert(0, (BAD, "sandbox", failure))
    elif through:
        names = ", ".join(p.name for p in through)
        checks.insert(0, (BAD, "sandbox", f"{tier}: got through: {names}"))
    else:
        checks.insert(0, (GOOD, "sandbox", f"{tier}: {len(probes)} probes blocked"))
    if json:
        for state, name, detail in checks:
            write_json("check", {"name": name, "state": state.lower(), "detail": detail})
        for probe in probes:
            write_json(
                "probe",
                {"name": probe.name, "tried": probe.tried, "blocked": probe.blocked, "detail": probe.detail},
            )
    else:
        with open_output() as out:
            colours = {GOOD: "green", MISSING: "yellow", BAD: "red"}
            for (state, _, _), line in zip(checks, columns(checks), strict=True):
                out.line(out.paint(line[: len(state)], colours[state]) + line[len(state) :])
            shown = probes if verbose else through
            if shown:
                out.line()
            for line in columns(
                [("blocked" if p.blocked else "THROUGH", p.name, p.tried, p.detail) for p in shown]
            ):
                out.line("  " + line)
    if failure or through:
        raise SandboxError(
            "the sandbox cannot be trusted here.",
            hint="docs/security.md says what it needs: hl doctor --verbose",
        )


def _sandbox() -> "tuple[str, list[Probe], str]":
    """(tier, probes, why there is none)."""
    import asyncio

    from hl.errors import SandboxError
    from hl.sandbox.host import Sandbox

    async def look() -> "tuple[str, list[Probe]]":
        sandbox = Sandbox(zygotes=1)
        try:
            await sandbox.start(check=False)
            return sandbox.tier, list(sandbox.probes)
        finally:
            await sandbox.aclose()

    try:
        tier, probes = asyncio.run(look())
    except SandboxError as error:
        return "", [], error.message + (f" ({error.hint})" if error.hint else "")
    return tier, probes, ""


def _machine() -> list[tuple[str, str, str]]:
    import os
    import platform
    import shutil
    import subprocess
    import sys

    version = platform.python_version()
    checks = [
        (GOOD if sys.version_info >= (3, 11) else BAD, "python", f"{version} at {sys.executable}"),
        (GOOD if sys.platform == "linux" else MISSING, "system", f"{platform.system()} {platform.machine()}"),
    ]
    git = shutil.which("git")
    if git is None:
        checks.append((MISSING, "git", "not found: apt install git"))
    else:
        done = subprocess.run([git, "--version"], capture_output=True, text=True, check=False)
        checks.append((GOOD, "git", done.stdout.strip().removeprefix("git version ")))
    checks.append((GOOD, "cores", str(len(os.sched_getaffinity(0)))))
    total, available = _memory_mb()
    state = GOOD if available >= 1024 else MISSING
    checks.append((state, "memory", f"{available:,} MB available of {total:,} MB"))
    return checks


def _memory_mb() -> tuple[int, int]:
    """(total, available) as /proc/meminfo says it; zeros where there is none."""
    from pathlib import Path

    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError:
        return 0, 0
    values = {line.split(":")[0]: int(line.split()[1]) // 1024 for line in lines if len(line.split()) > 1}
    return values.get("MemTotal", 0), values.get("MemAvailable", 0)


def _engines() -> list[tuple[str, str, str]]:
    from importlib.metadata import PackageNotFoundError, version

    from hl.engines.weights import KNOWN, cache_dir

    checks: list[tuple[str, str, str]] = []
    for engine, package in (("llamacpp", "xllamacpp"), ("openai", "openai")):
        try:
            checks.append((GOOD, f"engine {engine}", f"{package} {version(package)}"))
        except PackageNotFoundError:
            checks.append((MISSING, f"engine {engine}", f"not installed: pip install {package}"))
    for extra, packages in (("train", ("torch", "transformers", "trl", "peft")), ("vllm", ("vllm",))):
        try:
            found = ", ".join(f"{package} {version(package)}" for package in packages)
            checks.append((GOOD, f"extra {extra}", found))
        except PackageNotFoundError as error:
            needed = f"{error.name} is not installed: pip install 'harness-learning[{extra}]'"
            checks.append((MISSING, f"extra {extra}", needed))
    for name, model in KNOWN.items():
        path = cache_dir() / model.file_name
        here = path.is_file()
        checks.append(
            (GOOD if here else MISSING, f"model {name}", str(path) if here else f"hl model pull {name}")
        )
    try:
        checks.append((GOOD, "tasks", f"reasoning-gym {version('reasoning-gym')}"))
    except PackageNotFoundError:
        checks.append((MISSING, "tasks", "not installed: pip install reasoning-gym"))
    return checks


def _configuration(overrides: tuple[str, ...]) -> list[tuple[str, str, str]]:
    """Whether the configuration here can be used, and whether the keys that it names are in the environment."""
    import os

    from hl.config import load_config
    from hl.errors import HlError

    try:
        config = load_config(find_root(), overrides)
    except HlError as error:
        return [(MISSING, "configuration", error.message)]
    checks = [(GOOD, "configuration", f"solver {config.solver.engine}, proposer {config.proposer.engine}")]
    for section, model in (("solver", config.solver), ("proposer", config.proposer)):
        if model.api_key_env:
            there = bool(os.environ.get(model.api_key_env))
            detail = f"${model.api_key_env} is {'set' if there else 'not set'}"
            checks.append((GOOD if there else MISSING, f"{section} key", detail))
    return checks
