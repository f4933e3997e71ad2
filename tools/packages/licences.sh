#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# licences.sh PACKAGE...: the terms of what is put into one file with maquette, as Debian has them, for who hands that file on.
set -euo pipefail
cd "$(dirname "$0")/../.."
cat NOTICE
for package in "$@"; do
    printf '\n\n======== %s %s\n\n' "$package" "$(dpkg-query -W -f '${Version}' "$package")"
    cat "/usr/share/doc/$package/copyright"
done
