#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Kernels of code that is loaded at run time, listed by a program that does not know their names (DeepGEMM's compiler does so).

maq-test: no sanitizer
"""
import os
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from cli_case import ROOT, Tap  # noqa: E402

PROGRAM = os.environ.get("MAQ", "build/maquette")


def main():
    tap = Tap()
    done = subprocess.run([PROGRAM, "run", "--world", "1", "--", sys.executable, "-S", ROOT / "tests/victims/kernels_of.py"],
                          capture_output=True, text=True, timeout=100, check=False)
    good = done.returncode == 0 and "three kernels, three ways" in done.stdout
    tap.result(good, "kernels of a library and of a module are listed", "" if good else done.stdout + done.stderr)
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
