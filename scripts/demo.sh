#!/usr/bin/env bash
# A full revision of a real harness by a real model, from nothing: fetches SmolLM2-135M-Instruct, starts a harness
# repository, revises it, reads its log, and asks whether it is the model that does the work.
#
#   scripts/demo.sh [FAMILY]     any reasoning-gym family (default chain_sum); also: make demo FAMILY=products
#
# Every run works in a fresh directory, demo/FAMILY, demo/FAMILY-2 and so on; earlier ones are left alone.
#
# ROUNDS         rounds of revision (default 2)
# DETERMINISTIC  true: one request at a time, so that a second run repeats every score exactly, three times slower;
#                false (default): batched requests, whose logits depend on what runs beside them
# PROFILE        sizes of question sets and rounds (default small)
set -euo pipefail
cd "$(dirname "$0")/.."

family=${1:-chain_sum}
rounds=${ROUNDS:-2}
deterministic=${DETERMINISTIC:-false}
profile=${PROFILE:-small}
venv=${VENV:-.venv}
PATH=$(cd "$venv/bin" && pwd):$PATH
case $family in *[!a-z0-9_]*) echo "'$family' is not the name of a reasoning-gym family" >&2; exit 2 ;; esac

repository=demo/$family number=2
while [ -e "$repository" ]; do repository=demo/$family-$number; number=$((number + 1)); done
mkdir -p demo

run() { printf '\n$ %s\n' "$*"; "$@" </dev/null; }

run hl model pull smollm2
run hl -c "solver.deterministic=$deterministic" init "$repository" \
    --task "reasoning-gym:$family" --profile "$profile" --seed minimal
printf '\n$ cd %s\n' "$repository"
cd "$repository"
run hl revise --rounds "$rounds"
run hl log
run hl log --all
run hl diff HEAD~1 HEAD || true  # nothing was accepted: there is no earlier revision to compare with
run hl eval --set evaluation --ablate-solver
printf '\nThe repository is in %s: try hl show, hl report, hl log --all, or plain git log there.\n' "$repository"
