#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# static.sh [FOLDER]: the program as one file that needs no other, FOLDER/maquette (build-static), stripped; then whether it is one: small,
# linked to nothing, and at work in an empty root folder, where that is allowed, with the bytes of the usual build where there is one.
set -euo pipefail
cd "$(dirname "$0")/../.."
folder=${1:-build-static}
# Quiet where it works: the linker warns of SQLite's dlopen(), for extensions, which nobody calls.
said=$(tools/build.sh "$folder" "${JOBS:-$(nproc)}" -Dsingle_file=true 2>&1) || { printf '%s\n' "$said" >&2; exit 1; }
strip -o "$folder/maquette-static" "$folder/maquette"
mv "$folder/maquette-static" "$folder/maquette"
size=$(stat -c %s "$folder/maquette")
# What is in the file has terms of its own, to be handed on with it.
tools/packages/licences.sh libc6 libyaml-0-2 libjansson4 libyajl2 libexpat1 zlib1g libsqlite3-0 >"$folder/LICENCES.txt"
echo "$folder/maquette: $(awk "BEGIN { printf \"%.2f\", $size / 1e6 }") MB"
[ "$size" -lt 10000000 ] || { echo "it was to be less than 10 MB" >&2; exit 1; }
! readelf -lW "$folder/maquette" | grep -q INTERP || { echo "it asks for a loader" >&2; exit 1; }

empty=$(mktemp -d)
trap 'rm -rf "$empty"' EXIT
cp "$folder/maquette" examples/llama3-405b-16k.yaml "$empty"
if unshare -r chroot "$empty" /maquette --version >/dev/null 2>&1; then
    alone=(unshare -r chroot "$empty" /maquette)
else
    alone=(env -C "$empty" ./maquette) # where user namespaces are not allowed
fi
for ask in "train llama3-405b-16k.yaml" "serve --model llama-3.1-8b --cluster h100-sxm:1 --rate 8" "show gpus"; do
    # shellcheck disable=SC2086
    env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin "${alone[@]}" $ask >"$empty/out"
    [ ! -x build/maquette ] || env -i -C "$empty" "$PWD/build/maquette" $ask | cmp - "$empty/out"
done
echo "runs by ${alone[0]}, with nothing beside it"
