#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The two shared objects of the zero-GPU device from outside: names, version nodes, trap stubs, and the layout of device
properties for either CUDA generation."""
import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import vgpu_run  # noqa: E402
from cli_case import Tap  # noqa: E402

ROOT = pathlib.Path(os.environ.get("MAQ_SOURCE_ROOT", pathlib.Path(__file__).resolve().parent.parent))


def listed(major):
    """{name: node} of all lists that make the library of a generation."""
    names = {}
    for path in sorted((ROOT / "shim/names").glob("*.txt")):
        number = path.stem.rpartition(".")[2]
        if number in ("12", "13") and number != major:
            continue
        lines = path.read_text(encoding="utf-8").splitlines()
        node = next(line.split(": ")[1] for line in lines if line.startswith("# node"))
        names.update({line: "" if node == "-" else node for line in lines if not line.startswith("#")})
    return names


def check_names(library, major):
    out = subprocess.run(["nm", "-D", "--defined-only", library], check=True, capture_output=True, text=True).stdout
    found = {}
    for line in out.splitlines():
        kind, symbol = line.split()[1:3]
        if kind != "A":
            name, _, node = symbol.partition("@@")
            found[name] = node
    wanted = listed(major)
    assert len(wanted) > 2000, len(wanted)
    missing = [n for n in wanted if found.get(n) != wanted[n]]
    assert not missing, f"not exported as listed: {missing[:5]}"
    inner = [n for n in found if n.startswith("vg_")]
    assert not inner, f"exported, but nobody's business: {inner[:5]}"


# Runs in a process of its own: the library keeps state.
INSIDE = """
import ctypes, sys, struct
vgpu = ctypes.CDLL(sys.argv[1])
version = ctypes.c_int()
assert vgpu.cudaRuntimeGetVersion(ctypes.byref(version)) == 0
assert version.value // 1000 == int(sys.argv[2]), version.value
p = ctypes.create_string_buffer(b"\\xff" * 2048)
assert getattr(vgpu, sys.argv[3])(p, 0) == 0
raw, size = p.raw[:2048], int(sys.argv[4])
assert raw[:10] == b"Zero GPU 1" and raw[size:] == b"\\xff" * (2048 - size), "its layout is another"
assert struct.unpack_from("<Q", raw, 288)[0] == 1 << 34
assert struct.unpack_from("<ii", raw, 360) == (9, 0)
assert vgpu.cudaArrayGetInfo() == 801 and vgpu.cudaArrayGetInfo() == 801
assert vgpu.cublasCgemv_v2_64() == 15 and vgpu.cuMulticastCreate() == 801
"""


def check_inside(library, major):
    card = "device Zero GPU 1\nmemory 17179869184\ncapability 90\n"
    call, size = ("cudaGetDeviceProperties", 1008) if major == "13" else ("cudaGetDeviceProperties_v2", 1032)
    with tempfile.TemporaryDirectory(prefix="maq-vgpu-") as folder:
        path = pathlib.Path(folder) / "card"
        path.write_text(card, encoding="utf-8")
        run = subprocess.run([sys.executable, "-c", INSIDE, library, major, call, str(size)], text=True,
                             env=dict(os.environ, MAQUETTE_RUN=str(path)), capture_output=True, check=False)
    assert run.returncode == 0, run.stderr
    said = [line for line in run.stderr.splitlines() if line.startswith("maquette: ")]
    assert len(said) == 3 and "cudaArrayGetInfo (libcudart.so." in said[0], said


def check_needs(library, _):
    out = subprocess.run(["readelf", "-d", library], check=True, capture_output=True, text=True).stdout
    needed = [line.split("[")[1].rstrip("]") for line in out.splitlines() if "NEEDED" in line]
    assert set(needed) <= {"libc.so.6", "libm.so.6", "ld-linux-x86-64.so.2"}, needed


def main():
    tap = Tap()
    for major in ("13", "12"):
        library = vgpu_run.device_library(major)
        for what, check in (("names and versions", check_names), ("answers and traps", check_inside),
                            ("needs libc alone", check_needs)):
            name = f"CUDA {major}: {what}"
            if library is None:
                tap.skip(name, "the device is not built under a sanitizer")
                continue
            try:
                check(library, major)
                tap.result(True, name)
            except (AssertionError, OSError, subprocess.CalledProcessError) as error:
                tap.result(False, name, str(error))
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
