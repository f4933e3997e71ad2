#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`make vllm-truth`: records what vLLM's scheduler decides on random requests, and lets maquette decide the same.

usage: run.py [--python PYTHON] [--first N] [--count N] [--build FOLDER]

Installs vllm (the version that src/serve was written from) by its name into a virtual environment of the build folder, unless --python
or MAQ_VLLM_PYTHON is an interpreter that has it: about 10 GB with PyTorch, once. SKIPPED with the reason where it cannot be had. The
recordings stay in BUILD/vllm-truth; recording N is the same every time.
"""
import argparse
import os
import pathlib
import shutil
import subprocess
import sys

VERSION = "0.33.0"
HERE = pathlib.Path(__file__).resolve().parent
PROBE = "import vllm; print(vllm.__version__)"


def last_line(text):
    return (text.strip().splitlines() or ["?"])[-1]


def run(*command):
    return subprocess.run([str(c) for c in command], capture_output=True, text=True, check=False)


def interpreter(given, build):
    """(path, None), or (None, why there is none)."""
    if given:
        probe = run(given, "-c", PROBE)
        return (given, None) if probe.returncode == 0 else (None, f"{given} has no vllm: {last_line(probe.stderr)}")
    python = build / "vllm-truth-venv/bin/python"
    if not python.exists() and run(sys.executable, "-m", "venv", python.parent.parent).returncode:
        return None, "no virtual environment can be made here"
    if last_line(run(python, "-c", PROBE).stdout) != VERSION:
        print(f"# installing vllm {VERSION}", flush=True)
        got = run(python, "-m", "pip", "install", "--quiet", f"vllm=={VERSION}")
        if got.returncode:
            return None, f"vllm {VERSION} cannot be installed: {last_line(got.stderr)}"
    return interpreter(str(python), build)


def main():
    args = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument("--python", default=os.environ.get("MAQ_VLLM_PYTHON"))
    args.add_argument("--first", type=int, default=1000)
    args.add_argument("--count", type=int, default=50)
    args.add_argument("--build", type=pathlib.Path, default=HERE.parent.parent / "build")
    a = args.parse_args()
    python, why = interpreter(a.python, a.build.resolve())
    if not python:
        print(f"SKIPPED: {why}")
        return 0
    out = a.build / "vllm-truth"
    shutil.rmtree(out, ignore_errors=True)
    record = subprocess.run([python, HERE / "record.py", "--out", out, "--first", str(a.first), "--count", str(a.count)],
                            stderr=subprocess.PIPE, text=True, check=False)
    files = sorted(out.glob("*.jsonl.gz"))
    if record.returncode or not files:
        print(record.stderr[-2000:], file=sys.stderr)
        print(f"SKIPPED: nothing could be recorded: {last_line(record.stderr)}")
        return 0
    return subprocess.run([a.build / "maquette", "validate", "schedule", *files], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
