#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# reproducible.sh [deb|static|wheel...]: makes each twice of the last commit, in two folders, with another time zone, umask and number of jobs, nothing
# kept from a build before, and compares the bytes. Needs diffoscope to say what differs, not whether.
set -euo pipefail
cd "$(dirname "$0")/../.."
[ $# -gt 0 ] || set -- deb static wheel
here=$PWD
commit=$(git rev-parse HEAD)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export CCACHE_DISABLE=1
bad=0
for kind in "$@"; do
    for turn in one another/folder; do
        git clone -q "$here" "$work/$turn/maquette"
        git -C "$work/$turn/maquette" -c advice.detachedHead=false checkout -q "$commit"
        [ "$turn" = one ] || { umask 077; export TZ=Asia/Tokyo JOBS=3; }
        begin=$SECONDS
        (cd "$work/$turn/maquette" && "tools/packages/$kind.sh" "build-$kind") >"$work/log" 2>&1 || { cat "$work/log" >&2; exit 1; }
        echo "$kind, made in $((SECONDS - begin)) s"
    done
    umask 022
    for first in $(cd "$work/one/maquette/build-$kind" && find . -maxdepth 1 \( -name '*.deb' -o -name '*.whl' -o -name maquette \)); do
        if cmp "$work/one/maquette/build-$kind/$first" "$work/another/folder/maquette/build-$kind/$first"; then
            echo "same bytes: ${first#./} $(sha256sum "$work/one/maquette/build-$kind/$first" | cut -c1-16)"
        else
            bad=1
            ! command -v diffoscope >/dev/null || diffoscope "$work/one/maquette/build-$kind/$first" "$work/another/folder/maquette/build-$kind/$first" || true
        fi
    done
    rm -rf "$work/one" "$work/another"
done
exit $bad
