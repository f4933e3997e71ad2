#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`make sglang-truth`: records what SGLang's scheduler decides on random requests, and lets maquette decide the same.

usage: run.py [--python PYTHON] [--first N] [--count N] [--build FOLDER]

Installs sglang (the version that src/serve was written from, without what it needs on a GPU) and what its scheduler imports by their names into a
virtual environment of the build folder, unless --python or MAQ_SGLANG_PYTHON is an interpreter that has them: about 8 GB with PyTorch, once.
SKIPPED with the reason where they cannot be had. The recordings stay in BUILD/sglang-truth; recording N is the same every time.
"""
import argparse
import os
import pathlib
import shutil
import subprocess
import sys

VERSION = "0.5.23"
HERE = pathlib.Path(__file__).resolve().parent
PROBE = "import importlib.metadata as m, torch, transformers; print(m.version('sglang'))"
# What the scheduler's modules import when they are loaded; all else that is missing is replaced (engine.py).
NEEDS = ("torch transformers numpy orjson msgspec pyzmq uvloop fastapi psutil requests pybase64 pillow ipython aiohttp setproctitle "
         "apache-tvm-ffi dill einops partial-json-parser prometheus-client pydantic").split()


def last_line(text):
    return (text.strip().splitlines() or ["?"])[-1]


def run(*command):
    return subprocess.run([str(c) for c in command], capture_output=True, text=True, check=False)


def interpreter(given, build):
    """(path, None), or (None, why there is none)."""
    if given:
        probe = run(given, "-c", PROBE)
        return (given, None) if probe.returncode == 0 else (None, f"{given} has no sglang: {last_line(probe.stderr)}")
    python = build / "sglang-truth-venv/bin/python"
    if not python.exists() and run(sys.executable, "-m", "venv", python.parent.parent).returncode:
        return None, "no virtual environment can be made here"
    if last_line(run(python, "-c", PROBE).stdout) != VERSION:
        print(f"# installing sglang {VERSION}", flush=True)
        for what in (NEEDS, ["--no-deps", f"sglang=={VERSION}"]):
            got = run(python, "-m", "pip", "install", "--quiet", *what)
            if got.returncode:
                return None, f"{what[-1]} cannot be installed: {last_line(got.stderr)}"
    return interpreter(str(python), build)


def main():
    args = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument("--python", default=os.environ.get("MAQ_SGLANG_PYTHON"))
    args.add_argument("--first", type=int, default=1000)
    args.add_argument("--count", type=int, default=50)
    args.add_argument("--build", type=pathlib.Path, default=HERE.parent.parent / "build")
    a = args.parse_args()
    python, why = interpreter(a.python, a.build.resolve())
    if not python:
        print(f"SKIPPED: {why}")
        return 0
    out = a.build / "sglang-truth"
    shutil.rmtree(out, ignore_errors=True)
    for more in ([], ["--drafts"], ["--adapters"], ["--host"]):
        record = subprocess.run([python, HERE / "record.py", "--out", out, "--first", str(a.first), "--count", str(a.count), *more],
                                stderr=subprocess.PIPE, text=True, check=False)
        if record.returncode:
            break
    files = sorted(out.glob("*.jsonl.gz"))
    if record.returncode or not files:
        print(record.stderr[-2000:], file=sys.stderr)
        print(f"SKIPPED: nothing could be recorded: {last_line(record.stderr)}")
        return 0
    return subprocess.run([a.build / "maquette", "validate", "schedule", *files], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
