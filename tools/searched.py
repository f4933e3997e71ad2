#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What clang-tidy and cppcheck have found nothing in, of the whole tree at once: a commit and the tools' versions, in a file of the tree.

    tools/searched.py RECORD BUILD FILE...      the files that are to be searched, a line each
    tools/searched.py RECORD --write            the commit that is checked out was searched: `make searched`

A file that has not changed since, and that reads no header that has (BUILD's compiler wrote down what it reads), would be searched again for
the same answer. Everything is to be searched where the record is of other versions or other checks, or its commit is not known here.
"""
import functools
import json
import os
import pathlib
import subprocess
import sys

CHECKS = {".clang-tidy", "tools/cppcheck.suppress", "tools/lint.sh", "tools/tidy.py"}


def output(*words):
    """What a program prints; None where it fails or is not there."""
    try:
        run = subprocess.run(words, capture_output=True, text=True, check=False)
    except OSError:
        return None
    return None if run.returncode else run.stdout


def versions():
    tidy = (output("clang-tidy-14", "--version") or "").split("version ")[-1].split()
    return ["clang-tidy " + (tidy or ["?"])[0], (output("cppcheck", "--version") or "Cppcheck ?").strip().lower()]


@functools.lru_cache(maxsize=None)
def read_by_object(build):
    """Object -> the files that its compiler read, as ninja wrote them down; {} where it did not."""
    read, names = {}, []
    for line in (output("ninja", "-C", build, "-t", "deps") or "").splitlines():
        if line.startswith(" "):
            names.append(line.strip())
        elif ": #deps" in line:
            names = read.setdefault(line.split(": #deps")[0], [])
    return read


@functools.lru_cache(maxsize=None)
def from_root(folder, name):
    return os.path.relpath(os.path.realpath(os.path.join(folder, name)))


def read_by_file(build):
    """Path from the root of the tree -> all that any object made of it read, as such paths."""
    by_object, read = read_by_object(build), {}
    with open(pathlib.Path(build) / "compile_commands.json", encoding="utf-8") as commands:
        for entry in json.load(commands):
            names = by_object.get(entry["output"])
            if names:
                read.setdefault(from_root(entry["directory"], entry["file"]), set()).update(from_root(build, name) for name in names)
    return read


def changed_since(record):
    """Files that differ from the commit that `record` names, or are not in it; None, for all, where nothing is known of it."""
    try:
        commit, *of = pathlib.Path(record).read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError):
        return None
    changed, new = output("git", "diff", "--name-only", commit), output("git", "ls-files", "-o", "--exclude-standard")
    if changed is None or new is None or of != versions():
        return None
    files = set((changed + new).splitlines())
    return None if files & CHECKS else files


def to_be_searched(record, build, files):
    """Of `files`: those that changed since `record`, and those that only read what has."""
    changed = changed_since(record)
    if changed is None:
        return list(files), []
    read = read_by_file(build)
    reads_changed = [file for file in files if file not in changed and (file not in read or read[file] & changed)]
    return [file for file in files if file in changed], reads_changed


def main():
    record = sys.argv[1]
    if sys.argv[2:] == ["--write"]:
        pathlib.Path(record).write_text("\n".join([output("git", "rev-parse", "HEAD").strip(), *versions(), ""]), encoding="utf-8")
        return
    print("\n".join(sorted(sum(to_be_searched(record, sys.argv[2], sys.argv[3:]), []))))


if __name__ == "__main__":
    main()
