#!/usr/bin/env bash
# Runs the sandbox tests where no user namespace can be made, as on hardened machines and in many containers: the
# sandbox must fall back to Landlock and seccomp, and hold.
#
#   scripts/test-without-userns.sh [TESTS...]        (default: attacks, honest programs, host, preflight)
#
# A user namespace of its own is the place where `max_user_namespaces` may be set to 0 without touching the machine;
# then every capability that the namespace gave is dropped again.
set -euo pipefail
cd "$(dirname "$0")/.."
[ $# -gt 0 ] || set -- tests/sandbox/test_{attacks,honest,host,preflight}.py
python=${VENV:-.venv}/bin/python

if ! unshare -Ur true 2>/dev/null; then
    echo "[without user namespaces] this machine has none: the tests above have run without them"
    exit 0
fi

# The paths that TMPDIR's default leads to belong to others in there; pytest insists on its own.
TMPDIR=$(mktemp -d) && export TMPDIR
trap 'rm -rf "$TMPDIR"' EXIT
echo "[without user namespaces] pytest $*"
# shellcheck disable=SC2016
unshare -Ur bash -c '
    set -euo pipefail
    echo 0 >/proc/sys/user/max_user_namespaces
    python=$1; shift
    drop=(setpriv --inh-caps=-all --ambient-caps=-all --bounding-set=-all --no-new-privs)
    if "${drop[@]}" unshare -U true 2>/dev/null; then echo "user namespaces are still there" >&2; exit 1; fi
    "${drop[@]}" "$python" scripts/sandbox_tier.py landlock+seccomp
    exec "${drop[@]}" "$python" -m pytest -rfE -m "not model" "$@"
' - "$python" "$@"
