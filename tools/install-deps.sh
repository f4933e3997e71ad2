#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs what is missing to build and test maquette (`build`), to run every check as well (`all`), or to make packages of it
# (`packaging`), on Debian 12 or a system like it. Touches nothing when everything is there. Works as root or through sudo.
set -euo pipefail

what=${1:-build}
missing=()

need_command() { command -v "$1" >/dev/null 2>&1 || missing+=("$2"); }
need_library() { command -v pkg-config >/dev/null 2>&1 && pkg-config --exists "$1" || missing+=("$2"); }
has_header() { echo "#include <$1>" | "${CC:-cc}" -fsyntax-only -x c - 2>/dev/null; }
# For the python3 that is found first, or else for Debian's own.
need_python() { python3 -c "$1" 2>/dev/null || /usr/bin/python3 -c "$1" 2>/dev/null || missing+=("$2"); }
can_link() { echo 'int main(void) { return 0; }' | "$@" -x c - -o /dev/null 2>/dev/null; }

can_link "${CC:-cc}" || missing+=(gcc libc6-dev)
need_command meson meson
need_command ninja ninja-build
need_command pkg-config pkg-config
need_command python3 python3
need_command git git
need_library yaml-0.1 libyaml-dev
need_library jansson libjansson-dev
need_library yajl libyajl-dev
need_library expat libexpat1-dev
need_library zlib zlib1g-dev
need_library sqlite3 libsqlite3-dev
need_library libmicrohttpd libmicrohttpd-dev
need_library cmocka libcmocka-dev
has_header Random123/philox.h || missing+=(librandom123-dev)
[ -f /usr/share/javascript/chart.js/chart.min.js ] || missing+=(libjs-chart.js)
if [ "$what" = all ]; then
    need_command gcc gcc
    need_command clang clang
    need_command ld.lld lld
    need_command ccache ccache
    can_link clang -fsanitize=address,undefined || missing+=(clang libclang-rt-14-dev)
    need_command clang-format-14 clang-format-14
    need_command clang-tidy-14 clang-tidy-14
    need_command cppcheck cppcheck
    need_command nm binutils
    need_command protoc protobuf-compiler
    need_command cbc coinor-cbc
    need_command mpirun openmpi-bin
    need_command chromium chromium
    need_library ompi-c libopenmpi-dev
    need_python 'import cffi' python3-cffi
    need_python 'import numpy' python3-numpy
    need_python 'import os, sysconfig; os.stat(sysconfig.get_path("include") + "/Python.h")' python3-dev
fi
if [ "$what" = packaging ]; then
    need_command dh debhelper
    need_command dpkg-buildpackage dpkg-dev
    need_command fakeroot fakeroot
    need_command lintian lintian
    need_command dh_python3 dh-python
    need_command abidiff abigail-tools
    need_command mkdocs mkdocs
    [ -d /usr/share/mkdocs/themes/material ] || missing+=(mkdocs-material)
    # Debian's own Python, for which packages are made.
    /usr/bin/python3 -c 'import os, sysconfig; os.stat(sysconfig.get_path("include") + "/Python.h")' 2>/dev/null || missing+=(python3-dev)
    /usr/bin/python3 -c 'import cffi' 2>/dev/null || missing+=(python3-cffi)
    /usr/bin/python3 -m venv --help >/dev/null 2>&1 || missing+=(python3-venv)
fi
[ ${#missing[@]} -eq 0 ] && exit 0

mapfile -t missing < <(printf '%s\n' "${missing[@]}" | sort -u)
say() { printf 'maquette: %s\n' "$*" >&2; }
if ! command -v apt-get >/dev/null 2>&1; then
    say "missing: ${missing[*]} (Debian's names). Install them with your package manager and run this again."
    exit 1
fi
root=()
if [ "$(id -u)" -ne 0 ]; then
    if ! command -v sudo >/dev/null 2>&1; then
        say "missing: ${missing[*]}. Run as root: apt-get install ${missing[*]}"
        exit 1
    fi
    root=(sudo)
fi
say "installing ${missing[*]}"
apt=("${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3)
# A machine that is thrown away need not wait for each file to be on its disk.
[ "${CI:-}" = true ] && apt+=(-o Dpkg::Options::=--force-unsafe-io)
"${apt[@]}" update >/dev/null || say "the package lists could not be refreshed; trying with those at hand"
if ! "${apt[@]}" install -y --no-install-recommends "${missing[@]}" </dev/null >/tmp/maquette-apt.$$ 2>&1; then
    cat /tmp/maquette-apt.$$ >&2
    rm -f /tmp/maquette-apt.$$
    say "could not install ${missing[*]}"
    exit 1
fi
rm -f /tmp/maquette-apt.$$
