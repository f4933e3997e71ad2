#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# pack.sh BUILD KIT [PYTHON]: what tools/on-gpu.sh needs on a machine that can build nothing, in one folder.
#
# The program is linked anew with its libraries inside (their archives come with the -dev packages), so that only the C library is asked of
# the other machine. With PYTHON, an interpreter that has torch, what needs no GPU is computed here: the captured job and what the zero-GPU
# device expects of the training step.
set -euo pipefail
cd "$(dirname "$0")/../.."
build=$1 kit=$2 python=${3:-}
here=$PWD
mkdir -p "$kit/shim/gpu" "$kit/tools" "$kit/expected"
kit=$(cd "$kit" && pwd)

link=$(ninja -C "$build" -t commands maquette | tail -n 1)
for name in yaml jansson sqlite3 z expat; do
    link=${link//lib$name.so/lib$name.a}
done
link=${link//libyajl.so/libyajl_s.a}
(cd "$build" && eval "${link/-o maquette/-o $kit/maquette}")
strip "$kit/maquette"
cp "$build"/src/measure/cuda/libmaquette-cuda.so "$kit/"
cp "$build"/shim/libmaquette-vgpu-13.so "$build"/shim/libmaquette-clock.so "$kit/shim/"
cp "$build"/shim/gpu/libmaquette-nccl.so "$kit/shim/gpu/"
nvcc=${NVCC:-/usr/local/cuda/bin/nvcc}
# The module's kernels with their functions visible, for check_kernels.py.
"$nvcc" -std=c++17 -O3 -shared -cudart shared -Xcompiler=-fPIC -gencode=arch=compute_90,code=sm_90 -Iinclude -Isrc \
    src/measure/cuda/kernels.cu -o "$kit/libmaquette-kernels.so"
rm -rf "$kit/tools"
mkdir -p "$kit/tools/on-gpu"
cp tools/on-gpu.sh "$kit/tools/"
cp tools/on-gpu/*.py tools/on-gpu/*.yaml "$kit/tools/on-gpu/"
git describe --always --dirty --abbrev=12 >"$kit/commit"

if [ -n "$python" ]; then
    cd "$kit/expected"
    "$python" -c 'import torch; print(torch.__version__)' >torch
    # Under the names that the programs have there, or the job would be another one.
    "$kit/maquette" run --world 1 --json --output train-run.json -- "$python" "$here/tools/on-gpu/train.py" train.json >train.txt
    if [ ! -f ddp.mqt ] || [ "$here/tools/on-gpu/ddp.py" -nt ddp.mqt ] || [ "$here/tools/on-gpu/llama.py" -nt ddp.mqt ]; then
        rm -rf ddp.mqt*
        "$kit/maquette" capture --world 8 -o ddp.mqt --jobs 2 -- "$python" "$here/tools/on-gpu/ddp.py"
        rm -f ddp.lines
        "$kit/maquette" run --world 8 --output /dev/null -- "$python" "$here/tools/on-gpu/ddp.py" --out "$PWD/ddp.lines"
    fi
fi
du -sh "$kit"
