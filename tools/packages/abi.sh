#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# abi.sh [--write]: the binary interface of libmaquette.so against that of the last release, by libabigail, and whether the version may stay what it
# is (CONTRIBUTING.md, "Versions"). The last release is the last tag, v*, whose checkout is built; while there is none it is the description that is
# kept in tools/packages/abi.xml.xz, which --write renews. Only what include/maquette declares counts; it is read off a build with debugging information.
set -euo pipefail
cd "$(dirname "$0")/../.."
kept=tools/packages/abi.xml.xz
jobs=${JOBS:-$(nproc)}

# describe CHECKOUT FOLDER OUT
describe() {
    TARGETS=libmaquette.so.0 "$1/tools/build.sh" "$2" "$jobs" -Dtests=disabled -Dcuda=disabled -Dmpi=disabled -Dui=disabled \
        -Dbuildtype=debug -Doptimization=0
    abidw --headers-dir "$1/include/maquette" --drop-private-types --no-show-locs --no-comp-dir-path --no-corpus-path \
        --no-architecture --exported-interfaces-only --out-file "$3" "$2/libmaquette.so.0"
}
version_of() { sed -n "s/^  version: '\(.*\)',/\1/p" "$1/meson.build"; }
# What an incompatible change has to raise: the major version, while that is 0 the minor one.
series() { case $1 in 0.*) echo "${1%.*}" ;; *) echo "${1%%.*}" ;; esac }

now=$(version_of .)
describe "$PWD" "$PWD/build-abi" build-abi/now.xml
if [ "${1:-}" = --write ]; then
    xz -9c build-abi/now.xml >"$kept"
    echo "$kept: the interface of $now"
    exit 0
fi
tag=$(git describe --tags --abbrev=0 --match 'v*' 2>/dev/null || true)
before=build-abi/kept.xml was=$now
xz -dc "$kept" >"$before"
if [ -n "$tag" ]; then
    [ -d "build-abi/$tag" ] || git clone -q --branch "$tag" . "build-abi/$tag"
    before=build-abi/$tag.xml was=$(version_of "build-abi/$tag")
    [ -f "$before" ] || describe "$PWD/build-abi/$tag" "$PWD/build-abi/$tag/build" "$before"
fi
status=0
abidiff --no-added-syms "$before" build-abi/now.xml >build-abi/report || status=$?
if [ $((status & 3)) -ne 0 ]; then
    cat build-abi/report >&2
    exit 1
fi
added=$({ abidiff "$before" build-abi/now.xml || true; } | sed -n 's/^Functions changes summary:.*, \([0-9]*\) Added.*/\1/p')
echo "against ${tag:-$kept, $now as it was described last}: ${added:-0} functions added"
if [ "$status" -ne 0 ]; then
    cat build-abi/report
    if [ -z "$tag" ]; then
        echo "$now is not released, and may: tools/packages/abi.sh --write describes it anew"
        exit 0
    elif [ "$(series "$was")" = "$(series "$now")" ]; then
        echo "what was built against $tag does not work with this: $now has to be another series than $(series "$was")" >&2
        exit 1
    fi
    echo "allowed, since $now is another series than $was"
fi
