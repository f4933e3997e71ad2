#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# source-tree.sh FOLDER: a source tree of this checkout, as a release would have it: what git does not ignore, as it lies here, with the commit in .commit,
# and every file of the date of the commit. FOLDER is made anew.
set -euo pipefail
cd "$(dirname "$0")/../.."
folder=$1
rm -rf "$folder"
mkdir -p "$folder"
git ls-files -co --exclude-standard -z | while IFS= read -r -d '' file; do [ ! -e "$file" ] || printf '%s\0' "$file"; done |
    tar --null -T - -c --mtime="@$(git log -1 --format=%ct)" -f - | tar -x -C "$folder" -f -
tools/packages/commit.sh >"$folder/.commit.new"
mv "$folder/.commit.new" "$folder/.commit"
