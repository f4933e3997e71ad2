#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# build.sh FOLDER JOBS [MESON OPTION...]: configures FOLDER when that is needed, and builds. Quiet unless something is wrong.
# TARGETS names what is built, if not all.
#
# Meson has no globs; which folders and tests exist is part of the configuration, so a change in that list configures again.
set -euo pipefail
cd "$(dirname "$0")/.."
folder=$1 jobs=$2
shift 2

# Where ccache is installed, what was compiled before is not compiled again, in another checkout either. It goes by the files that the
# compiler names as read: to preprocess each file first would be a fifth of a build that finds nothing.
if command -v ccache >/dev/null 2>&1; then
    export CCACHE_BASEDIR=$PWD CCACHE_NOHASHDIR=true CCACHE_DEPEND=true
    CC="ccache ${CC:-cc}"
    export CC
fi

quietly() {
    if ! "$@" >"$folder/.last-step" 2>&1; then
        grep -vE '^(Compiler for C supports|Dependency |Run-time dependency|Library |Program |Found |Host |Build |C (compiler|linker)|Cleaning|\[)' \
            "$folder/.last-step" >&2
        return 1
    fi
    grep -E -A6 'warning:' "$folder/.last-step" >&2 || true
}

mkdir -p "$folder"
listing=$(printf '%s\n' "$@" "CC=${CC:-}"; python3 tests/list_tests.py tests; ls src/*/meson.build bench/meson.build tools/embed.py 2>/dev/null || true)
if [ ! -f "$folder/build.ninja" ]; then
    quietly meson setup "$@" "$folder"
elif [ "$listing" != "$(cat "$folder/.listing" 2>/dev/null)" ]; then
    quietly meson setup --reconfigure "$@" "$folder"
fi
printf '%s\n' "$listing" >"$folder/.listing"
quietly ninja -C "$folder" -j "$jobs" ${TARGETS:-}
