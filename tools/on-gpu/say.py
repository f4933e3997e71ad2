#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Small words of tools/on-gpu.sh.

    say.py libraries             folders of CUDA's libraries, PyTorch's own first
    say.py machine OUT.json      what machine this is
    say.py counts PROFILE.json   what came of a measurement: the last line is its finding
    say.py errors COMPARE.txt    of `maquette profile compare`: its rows in one line
"""
import importlib.util
import json
import pathlib
import platform
import re
import subprocess
import sys


def libraries():
    spec = importlib.util.find_spec("nvidia")
    roots = list(spec.submodule_search_locations or []) if spec else []
    found = [str(folder) for root in roots for folder in sorted(pathlib.Path(root).glob("*/lib"))]
    print(":".join(found + ["/usr/local/cuda/lib64"]))


def smi(*fields):
    try:
        done = subprocess.run(["nvidia-smi", "--query-gpu=" + ",".join(fields), "--format=csv,noheader"], capture_output=True, text=True,
                              check=False)
    except OSError:
        return {}
    return dict(zip(fields, (value.strip() for value in done.stdout.splitlines()[0].split(",")))) if done.returncode == 0 and done.stdout else {}


def version(module):
    try:
        return __import__(module).__version__
    except Exception as fault:  # noqa: BLE001 - a broken package is a finding
        return f"{type(fault).__name__}"


def machine(out):
    fields = ("name driver_version vbios_version memory.total pcie.link.gen.current pcie.link.width.current power.limit power.draw "
              "clocks.sm clocks.mem clocks.max.sm clocks.max.mem temperature.gpu persistence_mode ecc.mode.current mig.mode.current "
              "compute_mode").split()
    cpu = re.search(r"model name\s*:\s*(.*)", pathlib.Path("/proc/cpuinfo").read_text())
    known = {"gpu": smi(*fields), "cpu": cpu.group(1) if cpu else None, "kernel": platform.release(), "libc": platform.libc_ver()[1],
             "python": platform.python_version(), "versions": {name: version(name) for name in ("torch", "triton", "numpy", "transformers")}}
    try:
        import torch
        p = torch.cuda.get_device_properties(0)
        known["torch"] = {"cuda": torch.version.cuda, "cudnn": torch.backends.cudnn.version(), "nccl": torch.cuda.nccl.version(),
                          "name": p.name, "sms": p.multi_processor_count, "total_memory": p.total_memory, "l2": p.L2_cache_size,
                          "mem_get_info": torch.cuda.mem_get_info()}
    except Exception as fault:  # noqa: BLE001
        known["torch"] = str(fault)
    pathlib.Path(out).write_text(json.dumps(known, indent=1) + "\n")
    gpu = known["gpu"]
    print(f"{gpu.get('name')}, driver {gpu.get('driver_version')}, {gpu.get('power.limit')}, {known['cpu']}, "
          f"torch {known['versions']['torch']}, cuDNN {known['torch'].get('cudnn') if isinstance(known['torch'], dict) else '-'}")


def counts(path):
    d = json.loads(pathlib.Path(path).read_text())
    reasons = {}
    for item in d["items"]:
        if item["state"] in ("refused", "skipped"):
            reasons.setdefault(item["why"], []).append(f"{item['kind']} {item.get('flags', '')}".strip())
    for why, kinds in reasons.items():
        print(f"{len(kinds)} x {why}: {', '.join(sorted(set(kinds)))}")
    c = d["counts"]
    print(f"{d['gpu']}: " + ", ".join(f"{c[name]} {name}" for name in ("measured", "held", "refused", "skipped", "left")))


def errors(path):
    lines = pathlib.Path(path).read_text().splitlines()
    rows = []
    for line in lines[2:]:
        if not line.strip():
            break
        rows.append(line.split())
    print("; ".join(f"{r[0]} {r[2]} rows {r[3]} %" for r in rows))


if __name__ == "__main__":
    {"libraries": libraries, "machine": machine, "counts": counts, "errors": errors}[sys.argv[1]](*sys.argv[2:])
