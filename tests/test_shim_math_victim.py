#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A program that is linked to the toolkit's cuBLAS runs on the zero-GPU device, and its trace has the products it asked for."""
import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import vgpu_run  # noqa: E402
from cli_case import Tap  # noqa: E402

ROOT = pathlib.Path(os.environ.get("MAQ_SOURCE_ROOT", pathlib.Path(__file__).resolve().parent.parent))
ACCUMULATES, BIAS, ACTIVATION = 4, 2, 8
# kind, type, out, flags, sizes, name: forward, gradient of x, gradient of the weights, the batch
EXPECTED = [
    ("gemm", "bf16", "bf16", BIAS | ACTIVATION, (4096, 2048, 1024, 1), "cublasLtMatmul tn gelu bias"),
    ("gemm", "bf16", "bf16", 0, (1024, 2048, 4096, 1), "cublasGemmEx nn"),
    ("gemm", "bf16", "bf16", ACCUMULATES, (1024, 4096, 2048, 1), "cublasGemmEx nt"),
    ("gemm", "tf32", "f32", 0, (128, 128, 64, 16), "cublasSgemmStridedBatched tn"),
]


def toolkit():
    for place in (os.environ.get("CUDA_HOME"), "/usr/local/cuda"):
        if place and (pathlib.Path(place) / "include/cublasLt.h").is_file() and \
                (pathlib.Path(place) / "lib64/libcublasLt.so").exists():
            return pathlib.Path(place)
    return None


def check(folder, cuda):
    program, trace = folder / "math", folder / "trace"
    subprocess.run(["cc", "-O1", "-isystem", cuda / "include", ROOT / "tests/victims/math.c", "-o", program,
                    f"-L{cuda / 'lib64'}", f"-Wl,-rpath-link,{cuda / 'lib64'}", "-lcublas", "-lcublasLt", "-lcudart"],
                   check=True)
    traces = []
    for _ in range(2):
        trace.unlink(missing_ok=True)
        done = vgpu_run.run([program], trace)
        assert done.returncode == 0 and done.stderr == "", (done.returncode, done.stderr)
        traces.append(trace.read_bytes())
    assert traces[0] == traces[1], "the same program leaves the same bytes"
    launched = [r for r in vgpu_run.read(trace) if r.kind == "launch"]
    found = [(r.op.kind, r.op.type, r.op.out, r.op.flags, r.op.d[:4], r.op.name) for r in launched]
    assert found == EXPECTED, found
    assert len({r.stream for r in launched}) == 1


def main():
    tap = Tap()
    cuda = toolkit()
    name = "a program linked to cuBLAS"
    if cuda is None:
        tap.skip(name, "no CUDA toolkit with cuBLAS")
    elif vgpu_run.device_library() is None:
        tap.skip(name, "the device is not built under a sanitizer")
    else:
        with tempfile.TemporaryDirectory(prefix="maq-victim-") as folder:
            try:
                check(pathlib.Path(folder), cuda)
                tap.result(True, name)
            except (AssertionError, subprocess.CalledProcessError) as error:
                tap.result(False, name, str(error))
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
