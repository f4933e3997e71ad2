#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""fit-collectives: the coefficients in data/fitted are those that the program makes of the public measurements, where they
are at hand (MAQ_SHARED). Their errors, which take another fit for every origin of rows, are not compared."""
# maq-test: long
import os
import pathlib
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from cli_case import Tap  # noqa: E402

ROOT = pathlib.Path(os.environ.get("MAQ_SOURCE_ROOT", pathlib.Path(__file__).resolve().parent.parent))
PROGRAM = pathlib.Path(os.environ.get("MAQ_BUILD_ROOT", "build")) / "tools" / "fit-collectives" / "fit-collectives"
NAME = "shipped coefficients are what the program makes"


def coefficients(path):
    """The lines of the file without its comments and the section of errors."""
    lines = [line for line in path.read_text().splitlines() if not line.startswith("#")]
    return lines[lines.index("generations:"):]


def main():
    tap = Tap()
    data = pathlib.Path(os.environ.get("MAQ_SHARED", "/nonexistent")) / "data"
    table, kernels = data / "measured/collectives.csv", data / "kernels/aiconfigurator_kernels"
    if re.search("asan|tsan", str(PROGRAM)):
        tap.skip(NAME, "slow under a sanitizer")
    elif not table.is_file() or not kernels.is_dir():
        tap.skip(NAME, "no public measurements beside the checkout")
    else:
        with tempfile.TemporaryDirectory() as folder:
            made = pathlib.Path(folder) / "collectives.yaml"
            subprocess.run([str(PROGRAM), str(table), str(kernels), str(made)], check=True, stdin=subprocess.DEVNULL,
                           stderr=subprocess.DEVNULL, timeout=600)
            got, want = coefficients(made), coefficients(ROOT / "data/fitted/collectives.yaml")
            differ = [f"{a} | {b}" for a, b in zip(got, want) if a != b]
            tap.result(got == want, NAME, "\n".join(differ) or f"{len(got)} lines, not {len(want)}")
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
