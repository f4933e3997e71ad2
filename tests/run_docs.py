#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs every example in README.md and docs/ that stands in a ```console fence.

A line that starts with `$ ` is a command (a trailing backslash continues it), what follows is its output, standard error
included. In the output `...` matches anything: alone on a line any number of lines, inside a line any text. Blanks at line
ends and the amount of blanks between words do not matter, nor what bars are made of. A command without output below it is only run. Commands of
the reader's shell (make, git, cd, sudo, pip, python3, curl, docker, ssh, srun) are shown, not run. The examples of one
file share a folder, so that one can read what an earlier one wrote.

usage: run_docs.py [FILE...]
"""
import concurrent.futures
import re
import sys

from cli_case import ROOT, Scratch, Tap, pathlib

SHOWN = re.compile(r"^(make|git|cd|sudo|pip|python3?|curl|docker|ssh|srun|apt-get|mpirun|torchrun)\b")
BAR = re.compile("[\u2588-\u258f]+")
FENCE = re.compile(r"^```console[^\n]*\n(.*?)^```", re.MULTILINE | re.DOTALL)


def examples(text):
    """(line number, command, expected lines) of each command in a document."""
    for block in FENCE.finditer(text):
        at = text.count("\n", 0, block.start(1)) + 1
        command, expected, start = None, [], at
        for i, line in enumerate(block.group(1).splitlines()):
            if command is not None and command.endswith("\\") and not expected:
                command = command[:-1] + line.strip()
            elif line.startswith("$ "):
                if command is not None:
                    yield start, command, expected
                command, expected, start = line[2:], [], at + i
            elif command is not None:
                expected.append(line)
        if command is not None:
            yield start, command, expected


def pattern(expected):
    """Regular expression for the expected output."""
    parts = []
    for line in expected:
        if line.strip() == "...":
            parts.append(r"(?:[^\n]*\n)*?")
        else:
            words = ["(?:#+|[\u2588-\u258f]+)" if BAR.fullmatch(word) else
                     ".*?".join(re.escape(piece) for piece in word.split("...")) for word in line.split()]
            parts.append(r"[ \t]*" + r"[ \t]+".join(words) + r"[ \t]*\n")
    return re.compile(r"\s*" + "".join(parts) + r"\s*")


def outcomes(file):
    """(name, whether it held, what to say) of each command of a page, in order: later ones may read what earlier ones wrote."""
    found = []
    with Scratch() as scratch:
        for line, command, expected in examples(file.read_text(encoding="utf-8")):
            name = f"{file.name}:{line} {command[:70].replace('#', ' ')}"
            if SHOWN.match(command):
                continue
            out, _, status = scratch.run(command + " 2>&1")
            expected = [scratch.normalise(l.encode()) for l in expected]
            while expected and not expected[-1].strip():
                expected.pop()
            crashed = status >= 70
            missing = not expected and status != 0
            good = not crashed and not missing and (not expected or pattern(expected).fullmatch(out) is not None)
            found.append((name, good, "" if good else f"exit status {status}; output:\n{out}"))
    return found


def main():
    files = [pathlib.Path(a) for a in sys.argv[1:]] or [ROOT / "README.md", *sorted((ROOT / "docs").glob("**/*.md"))]
    tap = Tap()
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for found in pool.map(outcomes, [file for file in files if file.exists()]):
            for name, good, detail in found:
                tap.result(good, name, detail)
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
