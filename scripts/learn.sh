#!/usr/bin/env bash
# The whole paper in miniature on two CPU cores: a teacher's rows, SFT, GRPO, and what each proposer is worth on families
# of clusters that it never saw, with controls.
#
#   scripts/learn.sh            everything that is left; also: make learn
#   scripts/learn.sh sft        up to and with this step: data, sft, grpo, bench, held, distance, shuffled,
#                               chain
#
# Every step is one hl command that goes on where it was stopped; none runs longer than STEP_S at a time.
#
# LEARN    where results lie (default: learn/ in hl's cache directory, outside the checkout)
# STEP_S   seconds after which a command is stopped and begun again (default 1700)
# SETTINGS settings of the run (default examples/learn.toml)
set -euo pipefail
cd "$(dirname "$0")/.."

last=${1:-show}
venv=${VENV:-.venv}
PATH=$(cd "$venv/bin" && pwd):$PATH
settings=$(realpath "${SETTINGS:-examples/learn.toml}")
state=${LEARN:-$(python -c 'from hl.engines.weights import cache_dir; print(cache_dir().parent / "learn")')}
mkdir -p "$state"
export OMP_NUM_THREADS=${OMP_NUM_THREADS:-2} TOKENIZERS_PARALLELISM=false

# A command until it is done: stopped early, or by the clock, it goes on.
step() {
    local name=$1 rc began seconds
    shift
    if [ ! -e "$state/$name.done" ]; then
        printf '\n$ hl %s\n' "$*"
        while :; do
            began=$SECONDS rc=0
            timeout --foreground --signal=INT --kill-after=60 "${STEP_S:-1700}" hl "$@" </dev/null || rc=$?
            seconds=$((SECONDS - began))
            printf '%s %s rc %s\n' "$name" "$seconds" "$rc" >>"$state/seconds"
            case $rc in 0) break ;; 3 | 124 | 130 | 137) echo "[$name goes on]" ;; *) exit "$rc" ;; esac
        done
        touch "$state/$name.done"
    fi
    if [ "$name" = "$last" ]; then exit 0; fi
}

# A proposer of the tables: SmolLM2, as the settings say, with an adapter or none.
smollm2() { printf '%s=hf:smollm2?prompt=brief&temperature=1.0&max_tokens=200&context_tokens=1024%s' "$1" "${2:+&adapter=$2}"; }
base=$(smollm2 base) sft=$(smollm2 sft "$state/sft/adapter") rl=$(smollm2 rl "$state/grpo/adapter")
constant=constant=scripted:$state/data/constant.json
catalog='catalog=catalog?max_tokens=200'
bench=(-c report.tokens=256 -c solver.max_tokens=64 bench reasoning-gym --track tiny --seed bare)

hl model pull smollm2 >/dev/null
step data train data "$settings" --out "$state/data"
step sft train sft "$settings" --data "$state/data" --out "$state/sft"
step grpo train grpo "$settings" --adapter "$state/sft/adapter" --out "$state/grpo"
step bench "${bench[@]}" --proposer "$base" --proposer "$sft" --proposer "$rl" --proposer "$constant" \
    --proposer "$catalog" --out "$state/bench"
# The contexts of the unseen families, which neither SFT nor GRPO learnt from, are where the two adapters are compared.
history=()
for cell in "$state"/bench/cells/*-base-*; do history+=(--from-history "$cell"); done
step held train data "$settings" "${history[@]}" --out "$state/held"
step distance train distance "$settings" --from "$state/sft/adapter" --to "$state/grpo/adapter" \
    --contexts "$state/held/contexts.jsonl"
step shuffled "${bench[@]}" --report shuffled --proposer "$sft" --proposer "$rl" --out "$state/shuffled"
step chain "${bench[@]}" --families gcd,chain_sum --rounds 5 --chains 1 --proposals 4 --proposer "$rl" --out "$state/chain"
printf '\n$ hl bench show %s %s %s\n' "$state/bench" "$state/shuffled" "$state/chain"
hl bench show "$state/bench" "$state/shuffled" "$state/chain"
cat "$state/seconds"
