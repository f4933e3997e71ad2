#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A scan of 1,296 plans from Python beside the same in C (bench/sweep.c), import time, and the size of what is imported.

    PYTHONPATH=build/python bench/python-sweep.py [build]

The job is read, its plans are made and evaluated, the best is looked for. The ratio that is held against its bar is that of instructions executed by
one scan, which is the same however busy the machine is and at whatever clock it runs: what three scans execute more than one does, by valgrind's
cachegrind. CPU times are said beside it, of each side the least of fifty runs in turns; their ratio decides only where there is no valgrind.
The exit status is 1 over the bar.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

ROUNDS, RUNS, PLANS, BAR = 5, 10, 1296, 1.2
JOB = {"model": "llama-3.1-405b", "cluster": "h100-sxm:8 x 2048, rail 400G", "seq": 8192, "gbs": 2048, "layout": "balanced"}
# The last one changes fastest: the digits of bench/sweep.c, from the last one on.
AXES = {"mbs": [1, 2, 4], "cp": [1, 2, 4], "tp": [1, 2, 4, 8], "recompute": ["none", "selective", "full"], "grad_reduce_dtype": ["fp32", "bf16"],
        "tp_comm_overlap": [False, True], "zero": ["no_shard", "optim", "optim_grads_params"]}


def executed(command):
    """Instructions of one scan: `command` is given how many it makes."""
    counts = []
    for scans in ("1", "3"):
        said = subprocess.run(["valgrind", "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null", *command, scans],
                              capture_output=True, text=True, check=True, env={**os.environ, "PYTHONHASHSEED": "0"}).stderr
        counts.append(int(re.search(r"I +refs: +([0-9,]+)", said).group(1).replace(",", "")))
    return (counts[1] - counts[0]) / 2


def scans(count):
    """What is counted of the Python side."""
    import numpy  # noqa: F401
    import maquette
    for _ in range(count):
        maquette.sweep(**JOB, **AXES).best()


def main():
    if sys.argv[1:2] == ["--scans"]:
        scans(int(sys.argv[2]))
        return
    import numpy  # noqa: F401  # is not the scan's
    import maquette
    build = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "build")
    c_s, python_s = [], []
    for _ in range(ROUNDS):  # in turns: machines are noisy
        said = subprocess.run([build / "bench" / "bench-sweep", str(PLANS), str(RUNS)], capture_output=True, text=True, check=True).stdout.split()
        c_s.append(float(said[0]))
        for _ in range(RUNS):
            begin = time.process_time()
            scan = maquette.sweep(**JOB, **AXES)
            best = scan.best()
            python_s.append(time.process_time() - begin)
    assert [len(scan), scan.possible.sum()] == [PLANS, int(said[1])]
    least = {}
    for code in ("pass", "import maquette") * RUNS:
        begin = time.perf_counter()
        subprocess.run([sys.executable, "-c", code], check=True)
        least[code] = min(time.perf_counter() - begin, least.get(code, 1e9))
    imported_s = least["import maquette"] - least["pass"]
    size = sum(file.stat().st_size for file in pathlib.Path(maquette.__file__).parent.glob("*.*"))
    ratio = min(python_s) / min(c_s)
    print(f"python: {PLANS} plans in {min(python_s) * 1e3:.1f} ms, in C {min(c_s) * 1e3:.1f} ms, ratio {ratio:.2f} of CPU time; "
          f"{said[1]} possible, best {best.step_time_s:.2f} s; import {imported_s * 1e3:.0f} ms (at most 200); {size / 1e6:.1f} MB on disk")
    if shutil.which("valgrind"):
        in_c = executed([build / "bench" / "bench-sweep", str(PLANS)])
        in_python = executed([sys.executable, __file__, "--scans"])
        ratio = in_python / in_c
        print(f"python: {in_python / 1e6:.1f} million instructions a scan, in C {in_c / 1e6:.1f} million: ratio {ratio:.2f} (at most {BAR})")
    sys.exit(ratio > BAR)


if __name__ == "__main__":
    main()
