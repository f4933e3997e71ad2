#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs every example in README.md and docs/ that stands in a ```console fence.

A line that starts with `$ ` is a command (a trailing backslash continues it), what follows is its output, standard error
included. In the output `...` matches anything: alone on a line any number of lines, inside a line any text. Blanks at line
ends and the amount of blanks between words do not matter, nor what bars are made of. A command without output below it is only run. Commands of
the reader's shell (make, git, cd, sudo, pip, python3, curl, docker, ssh, srun) are shown, not run. The examples of one
file share a folder, so that one can read what an earlier one wrote.

Every line of README.md's other fences that begins with `maquette` is run too, and has to succeed. Those that run a real program are
left out (SKIP) where python3 has no PyTorch: they need it, and minutes; `make test-programs` has it.

usage: run_docs.py [FILE...]
"""
import concurrent.futures
import importlib.util
import os
import re
import sys

from cli_case import LIMIT_S, ROOT, Scratch, Tap, part_of, pathlib

TORCH = importlib.util.find_spec("torch") is not None
SHOWN = re.compile(r"^(make|git|cd|sudo|pip|python3?|curl|docker|ssh|srun|apt-get|mpirun|torchrun)\b")
BAR = re.compile("[\u2588-\u258f]+")
REAL = re.compile(r"^maquette (run|capture|emulate)\b")
ASKED = re.compile(r"^maquette \w+ job\.mqt\b") # of a job that one of them wrote, on its page
PROGRAM_S = 600 # of a real program, which starts a dozen times or more
FENCE = re.compile(r"^```([^\n]*)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def fences(text, language):
    """(line number, text) of each fence of a language."""
    for block in FENCE.finditer(text):
        if block.group(1).split(" ")[0] == language:
            yield text.count("\n", 0, block.start(2)) + 1, block.group(2)


def examples(text):
    """(line number, command, expected lines) of each command in a document."""
    for at, block in fences(text, "console"):
        command, expected, start = None, [], at
        for i, line in enumerate(block.splitlines()):
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


def plain(text):
    """The same of the lines that begin with `maquette` in fences of no language: commands without an output to compare."""
    for at, block in fences(text, ""):
        for i, line in enumerate(block.splitlines()):
            if line.startswith("maquette "):
                yield at + i, re.sub(r"\s+# .*", "", line), []


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
    """(name, whether it held or None, what to say) of each command of a page, in order: later ones may read what earlier ones wrote."""
    found, real = [], False
    text = file.read_text(encoding="utf-8")
    with Scratch() as scratch:
        for line, command, expected in [*examples(text), *(plain(text) if file.resolve() == (ROOT / "README.md").resolve() else ())]:
            name = f"{file.name}:{line} {command[:70].replace('#', ' ')}"
            if SHOWN.match(command):
                continue
            real = real or REAL.match(command) is not None
            if (REAL.match(command) or (real and ASKED.match(command))) and not TORCH:
                found.append((name, None, "python3 has no PyTorch"))
                continue
            out, _, status = scratch.run(command + " 2>&1", limit_s=PROGRAM_S if REAL.match(command) else LIMIT_S)
            expected = [scratch.normalise(l.encode()) for l in expected]
            while expected and not expected[-1].strip():
                expected.pop()
            crashed = status >= 70
            missing = not expected and status != 0
            good = not crashed and not missing and (not expected or pattern(expected).fullmatch(out) is not None)
            found.append((name, good, "" if good else f"exit status {status}; output:\n{out[-8000:]}"))
    return found


def main():
    pages = sorted([ROOT / "README.md", *(ROOT / "docs").glob("**/*.md")], key=lambda page: (-page.stat().st_size, page)) # parts alike
    files = [pathlib.Path(a) for a in sys.argv[1:]] or part_of(pages)
    tap = Tap()
    with concurrent.futures.ThreadPoolExecutor(1 if "MAQ_PART" in os.environ else 2) as pool:
        for found in pool.map(outcomes, [file for file in files if file.exists()]):
            for name, good, detail in found:
                if good is None:
                    tap.skip(name, detail)
                else:
                    tap.result(good, name, detail)
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
