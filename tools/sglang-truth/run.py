#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`make sglang-truth`: records what SGLang's scheduler decides on random requests, and lets maquette decide the same.

usage: run.py [--python PYTHON] [--first N] [--count N] [--build FOLDER]

Installs sglang (the version that src/serve was written from, without what it needs on a GPU) and what its scheduler imports by their names into a
virtual environment of the build folder, unless --python or MAQ_SGLANG_PYTHON is an interpreter that has them: about 8 GB with PyTorch, once.
SKIPPED with the reason where they cannot be had. The recordings stay in BUILD/sglang-truth; recording N is the same every time.
"""
import pathlib
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import truth  # noqa: E402

VERSION = "0.5.23"
HERE = pathlib.Path(__file__).resolve().parent
PROBE = "import importlib.metadata as m, torch, transformers; print(m.version('sglang'))"
# What the scheduler's modules import when they are loaded; all else that is missing is replaced (engine.py).
NEEDS = ("torch transformers numpy orjson msgspec pyzmq uvloop fastapi psutil requests pybase64 pillow ipython aiohttp setproctitle "
         "apache-tvm-ffi dill einops partial-json-parser prometheus-client pydantic").split()


def main():
    a = truth.arguments(__doc__, "MAQ_SGLANG_PYTHON")
    python, why = truth.interpreter(a.python, a.build.resolve(), "sglang", VERSION, PROBE,
                                    [(NEEDS[-1], NEEDS), (f"sglang=={VERSION}", ["--no-deps", f"sglang=={VERSION}"])])
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
    files = truth.recordings(record, out)
    if not files:
        return 0
    return subprocess.run([a.build / "maquette", "validate", "schedule", *files], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
