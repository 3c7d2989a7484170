#!/usr/bin/env bash
# Creates the virtual environment and installs the locked versions and the project itself into it (editable).
#
# VENV    the environment's directory (default .venv)
# PYTHON  the interpreter to build it from (default: what VENV was built from, else python3)
#
# Does nothing when the locks, pyproject.toml and the interpreter are those of the last complete run: the stamp in the
# environment holds their digest, so neither file times nor a switch of branches matter.
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root"
venv=${VENV:-.venv}
lock=requirements/dev.txt

works() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; }
# The interpreter that an environment was built from, and its version: the same for the environment and for its base.
identity() { "$1" -c 'import sys; print(sys.base_prefix, sys.version)' 2>/dev/null | tr '\n' ' '; }

if [ -z "${PYTHON:-}" ]; then
    if works "$venv/bin/python"; then PYTHON=$venv/bin/python; else PYTHON=python3; fi
fi

want=$({ identity "$PYTHON"; echo "$root $lock"; cat requirements/*.txt pyproject.toml; } | sha256sum | cut -d' ' -f1)
if [ "$(cat "$venv/.hl-stamp" 2>/dev/null)" = "$want" ]; then exit 0; fi

bash scripts/preflight.sh "$PYTHON"

say() { printf '[setup] %s\n' "$*"; }
# Runs pip quietly; on failure shows all it said.
pip_install() {
    local log="$venv/pip.log"
    if ! "$venv/bin/python" -m pip install --disable-pip-version-check --no-input "$@" >"$log" 2>&1 </dev/null; then
        cat "$log" >&2
        say "pip failed: the lines above say why; the same command tries again" >&2
        exit 1
    fi
}

if ! works "$venv/bin/python" || [ "$(identity "$venv/bin/python")" != "$(identity "$PYTHON")" ] ||
    ! "$venv/bin/python" -m pip --version >/dev/null 2>&1; then
    say "creating $venv from $("$PYTHON" -c 'import sys; print(sys._base_executable, sys.version.split()[0])')"
    "$("$PYTHON" -c 'import sys; print(sys._base_executable)')" -m venv --clear "$venv"
fi
rm -f "$venv/.hl-stamp"
say "installing the build tools"
pip_install -r requirements/build.txt
say "installing $(cat requirements/*.txt | grep -c '==') locked packages (about a minute the first time)"
pip_install --no-build-isolation -r "$lock"
say "installing hl"
pip_install --no-build-isolation --no-deps --editable .
printf '%s\n' "$want" >"$venv/.hl-stamp"
say "done: $venv/bin/hl"
