#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`maquette emulate --libraries gpu`: a rank on a GPU whose peers are a table. The GPU here is a driver that runs on the host
(tests/gpu/fake_driver.c): it shows that tables are written, found and walked; not how a real GPU keeps time.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from cli_case import ROOT, Tap  # noqa: E402

PROGRAM = os.environ.get("MAQ", "build/maquette")
BUILD = pathlib.Path(os.environ.get("MAQ_BUILD_ROOT") or pathlib.Path(PROGRAM).resolve().parent)
NEEDED = [BUILD / "shim/libmaquette-vgpu-13.so", BUILD / "shim/gpu/libmaquette-nccl.so", BUILD / "tests/libcuda.so.1",
          BUILD / "tests/libcupti.so.13"]
JOB = ["--", sys.executable, "-S", str(ROOT / "tests/victims/gpu_job.py")]


def maquette(folder, *arguments, **more):
    run = subprocess.run([PROGRAM, *arguments], cwd=folder, env=dict(os.environ, **more), capture_output=True, text=True, timeout=200)
    assert run.returncode == 0, run.stderr
    return run.stdout


def on_gpu(folder, *arguments, ranks="1", **more):
    path = f"{BUILD / 'tests'}:{os.environ.get('LD_LIBRARY_PATH', '')}"
    out = maquette(folder, "emulate", "job.mqt", "--rank", ranks, "--libraries", "gpu", *arguments, *JOB, FAKE_GPU="1", LD_LIBRARY_PATH=path, **more)
    return int(out) if ranks == "1" else [int(x) for x in out.split()]


def not_compared(folder):
    """Names of kernels on a GPU are CUPTI's, in the capture the shim's: nothing is said of the program."""
    for option, want in ((["--json"], '"compared": false'), ([], "not compared")):
        on_gpu(folder, "--output", "report", *option)
        report = (pathlib.Path(folder) / "report").read_text()
        assert want in report and "as captured" not in report, report


def traced(folder):
    """What CUPTI saw (tests/gpu/fake_cupti.c) is in the rank's trace, behind what the libnccl recorded before: a kernel of 50 us, 32 MiB."""
    on_gpu(folder, "--output", "report", "--json")
    live = json.loads((pathlib.Path(folder) / "report").read_text())["live"][0]
    assert live["device_peak_bytes"] == 32 << 20 and live["virtual_s"] > 50e-6, live
    assert live["records"] > 8, live  # and the all-reduces


def in_turn(folder, alone):
    """Two live ranks run one after the other, since they would share the GPU; each finds its peers when it does alone."""
    log = pathlib.Path(folder) / "ran"
    times = on_gpu(folder, "--output", "report", "--json", ranks="3,1", GPU_JOB_LOG=str(log))
    assert log.read_text().split() == ["begin3", "end3", "begin1", "end1"], log.read_text()
    assert len(times) == 2 and all(abs(time - alone) <= 8 for time in times), (times, alone)
    live = json.loads((pathlib.Path(folder) / "report").read_text())["live"]
    assert [rank["rank"] for rank in live] == [3, 1] and all(rank["status"] == 0 for rank in live), live


def test(folder):
    maquette(folder, "capture", "--world", "4", "-o", "job.mqt", *JOB)
    truth = [int(x) for x in maquette(folder, "run", "--world", "4", "--all", *JOB).split()]
    assert len(set(truth)) == 1 and truth[0] > 0, truth
    # the peers come when they came: however little this rank computes, it is as late as they are
    time = on_gpu(folder)
    assert abs(time - truth[0]) <= 8, (time, truth)  # cudaEventElapsedTime is a float of milliseconds
    slow = on_gpu(folder, "--slow", "rank:2=3x")
    assert slow > 1.2 * time, (slow, time)
    # a straggler that is this rank is none: it is as fast as it is
    assert on_gpu(folder, "--slow", "rank:1=3x") == time
    not_compared(folder)
    traced(folder)
    in_turn(folder, time)


def main():
    tap, name = Tap(), "a rank on a GPU among replayed ones"
    missing = [path.name for path in NEEDED if not path.exists()]
    if missing:
        tap.skip(name, f"{', '.join(missing)} is not built")
        return tap.done()
    with tempfile.TemporaryDirectory(prefix="maq-test-") as folder:
        try:
            test(folder)
            tap.result(True, name)
        except (AssertionError, OSError, ValueError, subprocess.SubprocessError) as fault:
            tap.result(False, name, f"{type(fault).__name__}: {fault}"[:2000])
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
