#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test.sh FOLDER [MESON TEST OPTION...]: runs the tests of a build folder. What failed and why comes last but one; the last
# line is `N passed, N failed`.
set -uo pipefail
cd "$(dirname "$0")/.."
folder=$1
shift
rm -f "$folder/meson-logs/testlog.json"
# One more than there are cores: tests of whole programs wait as much as they compute.
meson test -C "$folder" --num-processes $(($(nproc 2>/dev/null || echo 2) + 1)) "$@" </dev/null >"$folder/.last-test" 2>&1
grep -E '^ *[0-9]+/[0-9]+ ' "$folder/.last-test"
if [ ! -f "$folder/meson-logs/testlog.json" ]; then
    grep -q 'No suitable tests' "$folder/.last-test" && echo "0 passed, 0 failed" && exit 0
    tail -n 40 "$folder/.last-test"
fi
python3 tests/summarize.py "$folder/meson-logs/testlog.json"
