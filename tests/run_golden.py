#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Golden transcripts of the command line: see tests/golden/README.

usage: run_golden.py [--bless] [NAME...]
"""
import difflib
import sys

from cli_case import ROOT, Scratch, Tap

GOLDEN = ROOT / "tests" / "golden"
OWN = {"cmd", "stdin", "stdout", "stderr", "status"}


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


def main():
    args = sys.argv[1:]
    bless = "--bless" in args
    names = [a for a in args if not a.startswith("--")]
    tap = Tap()
    for cmd in sorted(GOLDEN.glob("**/cmd")):
        case = cmd.parent
        name = str(case.relative_to(GOLDEN))
        if names and name not in names:
            continue
        extra = [f for f in sorted(case.iterdir()) if f.name not in OWN and not (f.is_dir() and (f / "cmd").exists())]
        with Scratch(extra) as scratch:
            stdin = case / "stdin"
            out, err, status = scratch.run(read(cmd), stdin.read_bytes() if stdin.exists() else b"")
        if bless:
            write(case / "stdout", out, "")
            write(case / "stderr", err, "")
            write(case / "status", f"{status}\n", "0\n")
        wanted = (read(case / "stdout"), read(case / "stderr"), read(case / "status", "0\n"))
        got = (out, err, f"{status}\n")
        detail = "\n".join(diff(w, a, b) for w, a, b in zip(("stdout", "stderr", "status"), wanted, got) if a != b)
        tap.result(wanted == got, name, detail)
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
