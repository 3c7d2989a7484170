#!/usr/bin/env bash
# Resolves pyproject.toml anew in a scratch environment and writes requirements/*.txt from what came out.
set -euo pipefail
cd "$(dirname "$0")/.."
python=${PYTHON:-python3}
bash scripts/preflight.sh "$python"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
"$("$python" -c 'import sys; print(sys._base_executable)')" -m venv "$scratch/venv"
mapfile -t dev < <("$python" -c '
import tomllib
print("\n".join(tomllib.load(open("pyproject.toml", "rb"))["dependency-groups"]["dev"]))')
"$scratch/venv/bin/python" -m pip install --disable-pip-version-check -q '.[train]' "${dev[@]}" hatchling editables -U setuptools
"$scratch/venv/bin/python" scripts/lock.py
git --no-pager diff --stat -- requirements
