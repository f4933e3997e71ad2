#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# same-bytes.sh PROGRAM PROGRAM: both give the same bytes for the same input (what names the compiler left out). One is built by gcc, the other by clang.
set -euo pipefail
cd "$(dirname "$0")/.."
a=$1 b=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
jobs=(
    "examples/llama3-405b-16k.yaml"
    "--model deepseek-v3 --cluster h800:8x256,rail --pp 16 --ep 64 --gbs 15360 --schedule dualpipe --precision fp8-blockwise --layout balanced --dispatcher deepep"
    "--model llama-3-8b --cluster h100-sxm:8x4,rail --zero 3 --cp 2 --seq 32768 --gbs 64 --recompute full"
    "--model nemotron-h-56b --cluster gb200:4x18 --tp 4 --gbs 144 --precision mxfp8"
)
for i in "${!jobs[@]}"; do
    read -ra job <<<"${jobs[$i]}"
    for side in a b; do # a plan that does not fit is an answer too
        "${!side}" train "${job[@]}" --json --trace "$work/$side.pftrace" >"$work/$side.json" || [ $? -eq 1 ]
        sed -i -E '/"(compiler|commit|version)":/d' "$work/$side.json"
        [ -s "$work/$side.json" ]
    done
    cmp "$work/a.json" "$work/b.json"
    cmp "$work/a.pftrace" "$work/b.pftrace"
done
