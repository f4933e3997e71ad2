#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A kernel with a list of tensors among its parameters is one operator, whatever lies in the list's unused places."""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import vgpu_run  # noqa: E402
from cli_case import Tap  # noqa: E402

ROOT = pathlib.Path(os.environ.get("MAQ_SOURCE_ROOT", pathlib.Path(__file__).resolve().parent.parent))
THREADS = 8 * 256


def nvcc():
    return shutil.which("nvcc") or next((p for p in ("/usr/local/cuda/bin/nvcc",) if os.access(p, os.X_OK)), None)


def check(folder):
    program, trace = folder / "lists", folder / "trace"
    subprocess.run([nvcc(), "-cudart", "shared", "-arch=sm_90", "-o", program, ROOT / "tests/victims/lists.cu"], check=True)
    done = vgpu_run.run([program], trace)
    assert done.returncode == 0 and done.stderr == "", (done.returncode, done.stderr)
    launched = [r for r in vgpu_run.read(trace) if r.kind == "launch"]
    assert len(launched) == 3 and len({r.id for r in launched}) == 1, [(r.id, r.bytes) for r in launched]
    # one vector of 16 bytes read and one written by each thread
    assert launched[0].op.bytes == 2 * 16 * THREADS, launched[0].op.bytes


def main():
    tap = Tap()
    name = "a list of tensors among the parameters"
    if nvcc() is None:
        tap.skip(name, "there is no nvcc")
    elif vgpu_run.device_library() is None:
        tap.skip(name, "the device is not built under a sanitizer")
    else:
        with tempfile.TemporaryDirectory(prefix="maq-victim-") as folder:
            try:
                check(pathlib.Path(folder))
                tap.result(True, name)
            except (AssertionError, subprocess.CalledProcessError) as error:
                tap.result(False, name, str(error))
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
