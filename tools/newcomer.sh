#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# newcomer.sh [REPOSITORY]: how long it takes from nothing to a picture. Clones to a temporary folder, runs the commands of README.md's first block
# as they stand, with no compiler cache, takes a screenshot of the report where there is Chromium, and prints the seconds of each step. Fails
# where the whole takes three minutes or more. Packages that are there already are not installed anew; the time counts no download of them.
set -euo pipefail
from=${1:-$(cd "$(dirname "$0")/.." && pwd)}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export CCACHE_DISABLE=1
cd "$folder"
begin=$(date +%s%N)
last=$begin
# step WHAT: the seconds since the last one.
step() {
    local now
    now=$(date +%s%N)
    awk "BEGIN { printf \"%7.1f s  %s\\n\", ($now - $last) / 1e9, \"$1\" }"
    last=$now
}

git clone -q "$from" maquette
cd maquette
step "git clone"
# The block behind the words that a newcomer looks for.
commands=$(awk '/^On a fresh Debian 12 machine/ { on = 1 } on && /^```/ { if (inside) exit; inside = 1; next } inside { sub(/ +#.*/, ""); print }' README.md)
[ -n "$commands" ] || { echo "README.md has no such block" >&2; exit 1; }
while IFS= read -r command; do
    bash -c "$command" </dev/null >"$folder/said" 2>&1 || { tail -n 20 "$folder/said" >&2; exit 1; }
    step "$command"
done <<<"$commands"
report=$(ls ./*.html)
if command -v chromium >/dev/null 2>&1; then
    chromium --headless=new --no-sandbox --disable-gpu --hide-scrollbars "--user-data-dir=$folder/profile" --window-size=1400,1000 \
        --virtual-time-budget=4000 "--screenshot=$folder/step.png" "file://$PWD/$report" >/dev/null 2>&1
    step "a screenshot, $(($(stat -c %s "$folder/step.png") / 1000)) kB"
fi
[ -s "$report" ]
last=$begin
step "in all"
[ $((($(date +%s%N) - begin) / 1000000000)) -lt 180 ] || { echo "it was to be less than three minutes" >&2; exit 1; }
