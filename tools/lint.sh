#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# lint.sh [STEP...]: checks that need no running program. Steps: layers links licences names headers format exports tidy cppcheck. Every step runs, even
# after one failed; the last line is `N passed, N failed`.
set -uo pipefail
cd "$(dirname "$0")/.."
jobs=$(nproc 2>/dev/null || echo 2)
build=${LINT_BUILD:-build-ci-clang}
mapfile -t sources < <(find src include shim tests bench -name '*.[ch]' 2>/dev/null | sort)
mapfile -t units < <(find src shim -name '*.c' -not -path 'src/measure/cuda/*' 2>/dev/null | sort)

# LINT_BUILD names a folder that clang built already, under whatever options.
compile_commands() { [ -n "${LINT_BUILD:-}" ] || CC=clang tools/build.sh "$build" "$jobs" -Dwerror=true; }

layers() { python3 tools/check-layers.py --self-test && python3 tools/check-layers.py; }

links() { python3 tools/check-links.py --self-test && python3 tools/check-links.py; }

format() {
    if ! printf '%s\0' "${sources[@]}" | xargs -0 -P "$jobs" -n 100 clang-format-14 --dry-run -Werror 2>"$build.format"; then
        grep -E 'error:' "$build.format" | cut -d: -f1 | sort | uniq -c | sed 's/$/ places differ from clang-format-14: make format/'
        rm -f "$build.format"
        return 1
    fi
    rm -f "$build.format"
}

# Every file of code says under which licence it is.
licences() {
    local bare
    bare=$(git ls-files -co --exclude-standard src include shim tests bench tools python | grep -E '\.(c|h|cu|py|pyi|sh)$' |
        grep -vE '^tests/(golden|data|fuzz/corpus)/' | xargs grep -L 'SPDX-License-Identifier: Apache-2.0')
    [ -z "$bare" ] || { printf 'no SPDX line: %s\n' $bare; return 1; }
}

# A tag is one thing: no two files define a struct, enum or union of the same name. And a file says at its head, by its own name, what it does.
names() {
    local twice file bad=0
    twice=$(grep -rhoE '^(struct|enum|union) (maq|vg)_[a-z0-9_]+ \{' src include shim | sort | uniq -d)
    [ -z "$twice" ] || { grep -rnF "$twice" src include shim; bad=1; }
    for file in $(find src include shim -name '*.[ch]'); do
        head -n 4 "$file" | grep -qE "[ /]${file##*/} - " || { echo "$file: its head does not name it"; bad=1; }
    done
    ! grep -rnE --include='*.[ch]' '\.[ch] - [Ss]ee [a-z_/]+\.h' src include shim tests bench tools || bad=1
    return $bad
}

# Each public header stands alone, in C and in C++.
headers() {
    local header bad=0
    for header in include/maquette/*.h; do
        clang -std=c17 -Wall -Wextra -Wpedantic -Werror -Wno-pragma-once-outside-header -Iinclude -fsyntax-only -x c "$header" || bad=1
        clang -std=c++17 -Wall -Wextra -Werror -Wno-pragma-once-outside-header -Iinclude -fsyntax-only -x c++ "$header" || bad=1
    done
    return $bad
}

tidy() {
    compile_commands || return 1
    # Headers of the CUDA toolkit are there only where its module is built.
    ! grep -q src/measure/cuda/ "$build/compile_commands.json" || mapfile -t -O ${#units[@]} units < <(ls src/measure/cuda/*.c)
    tools/tidy.py ${SEARCHED:+--searched "$SEARCHED"} "$build" "${TIDY_NODES:-225000}" "${units[@]}" # nodes: clang's own bound of a path search
}

# Files with conditions of their own are looked at under each of them, the others under ours alone: else every file would be looked at
# anew for each condition of each header.
cppcheck_all() {
    # What cppcheck found in files that have not changed since: where the machine keeps it, half a minute becomes a second.
    local cache=${XDG_CACHE_HOME:-$HOME/.cache}/maquette-cppcheck bad=0 plain=() conditional=() file
    # SEARCHED: a record of what was searched before (tools/searched.py), to be left out.
    for file in $(find src -name '*.c' | sort | if [ -n "${SEARCHED:-}" ]; then xargs tools/searched.py "$SEARCHED" "$build"; else cat; fi); do
        if grep -qE '^ *# *(if|ifdef|ifndef)\b' "$file"; then conditional+=("$file"); else plain+=("$file"); fi
    done
    [ ${#plain[@]} -eq 0 ] || cppcheck_of "$cache" "${plain[@]}" || bad=1
    [ ${#conditional[@]} -eq 0 ] || cppcheck_of "$cache-conditional" --force "${conditional[@]}" || bad=1
    return $bad
}

cppcheck_of() {
    local folder=$1
    shift
    mkdir -p "$folder"
    cppcheck --std=c11 --enable=warning,performance,portability --inline-suppr --suppressions-list=tools/cppcheck.suppress \
        --error-exitcode=1 --quiet --cppcheck-build-dir="$folder" -j "$jobs" -D_GNU_SOURCE -D__GNUC__=12 -DMAQ_VERSION='""' -Iinclude -Isrc "$@"
}

# The shared library exports maq_* and nothing else, and each of these is declared in a public header.
exports() {
    compile_commands || return 1
    local lib=$build/libmaquette.so bad=0 symbol
    [ -f "$lib" ] || { echo "no $lib"; return 1; }
    while read -r symbol; do
        case $symbol in
        MAQ_0) ;;
        maq__* | [!m]* | m[!a]*) echo "exported, but not a public name: $symbol"; bad=1 ;;
        *) grep -qrw "$symbol" include/maquette || { echo "exported, but in no public header: $symbol"; bad=1; } ;;
        esac
    done < <(nm -D --defined-only "$lib" | awk '{ print $3 }' | sed 's/@.*//')
    return $bad
}

passed=0 failed=0
wanted=("$@")
[ $# -gt 0 ] || wanted=(layers links licences names headers format exports tidy cppcheck)
for step in "${wanted[@]}"; do
    run=$step
    [ "$step" = cppcheck ] && run=cppcheck_all
    if output=$("$run" 2>&1); then
        passed=$((passed + 1))
        echo "ok     $step"
    else
        failed=$((failed + 1))
        echo "failed $step"
        printf '%s\n' "$output" | tail -n 80
    fi
done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
