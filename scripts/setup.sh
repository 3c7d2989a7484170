#!/usr/bin/env bash
# Creates the virtual environment and installs the locked versions and the project itself into it (editable).
#
# VENV    the environment's directory (default .venv)
# PYTHON  the interpreter to build it from (default: what VENV was built from, else python3)
# WITH    `train` for the packages of that extra too (torch and its company, some gigabytes)
#
# Does nothing when the locks, pyproject.toml and the interpreter are those of the last complete run: the stamps in the
# environment hold their digests, so neither file times nor a switch of branches matter. What is there with `train` is
# good without it too.
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root"
venv=${VENV:-.venv}
lock=requirements/dev.txt
with=${WITH:-}
case $with in "" | train) ;; *) echo "WITH=$with: there is \`train\`" >&2; exit 2 ;; esac

works() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; }
# The interpreter that an environment was built from, and its version: the same for the environment and for its base.
identity() { "$1" -c 'import sys; print(sys.base_prefix, sys.version)' 2>/dev/null | tr '\n' ' '; }

if [ -z "${PYTHON:-}" ]; then
    if works "$venv/bin/python"; then PYTHON=$venv/bin/python; else PYTHON=python3; fi
fi

digest() { sha256sum | cut -d' ' -f1; }
holds() { [ "$(cat "$venv/$1" 2>/dev/null)" = "$2" ]; }
want=$({ identity "$PYTHON"; echo "$root $lock"; cat requirements/{build,runtime,dev}.txt pyproject.toml; } | digest)
want_train=$({ echo "$want"; cat requirements/train.txt; } | digest)
if holds .hl-stamp "$want" && { [ -z "$with" ] || holds .hl-stamp-train "$want_train"; }; then exit 0; fi

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
if ! holds .hl-stamp "$want"; then
    rm -f "$venv/.hl-stamp" "$venv/.hl-stamp-train"
    say "installing the build tools"
    pip_install -r requirements/build.txt
    say "installing $(cat requirements/{build,runtime,dev}.txt | grep -c '==') locked packages (about a minute the first time)"
    pip_install --no-build-isolation -r "$lock"
    say "installing hl"
    pip_install --no-build-isolation --no-deps --editable .
    printf '%s\n' "$want" >"$venv/.hl-stamp"
fi
if [ -n "$with" ]; then
    rm -f "$venv/.hl-stamp-train"
    say "installing $(grep -c '==' requirements/train.txt) locked packages for training (some minutes the first time)"
    pip_install --no-build-isolation -r requirements/train.txt
    printf '%s\n' "$want_train" >"$venv/.hl-stamp-train"
fi
say "done: $venv/bin/hl"
