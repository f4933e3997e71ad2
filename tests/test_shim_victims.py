#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""CUDA programs of tests/victims run on the zero-GPU device: they end as they should, twice with the same trace, and its
records are those of the file NAME.records beside the source (`--bless` writes it).

Needs nvcc 13 and the toolkit's libraries to link with; SKIPPED without.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import vgpu_run  # noqa: E402
from cli_case import Tap  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent / "victims"
# name of the test: source, more of nvcc's arguments
PROGRAMS = {"launches": ("launches.cu", []), "streams": ("streams.cu", []), "graphs": ("graphs.cu", []),
            "launches_per_thread": ("launches.cu", ["--default-stream", "per-thread"]), "driver": ("driver.c", [])}


def compiler():
    """nvcc of CUDA 13 and the folder of its libraries; None and why not."""
    places = [os.environ.get("CUDA_HOME"), "/usr/local/cuda"]
    found = shutil.which("nvcc") or next((f"{p}/bin/nvcc" for p in places if p and os.access(f"{p}/bin/nvcc", os.X_OK)), None)
    if found is None:
        return None, "no nvcc"
    version = re.search(r"release (\d+)", subprocess.run([found, "--version"], capture_output=True, text=True, check=False).stdout)
    if not version or version.group(1) != "13":
        return None, "nvcc is not that of CUDA 13"
    lib = pathlib.Path(found).resolve().parent.parent / "lib64"
    return (found, lib), None


def build(tools, source, more, folder):
    nvcc, lib = tools
    program = folder / "program"
    if source.endswith(".c"):
        subprocess.run([nvcc, "-arch=sm_90", "-cubin", HERE / "axpy.cu", "-o", folder / "axpy.cubin"], check=True)
        subprocess.run([nvcc, "-cudart", "shared", HERE / source, "-o", program, f"-L{lib / 'stubs'}", "-lcuda"], check=True)
        return [program, folder / "axpy.cubin"]
    subprocess.run([nvcc, "-arch=sm_90", "-cudart", "shared", *more, HERE / source, "-o", program], check=True)
    return [program]


def listing(trace):
    """One line per record; names of kernels without what mangling adds."""
    lines = []
    for r in vgpu_run.read(trace):
        if r.kind == "operator":
            continue
        words = [r.kind]
        if r.stream != 65535:
            words.append(f"stream {r.stream}")
        if r.kind == "launch":
            words.append(f"{r.op.name} grid {r.op.grid} block {r.op.block} shared {r.op.shared} bytes {r.op.bytes}")
        elif r.kind not in ("end", "sync_device", "sync_stream"):
            words.append(f"id {r.id} arg {r.arg} bytes {r.bytes}")
        if r.kind == "end":
            words.append(f"status {r.id} peak {r.bytes}")
        if r.flags:
            words.append(f"flags {r.flags}")
        words.append(f"host {r.host_ns} ns {r.ns}")
        lines.append(" ".join(words))
    return "\n".join(lines) + "\n"


def check(tools, name, bless):
    source, more = PROGRAMS[name]
    expected = HERE / f"{name}.records"
    with tempfile.TemporaryDirectory(prefix="maq-victim-") as folder:
        command = build(tools, source, more, pathlib.Path(folder))
        trace, traces = pathlib.Path(folder) / "trace", []
        for _ in range(2):
            trace.unlink(missing_ok=True)
            done = vgpu_run.run(command, trace)
            assert done.returncode == 0, f"status {done.returncode}: {done.stderr}"
            said = [line for line in done.stderr.splitlines() if "has CUDA's runtime inside" not in line]
            assert said == [] and (done.stderr == "") == (name != "driver"), done.stderr  # `driver` asks for a table that such a runtime needs
            traces.append(trace.read_bytes())
        assert traces[0] == traces[1], "the same program leaves the same bytes"
        found = listing(trace)
    if bless:
        expected.write_text(found, encoding="utf-8")
    wanted = expected.read_text(encoding="utf-8").splitlines()
    for number, (a, b) in enumerate(zip(found.splitlines(), wanted), 1):
        assert a == b, f"record {number}: {a}\nexpected: {b}"
    assert len(found.splitlines()) == len(wanted), "other records"


def main():
    tap, bless = Tap(), "--bless" in sys.argv[1:]
    tools, why = compiler()
    if tools and vgpu_run.device_library() is None:
        tools, why = None, "the device is not built under a sanitizer"
    for name in PROGRAMS:
        if tools is None:
            tap.skip(name, why)
            continue
        try:
            check(tools, name, bless)
            tap.result(True, name)
        except (AssertionError, OSError, subprocess.CalledProcessError) as error:
            tap.result(False, name, str(error))
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
