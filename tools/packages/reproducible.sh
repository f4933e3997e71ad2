#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# reproducible.sh [program|wheel|site|static|deb...]: makes each twice of the last commit, at two times, in two folders, with another time zone, locale, umask and
# number of jobs, and compares every byte. A turn keeps what it compiled for itself alone, in a cache of its own: what two kinds compile
# with the same flags is compiled once a turn. What cannot be made is said, and the others are compared all the same. Where diffoscope is installed it says what differs.
# KEEP=FOLDER keeps both checkouts there where something is not the same.
set -euo pipefail
cd "$(dirname "$0")/../.."
[ $# -gt 0 ] || set -- program wheel site static deb
here=$PWD
commit=$(git rev-parse HEAD)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
folders=(one another/folder)

# make_kind KIND: makes KIND in the checkout that is the working folder, into build-KIND.
make_kind() {
    case $1 in
        program) tools/build.sh build-program "$JOBS" -Dtests=disabled ;;
        site) { [ -x build-program/maquette ] || make_kind program; } && tools/site/build.py build-program/maquette build-site ;;
        *) "tools/packages/$1.sh" "build-$1" ;;
    esac
}

# made KIND: what of build-KIND is handed out, a line each.
made() {
    case $1 in
        program) find . -maxdepth 1 -type f \( -name maquette -o -name 'libmaquette*' -o -name '*.1' \) ;;
        site) find site -type f ;;
        *) find . -maxdepth 1 -type f \( -name '*.deb' -o -name '*.whl' -o -name maquette -o -name LICENCES.txt \) ;;
    esac | LC_ALL=C sort
}

# turn FOLDER KIND...: in a shell of its own, whose environment is the turn's.
turn() (
    root=$work/$1
    shift
    mkdir -p "$root"
    if [ "$root" = "$work/one" ]; then
        umask 022
        export TZ=UTC LC_ALL=C JOBS=2
    else
        umask 077
        export TZ=Asia/Tokyo LC_ALL=C.UTF-8 JOBS=3
    fi
    export CCACHE_DIR=$root/ccache
    unset CCACHE_REMOTE_STORAGE
    git clone -q "$here" "$root/maquette"
    cd "$root/maquette"
    git -c advice.detachedHead=false checkout -q "$commit"
    for kind in "$@"; do
        begin=$SECONDS
        make_kind "$kind" >"$root/log" 2>&1 || { tail -n 40 "$root/log" >&2; echo "$kind: not made" >&2; continue; }
        echo "$kind, made in $((SECONDS - begin)) s"
    done
)

for folder in "${folders[@]}"; do turn "$folder" "$@"; done
bad=0
for kind in "$@"; do
    for folder in "${folders[@]}"; do mkdir -p "$work/$folder/maquette/build-$kind"; done
    first=$work/${folders[0]}/maquette/build-$kind second=$work/${folders[1]}/maquette/build-$kind
    (cd "$first" && made "$kind") >"$work/first"
    (cd "$second" && made "$kind") >"$work/second"
    if [ ! -s "$work/first" ] || [ ! -s "$work/second" ]; then
        echo "$kind: nothing to compare" >&2
        bad=1
        continue
    fi
    diff "$work/first" "$work/second" >&2 || { echo "$kind: not the same files" >&2; bad=1; }
    same=0
    while IFS= read -r file; do
        if cmp "$first/$file" "$second/$file" >&2; then
            same=$((same + 1))
            [ "$kind" = site ] || echo "same bytes: ${file#./} $(sha256sum "$first/$file" | cut -c1-16)"
        else
            bad=1
            ! command -v diffoscope >/dev/null || diffoscope "$first/$file" "$second/$file" >&2 || true
        fi
    done <"$work/first"
    echo "$kind: $same of $(wc -l <"$work/first") files have the same bytes"
done
echo "took $SECONDS s"
if [ $bad -ne 0 ] && [ -n "${KEEP:-}" ]; then
    mkdir -p "$KEEP"
    for folder in "${folders[@]}"; do mkdir -p "$KEEP/$folder" && mv "$work/$folder/maquette" "$KEEP/$folder/"; done
fi
exit $bad
