#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""shim/abi against the toolkit's headers: values, sizes and offsets are equal.

The checks are compiled, not run: they are files of static assertions. SKIPPED where a header is missing.
"""
import os
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from cli_case import ROOT, Tap  # noqa: E402

CHECKS = {"abi_cuda.c": ("cuda.h", "cuda_runtime_api.h"),
          "abi_math.c": ("cublas_v2.h", "cublasLt.h", "cudnn.h", "cupti.h", "nvrtc.h")}


def toolkits(needed):
    """Folders of headers in which everything is, each once."""
    places = [pathlib.Path(os.environ[v]) for v in ("CUDA_HOME", "CUDA_PATH") if os.environ.get(v)]
    places += [pathlib.Path("/usr/local/cuda"), *sorted(pathlib.Path("/usr/local").glob("cuda-1*"))]
    found = {}
    for place in places:
        include = place / "include"
        if all((include / name).is_file() for name in needed):
            found.setdefault(include.resolve(), include)
    return list(found.values())


def main():
    tap = Tap()
    for check, needed in CHECKS.items():
        found = toolkits(needed)
        if not found:
            tap.skip(check, "no CUDA toolkit with " + ", ".join(needed))
        for number, include in enumerate(found, 1):
            run = subprocess.run(["cc", "-std=c17", "-D_GNU_SOURCE", "-fsyntax-only", f"-I{ROOT}", "-isystem", include, ROOT / "tests/victims" / check],
                                 capture_output=True, text=True, check=False)
            tap.result(run.returncode == 0, f"{check}: shim/abi equals the headers of toolkit {number}", "\n".join(run.stderr.splitlines()[:20]))
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
