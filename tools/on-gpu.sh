#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# on-gpu.sh [OUT] [--quick]: everything of maquette that drives a GPU, on a machine that has one, in eight minutes.
#
# Needs a driver, python3 with torch, and what tools/on-gpu/pack.sh made (KIT, or build-on-gpu beside this checkout); builds nothing and
# changes no setting of the card. Each step has a time limit and a log, and one that fails stops no other. OUT has at most eight files, always
# up to date, since the machine may be taken away at any time: summary.txt first, everything in on-gpu.tar.gz.
#
# LIMIT: seconds for all (480). ONLY: names of steps, the others are left out. PYTHON: the interpreter. LIBRARIES: folders of CUDA's.
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
tools=$here/on-gpu
py=${PYTHON:-python3} limit=${LIMIT:-480} only=${ONLY:-}

# --- what the steps do, in the folder $WORK ---------------------------------------------------------------------------

# PyTorch's own CUDA libraries are the ones to measure: they come first.
with_cuda() { LD_LIBRARY_PATH=$LIBRARIES${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} "$@"; }
maq() { "$KIT/maquette" "$@"; }
maq_cuda() { with_cuda "$KIT/maquette" "$@"; }

machine() {
    nvidia-smi -q >machine.txt 2>&1
    nvidia-smi
    lscpu
    free -g
    uname -a
    ldd --version | head -n 1
    nvcc --version | tail -n 2
    "$py" "$tools/say.py" machine machine.json
}

module() {
    maq --version || return
    with_cuda ldd "$KIT/libmaquette-cuda.so"
    maq_cuda profile --grid quick --file quick.db --budget 30 --json --output quick.json
    local status=$?
    "$py" "$tools/say.py" counts quick.json
    return $status
}
nccl() { "$py" "$tools/check_nccl.py" "$KIT/shim/gpu/libmaquette-nccl.so"; }
kernels() { with_cuda "$py" "$tools/check_kernels.py" "$KIT/libmaquette-kernels.so"; }

# profile NAME OPTION...: of a job; the list of its operators, for attention.py.
profile() {
    local name=$1
    shift
    maq profile "$@" --dry-run --json --output "ops-$name.json" || return
    maq_cuda profile "$@" --file h100.db --budget 25 --json --output "profile-$name.json"
    local status=$?
    "$py" "$tools/say.py" counts "profile-$name.json"
    return $status
}
profile_own() { profile own "$tools/llama.yaml"; }
profile_llama() {
    local tp status=0
    for tp in "$@"; do
        profile "llama-tp$tp" --model llama-3-8b --cluster h100-sxm:8 --seq 4096 --gbs 8 --mbs 1 --tp "$tp" || status=$?
    done
    return $status
}
# Attention without a mask, which cuDNN 9.17 has already.
profile_both() {
    CUDNN_LOGLEVEL_DBG=1 CUDNN_LOGDEST_DBG=$WORK/cudnn.log profile both --model llada-8b --cluster h100-sxm:1 --seq 4096 --gbs 1 --mbs 1
}
profile_moe() { profile moe --model qwen3-30b-a3b --cluster h100-sxm:8 --seq 4096 --gbs 8 --mbs 1 --ep 8; }
# Ranges of sizes.
grid() {
    maq_cuda profile --grid standard --device h100-sxm --file h100.db --budget "$1" --json --output profile-grid.json
    local status=$?
    "$py" "$tools/say.py" counts profile-grid.json
    return $status
}
sustained() {
    maq_cuda profile "$tools/llama.yaml" --file h100.db --sustained --budget "$1" \
        --json --output profile-sustained.json
    local status=$?
    "$py" "$tools/say.py" counts profile-sustained.json
    return $status
}
attention() {
    "$py" "$tools/attention.py" attention.csv ops-*.json && maq profile import attention.csv --file h100.db
}
compare_profile() {
    maq profile show h100.db >profile-show.txt
    maq profile compare h100.db --json --output profile-compare.json
    maq profile compare h100.db | tee profile-compare.txt
    "$py" "$tools/say.py" errors profile-compare.txt
}

small() { [ -z "$QUICK" ] || echo --layers 2 --vocabulary 4096 --sequence 512; }
expected() {
    mkdir -p expected
    cp "$KIT"/expected/* expected/
    if [ -z "$QUICK" ] && [ "$("$py" -c 'import torch; print(torch.__version__)')" = "$(cat expected/torch 2>/dev/null)" ]; then
        echo "computed before, with the same torch"
        return
    fi
    # shellcheck disable=SC2046 # words
    maq run --world 1 --output expected/train-run.json --json -- "$py" "$tools/train.py" expected/train.json $(small)
}
# shellcheck disable=SC2046
train() { "$py" "$tools/train.py" train-eager.json $(small) --trace trace-eager.json.gz; }
# shellcheck disable=SC2046
compiled() { "$py" "$tools/train.py" train-compiled.json $(small) --compile --trace trace-compiled.json.gz; }
graph() {
    local name
    for name in eager compiled; do
        [ ! -f "trace-$name.json.gz" ] || maq graph "trace-$name.json.gz" --times >"graph-$name.txt" 2>&1
        [ ! -f "trace-$name.json.gz" ] || maq graph "trace-$name.json.gz" --stats >>"graph-$name.txt" 2>&1
    done
    head -n 1 graph-eager.txt
}
# The same program with nobody: what its steps take where it waits for nothing.
alone() {
    RANK=0 LOCAL_RANK=0 WORLD_SIZE=1 MASTER_ADDR=127.0.0.1 MASTER_PORT=29511 "$py" "$tools/ddp.py" --out "$WORK/emulate-alone.lines"
}
# emulate NAME RANKS [OPTION...]: ranks on this GPU among a table of the others; their traces are kept.
emulate() {
    # shellcheck disable=SC2016 # for the other shell
    maq emulate expected/ddp.mqt --rank "$2" --libraries gpu --timeout 70 --json --output "emulate-$1.json" "${@:3}" \
        -- /bin/sh -c '"$@"; s=$?; cp "$(sed -n "s/^trace //p" "$MAQUETTE_RUN")" "$0-$RANK.trace"; exit $s' "live-$1" \
        "$py" "$tools/ddp.py" --out "$WORK/emulate-$1.lines"
    local status=$?
    head -c 4000 "emulate-$1.json"
    cat "emulate-$1.lines"
    return $status
}
micro() { "$py" "$tools/micro.py" micro.csv --seconds "$1" ${QUICK:+--quick}; }
compare() { "$py" "$tools/compare.py" "$WORK" "$KIT/maquette" "$tools"; }

if [ "${1:-}" = --do ]; then
    cd "$WORK" || exit 4
    "${@:2}"
    exit
fi

# --- the run ----------------------------------------------------------------------------------------------------------

out=./on-gpu-out
QUICK=
for word in "$@"; do
    case $word in
    --quick) QUICK=1 ;;
    -*)
        echo "usage: on-gpu.sh [OUT] [--quick]" >&2
        exit 2
        ;;
    *) out=$word ;;
    esac
done
KIT=${KIT:-}
for place in "$here/.." "$here/../build-on-gpu"; do
    [ -n "$KIT" ] || [ ! -f "$place/maquette" ] || KIT=$(cd "$place" && pwd)
done
chmod +x "$KIT/maquette" 2>/dev/null
[ -x "$KIT/maquette" ] || { echo "there is no kit: tools/on-gpu/pack.sh makes one" >&2; exit 4; }
mkdir -p "$out" || exit 4
out=$(cd "$out" && pwd)
WORK=$(mktemp -d "${TMPDIR:-/tmp}/on-gpu.XXXXXX") || exit 4
trap 'rm -rf "$WORK"' EXIT
mkdir "$WORK/logs"
LIBRARIES=${LIBRARIES:-$("$py" "$tools/say.py" libraries)}
export QUICK KIT WORK LIBRARIES PYTHONUNBUFFERED=1
summary=$WORK/summary.txt
printf '%-18s %-7s %7s  %s\n' step result seconds finding | tee "$summary"

# What comes back, after every step.
keep() {
    local name
    for name in summary.txt machine.json compare.txt compare.csv h100.db micro.csv; do
        [ ! -f "$WORK/$name" ] || cp -f "$WORK/$name" "$out/"
    done
    tar -czf "$WORK.tar.gz" -C "$WORK" . && mv -f "$WORK.tar.gz" "$out/on-gpu.tar.gz"
}

# step NAME SECONDS FUNCTION [ARGUMENT...]: its last line of output is its finding.
step() {
    local name=$1 seconds=$2 began=$SECONDS status result=ok left=$((limit - SECONDS)) log=$WORK/logs/$1.log finding
    shift 2
    case ",$only," in
    ,, | *,$name,*) ;;
    *) return 0 ;;
    esac
    if [ "$left" -lt 10 ]; then
        printf '%-18s %-7s %7s  %s\n' "$name" left - "no time was left" | tee -a "$summary"
        return 0
    fi
    [ "$seconds" -le "$left" ] || seconds=$left
    timeout --kill-after=5 "$seconds" bash "${BASH_SOURCE[0]}" --do "$@" >"$log" 2>&1 </dev/null
    status=$?
    [ "$status" -eq 0 ] || result=failed
    [ "$status" -ne 124 ] && [ "$status" -ne 137 ] || result=late
    finding=$(grep -v '^ *$' "$log" | tail -n 1 | cut -c 1-150)
    printf '%-18s %-7s %7d  %s\n' "$name" "$result" $((SECONDS - began)) "$finding" | tee -a "$summary"
    keep
}

# What nobody else can tell first; what can be done without is last.
step machine 100 machine
step module 60 module
step check-kernels 60 kernels
step check-nccl 60 nccl
step expected 60 expected
step train 90 train
step profile-own 45 profile_own
step profile-llama 120 profile_llama 1 2 4 8
step profile-moe 30 profile_moe
step profile-both 30 profile_both
step attention 45 attention
step alone 60 alone
step emulate-one 75 emulate one 0
step emulate-slow 75 emulate slow 0 --slow rank:2=1.5x
step emulate-two 120 emulate two 0,5
step micro 90 micro 70
step compiled 120 compiled
step graph 30 graph
step sustained 120 sustained 98
step grid 120 grid 100
step profile-compare 15 compare_profile
step compare 30 compare
cat "$summary"
keep
