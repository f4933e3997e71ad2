#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# try-wheel.sh [WHEEL]: makes a wheel of this checkout as `pip install .` does, unless one is given, installs it into a fresh virtual environment,
# asks it something, and holds its size and import time against their bars. Needs the packages of tools/install-deps.sh and, from the package index, what
# pyproject.toml names. With ccache, what a build of the program by the same CC and OPTIONS (of meson) has compiled is not compiled again.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
if command -v ccache >/dev/null 2>&1; then
    export CCACHE_BASEDIR=$PWD CCACHE_NOHASHDIR=true CCACHE_DEPEND=true
    export CC="ccache ${CC:-cc}"
fi
python3 -m venv "$folder/venv"
if [ $# -gt 0 ]; then
    wheel=$1
else
    settings=()
    for option in ${OPTIONS:-}; do settings+=("--config-settings=setup-args=$option"); done
    "$folder/venv/bin/pip" -q --disable-pip-version-check wheel --no-deps "${settings[@]}" -w "$folder" .
    wheel=$(ls "$folder"/maquette-*.whl)
fi
"$folder/venv/bin/pip" -q --disable-pip-version-check install "$wheel"
cd "$folder"
"$folder/venv/bin/python" - "$wheel" "$root/examples/llama3-405b-16k.yaml" <<'PYTHON'
import os
import subprocess
import sys

import maquette

step = maquette.train(sys.argv[2])
assert step.fits and 6 < step.step_time_s < 7, step
size = os.path.getsize(sys.argv[1]) / 1e6
least = {}
for code in ("pass", "import maquette") * 5:
    child = subprocess.Popen([sys.executable, "-c", code])
    _, status, used = os.wait4(child.pid, 0)  # its CPU time: what runs beside it is not counted
    assert status == 0
    least[code] = min(used.ru_utime + used.ru_stime, least.get(code, 1e9))
took = least["import maquette"] - least["pass"]
print(f"wheel {size:.1f} MB (less than 15), import {took * 1e3:.0f} ms (less than 200): maquette {maquette.__version__}, step {step.step_time_s:.3f} s")
sys.exit(size >= 15 or took >= 0.2)
PYTHON
