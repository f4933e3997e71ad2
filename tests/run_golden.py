#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Golden transcripts of the command line: see tests/golden/README.

usage: run_golden.py [--bless] [NAME...]

Of a build under a sanitizer (MAQ_SANITIZED) the cases that have a file `long` are left out: seconds of search and of draws, which unit tests
do there too.
"""
import concurrent.futures
import difflib
import os
import sys

from cli_case import ROOT, Scratch, Tap, part_of

GOLDEN = ROOT / "tests" / "golden"
OWN = {"cmd", "stdin", "stdout", "stderr", "status", "long"}


def read(path, default=""):
    return path.read_text(encoding="utf-8") if path.exists() else default


def write(path, text, default):
    if text != default:
        path.write_text(text, encoding="utf-8")
    elif path.exists():
        path.unlink()


def diff(what, want, got):
    lines = difflib.unified_diff(want.splitlines(), got.splitlines(), f"{what} expected", f"{what} got", lineterm="")
    return "\n".join(lines)


def play(case):
    """(stdout, stderr, status) of a transcript's command."""
    extra = [f for f in sorted(case.iterdir()) if f.name not in OWN and not (f.is_dir() and (f / "cmd").exists())]
    with Scratch(extra) as scratch:
        stdin = case / "stdin"
        return scratch.run(read(case / "cmd"), stdin.read_bytes() if stdin.exists() else b"")


def main():
    args = sys.argv[1:]
    bless = "--bless" in args
    names = [a for a in args if not a.startswith("--")]
    cases = [cmd.parent for cmd in sorted(GOLDEN.glob("**/cmd")) if not names or str(cmd.parent.relative_to(GOLDEN)) in names]
    if os.environ.get("MAQ_SANITIZED") and not names:
        cases = [case for case in cases if not (case / "long").exists()]
    cases = part_of(cases)
    tap = Tap()
    with concurrent.futures.ThreadPoolExecutor(1 if "MAQ_PART" in os.environ else 2) as pool:
        for case, (out, err, status) in zip(cases, pool.map(play, cases)):
            if bless:
                write(case / "stdout", out, "")
                write(case / "stderr", err, "")
                write(case / "status", f"{status}\n", "0\n")
            wanted = (read(case / "stdout"), read(case / "stderr"), read(case / "status", "0\n"))
            got = (out, err, f"{status}\n")
            detail = "\n".join(diff(w, a, b) for w, a, b in zip(("stdout", "stderr", "status"), wanted, got) if a != b)
            tap.result(wanted == got, str(case.relative_to(GOLDEN)), detail)
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
