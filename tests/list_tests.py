#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Lists the tests in a folder for tests/meson.build, one `kind name suite length builds` per line, sorted.

kinds:  unit    test_NAME.c     cmocka program
        script  test_NAME.py    prints TAP
        fuzz    fuzz/fuzz_NAME.c  defines LLVMFuzzerTestOneInput
suite:  `threads` when the file has a line that contains `maq-test: threads` (such tests also run under TSan), else `plain`
length: `long` with a line that contains `maq-test: long` (ten seconds of CPU and more: begun first, so that it does not end alone), else
        `short`
builds: `plain` with a line that contains `maq-test: no sanitizer` (it runs the program from outside with jobs that other tests run too, or
        programs of others), else `all`
"""
import pathlib
import sys


def marks(path):
    text = path.read_text(encoding="utf-8", errors="replace")
    return ("threads" if "maq-test: threads" in text else "plain", "long" if "maq-test: long" in text else "short",
            "plain" if "maq-test: no sanitizer" in text else "all")


def main():
    here = pathlib.Path(sys.argv[1])
    for kind, pattern in (("unit", "test_*.c"), ("script", "test_*.py"), ("fuzz", "fuzz/fuzz_*.c")):
        for path in sorted(here.glob(pattern)):
            print(kind, path.stem, *marks(path))


if __name__ == "__main__":
    main()
