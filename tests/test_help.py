#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""--help fits a screen and begins with examples, --help-all has every option; for every command, in 100 columns."""
import re
import subprocess
import sys

from cli_case import PROGRAM, ROOT, Tap

SCREEN = 40  # lines


def text(*words):
    return subprocess.run([PROGRAM, *words], capture_output=True, text=True, check=False).stdout


def options(lines):
    return set(re.findall(r"^  (--?[a-z0-9-]+)", lines, re.M))


def faults(name, taken):
    brief, whole = text(*name.split(), "--help"), text(*name.split(), "--help-all")
    found = []
    if brief.count("\n") > SCREEN:
        found.append(f"--help has {brief.count(chr(10))} lines")
    listed = re.search(r"^options.*:$", brief, re.M)
    if "\nexamples:\n" not in brief or (listed and listed.start() < brief.find("\nexamples:")):
        found.append("--help does not show examples first")
    if not brief.startswith("usage: maquette " + name) or not whole.startswith("usage: maquette " + name):
        found.append("it does not begin with the usage")
    missing = taken - set(re.findall(r"--?[a-z0-9-]+", whole + text("train", "--help-all")))  # which describes the keys of a job
    if missing or options(brief) - options(whole) - options(text("train", "--help-all")):
        found.append(f"--help-all has not {sorted(missing)}")
    if "--help-all" in brief:
        if brief.count("\n") >= whole.count("\n") or len(options(brief)) < 6:
            found.append("--help is short of what is asked for most")
    elif brief != whole:
        found.append("--help leaves something out and does not say so")
    return found


def often():
    """Names in the lists of options that are asked for most, by the file of the command."""
    for path in sorted((ROOT / "src" / "cli").glob("**/*.c")):
        match = re.search(r"often\[\] = \{(.*?)NULL\}", path.read_text(encoding="utf-8"), re.S)
        if match:
            yield path.name, re.findall(r'"(--?[a-z0-9-]+)"', match.group(1))


def main():
    tap = Tap()
    top = text("--help")
    names = re.findall(r"^  ((?:serve plan|\S+)) +\S", top.split("commands:")[1].split("options:")[0], re.M)
    tap.result(top.count("\n") <= SCREEN and top.find("example:") < top.find("commands:"), "maquette --help")
    shown = text("completion", "bash")
    for name in names:
        listed = re.search(rf"^    '{name}'\) echo (--help.*?) ;;$", shown, re.M).group(1).split()
        taken = {word for word in listed if not word.startswith("--help")}
        found = faults(name, taken)
        tap.result(not found, f"maquette {name} --help", "\n".join(found))
    for file, words in often():
        name = {"plan.c": "serve plan"}.get(file, file[4:-2])
        brief = options(text(*name.split(), "--help"))
        tap.result(set(words) == brief, f"{file}: every option of its list is shown", " ".join(set(words) ^ brief))
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
