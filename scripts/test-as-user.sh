#!/usr/bin/env bash
# Runs the sandbox tests as an ordinary user (root only): first as they are, then without user namespaces.
#
# What root may do hides what a user may not. So the working tree is copied to a folder that everyone can enter, gets an
# environment from the system's python3 (root's own interpreter may lie where nobody else can read), and the tests run
# there under uid 1000, which needs no entry in /etc/passwd.
#
# USER_TESTS  what to run (default: tests/sandbox)
set -euo pipefail
cd "$(dirname "$0")/.."
[ "$(id -u)" -eq 0 ] || { echo "scripts/test-as-user.sh needs root, to become somebody else" >&2; exit 1; }

as_user() { setpriv --reuid 1000 --regid 1000 --clear-groups "$@"; }
command -v setpriv >/dev/null || { echo "setpriv is missing: apt-get install util-linux" >&2; exit 1; }

# The first interpreter that uid 1000 can run too.
python=
for candidate in "${SYSTEM_PYTHON:-/usr/bin/python3}" "$("${VENV:-.venv}/bin/python" -c 'import sys; print(sys._base_executable)')"; do
    if as_user "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
        python=$candidate
        break
    fi
done
[ -n "$python" ] || { echo "no Python 3.11+ that an ordinary user can run: apt-get install python3 python3-venv python3-dev" >&2; exit 1; }

copy=$(mktemp -d "${TMPDIR:-/tmp}/hl-user-XXXXXX")
trap 'rm -rf "$copy"' EXIT
chmod 0755 "$copy"
mkdir "$copy/hl" "$copy/home" "$copy/tmp"
if git rev-parse --git-dir >/dev/null 2>&1; then
    git ls-files -z --cached --others --exclude-standard
else
    find . -path ./.venv -prune -o -path ./demo -prune -o -type f -print0
fi | tar --null --ignore-failed-read -T - -cf - | tar -xf - -C "$copy/hl"

echo "[as an ordinary user] an environment from $python"
(cd "$copy/hl" && env -u VENV -u WITH PYTHON="$python" bash scripts/setup.sh)
chown -R 1000:1000 "$copy"

read -r -a tests <<<"${USER_TESTS:-tests/sandbox}"
cd "$copy/hl"
export HOME="$copy/home" TMPDIR="$copy/tmp" VENV="$copy/hl/.venv"
unset XDG_CACHE_HOME XDG_CONFIG_HOME XDG_DATA_HOME XDG_STATE_HOME XDG_RUNTIME_DIR

echo "[as an ordinary user] pytest ${tests[*]}"
as_user "$VENV/bin/python" -m pytest -rfE -m "not model" "${tests[@]}"
as_user bash scripts/test-without-userns.sh
