#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""fit-kernels: a known law comes back, the same rows give the same bytes, and the tables in data/fitted are those that the
program makes of the public measurements, where they are at hand (MAQ_SHARED)."""
# maq-test: long
import base64
import json
import math
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import zlib

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from cli_case import Tap  # noqa: E402

ROOT = pathlib.Path(os.environ.get("MAQ_SOURCE_ROOT", pathlib.Path(__file__).resolve().parent.parent))
PROGRAM = pathlib.Path(os.environ.get("MAQ_BUILD_ROOT", "build")) / "tools" / "fit" / "fit-kernels"
LAW = ROOT / "tests/data/kernels/h100_sxm/gemm__gemm__vllm__0.0.1.csv"


def fit(folder, source, *tables):
    subprocess.run([str(PROGRAM), str(folder), source, *map(str, tables)], check=True, stdin=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL, timeout=300)


def values_of(table):
    raw = bytearray(zlib.decompress(base64.b64decode(table["values"])))
    for i in range(1, len(raw)):
        raw[i] = (raw[i] + raw[i - 1]) & 255
    return [table["center"] + (v - 128) * table["step"] for v in raw]


def check_law(folder):
    fit(folder, "a law", LAW)
    document = json.loads((folder / "h100-sxm--vllm.json").read_text())
    (table,) = document["tables"]
    assert table["rows"] == 128 and table["kernel"] == "law", table["rows"]
    assert table["held_out"]["median"] < 0.10, table["held_out"]
    values, (ms, ns, ks, _) = values_of(table), table["knots"]
    figures = document["figures"]
    worst = 0.0
    for i, m in enumerate(ms):
        for j, n in enumerate(ns):
            for l, k in enumerate(ks):
                m_, n_, k_ = 2**m, 2**n, 2**k
                flop, size = 2 * m_ * n_ * k_, 2 * (m_ * k_ + k_ * n_ + m_ * n_)
                kept = min(size, 0.5 * figures["l2_bytes"])
                base = 2e-6 + ((flop / figures["peak_flops"]["bf16"]) ** 4
                               + (kept / figures["l2_bps"] + (size - kept) / figures["mem_bps"]) ** 4) ** 0.25
                law = 3e-6 + max(flop / 7e14, size / 2.5e12)
                worst = max(worst, abs(base * math.exp(values[(i * len(ns) + j) * len(ks) + l]) / law - 1))
    assert worst < 0.05, worst  # knots worth less than 2.8 % are dropped


def check_narrow(folder):
    """The fastest 8-bit product less its quantization; not the one of which that is most, nor the one that lacks a row of it."""
    system = folder / "h100_sxm"
    system.mkdir()
    files = {
        "gemm__gemm__trtllm__1.csv": ["gemm_dtype,m,n,k,latency", "fp8,4096,8192,8192,0.52", "fp8,4096,64,8192,0.105",
                                      "fp8,2048,8192,8192,0.01"],
        "quantize__computescale__trtllm__1.csv": ["m,k,quant_dtype,latency", "4096,8192,fp8,0.06"],
        "quantize__scale_matrix__trtllm__1.csv": ["m,k,quant_dtype,latency", "4096,8192,fp8,0.04"],
    }
    for name, lines in files.items():
        (system / name).write_text("\n".join(lines) + "\n")
    fit(folder, "rows", *(system / name for name in sorted(files)))
    figures = json.loads((folder / "h100-sxm--trtllm.json").read_text())["figures"]
    want = 2 * 4096 * 8192 * 8192 / 0.42e-3
    assert abs(figures["burst_narrow_flops"] / want - 1) < 1e-5, figures


def check_same_bytes(folder):
    for name in ("one", "two"):
        (folder / name).mkdir()
        fit(folder / name, "a law", LAW)
    assert (folder / "one/h100-sxm--vllm.json").read_bytes() == (folder / "two/h100-sxm--vllm.json").read_bytes()


def check_shipped(folder, kernels):
    """The files of one generation of devices, which stand in for one another; all of them take minutes."""
    tables = sorted(path for path in (kernels / "a100_sxm").glob("*.csv.gz") if not path.name.startswith("comm__"))
    shipped = sorted((ROOT / "data/fitted").glob("a100-80gb--*.json"))
    assert len(shipped) == 3
    fit(folder, json.loads(shipped[0].read_text())["source"], *tables)
    for path in shipped:
        assert (folder / path.name).read_bytes() == path.read_bytes(), f"{path.name} is not what fit-kernels makes"


def check_size():
    total = sum(path.stat().st_size for path in (ROOT / "data/fitted").iterdir())
    assert total < 4_000_000, total


def attempt(tap, name, check, *args):
    try:
        check(*args)
        tap.result(True, name)
    except (AssertionError, subprocess.SubprocessError, OSError, KeyError, ValueError) as error:
        tap.result(False, name, repr(error))


def main():
    tap = Tap()
    kernels = pathlib.Path(os.environ.get("MAQ_SHARED", "/nonexistent")) / "data/kernels/aiconfigurator_kernels"
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        attempt(tap, "a law comes back", check_law, folder)
        attempt(tap, "same rows, same bytes", check_same_bytes, folder)
        attempt(tap, "8-bit products without their quantization", check_narrow, folder)
        attempt(tap, "all fitted data under 4 MB", check_size)
        if re.search("asan|tsan", str(PROGRAM)):
            tap.skip("shipped tables are what the program makes", "slow under a sanitizer")
        elif kernels.is_dir():
            attempt(tap, "shipped tables are what the program makes", check_shipped, folder, kernels)
        else:
            tap.skip("shipped tables are what the program makes", "no public kernel tables beside the checkout")
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
