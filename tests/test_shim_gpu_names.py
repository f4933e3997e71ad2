#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The libnccl.so.2 for a real GPU has every name of NCCL's: Python loads extensions with RTLD_NOW, so one that is missing is a program
that does not start.
"""
import ctypes
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from cli_case import ROOT, Tap  # noqa: E402

BUILD = pathlib.Path(os.environ.get("MAQ_BUILD_ROOT") or ROOT / "build")
LIBRARY = BUILD / "shim/gpu/libmaquette-nccl.so"


def main():
    tap, name = Tap(), "every name of NCCL"
    if not LIBRARY.exists():
        tap.skip(name, f"{LIBRARY.name} is not built")
        return tap.done()
    library = ctypes.CDLL(str(LIBRARY), mode=os.RTLD_NOW | os.RTLD_LOCAL)
    names = [line for line in (ROOT / "shim/names/libnccl.2.txt").read_text().splitlines() if not line.startswith("#")]
    missing = [name for name in names if not hasattr(library, name)]
    tap.result(len(names) > 100 and not missing, name, ", ".join(missing))
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
