#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# deb.sh [FOLDER]: Debian packages of this checkout, in FOLDER (build-deb), and what lintian says of them. Debian's own compiler and Python are
# used, whatever else is in PATH; through ccache where it is installed.
set -euo pipefail
cd "$(dirname "$0")/../.."
folder=${1:-build-deb}
mkdir -p "$folder"
rm -f "$folder"/*.deb "$folder"/*.buildinfo "$folder"/*.changes
tools/packages/source-tree.sh "$folder/maquette"
system=/usr/sbin:/usr/bin:/sbin:/bin
folder=$(cd "$folder" && pwd)
build=(env -i "PATH=/usr/lib/ccache:$system" "HOME=$HOME" LC_ALL=C.UTF-8 "TZ=${TZ:-UTC}" ${CCACHE_DIR:+"CCACHE_DIR=$CCACHE_DIR"} CCACHE_NOHASHDIR=true "CCACHE_BASEDIR=$folder/maquette"
    CCACHE_DEPEND=true "DEB_BUILD_OPTIONS=${DEB_BUILD_OPTIONS:-parallel=${JOBS:-$(nproc)}} noautodbgsym")
if ! (cd "$folder/maquette" && "${build[@]}" dpkg-buildpackage -b -us -uc -ui) >"$folder/log" 2>&1; then
    tail -n 60 "$folder/log" >&2
    exit 1
fi
rm -rf "$folder/maquette"
ls -l "$folder"/*.deb | awk '{ sub(".*/", "", $9); printf "%-45s %6.2f MB\n", $9, $5 / 1e6 }'
# That a first package closes no wish in Debian's list of bugs is for Debian to mind.
env "PATH=$system" lintian --tag-display-limit 0 --allow-root --suppress-tags initial-upload-closes-no-bugs --fail-on error,warning "$folder"/*.changes
