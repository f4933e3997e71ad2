#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What clang-tidy and cppcheck have found nothing in, of the whole tree at once: the tools' versions and a hash of each file, in a file of the
tree. It needs no history: a checkout of one commit, or one that git does not trust, has less to search as well.

    tools/searched.py RECORD BUILD FILE...      the files that are to be searched, a line each
    tools/searched.py RECORD --write            what is checked out was searched: `make searched`

A file that has not changed since, and that reads no header that has (BUILD's compiler wrote down what it reads), would be searched again for
the same answer. Everything is to be searched where the record is of other versions or other checks.
"""
import functools
import hashlib
import json
import os
import pathlib
import subprocess
import sys

CHECKS = {".clang-tidy", "tools/cppcheck.suppress", "tools/lint.sh", "tools/tidy.py"}
CODE = ["include", "shim", "src"]


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


def hashes():
    """Path -> hash, of what says how is searched and of every file of code that is searched or read."""
    code = (path for folder in CODE for path in pathlib.Path(folder).rglob("*.[ch]"))
    return {path.as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()[:16] for path in sorted({*code, *map(pathlib.Path, CHECKS)})}


def changed_since(record):
    """Files that are not as `record` has them; None, for all, where nothing is known of them."""
    try:
        lines = pathlib.Path(record).read_text(encoding="utf-8").splitlines()
    except OSError:
        return None
    before = {path: known for known, path in (line.split(" ", 1) for line in lines[2:])}
    changed = {path for path, now in hashes().items() if before.get(path) != now}
    return None if lines[:2] != versions() or changed & CHECKS else changed


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
        lines = [*versions(), *(f"{known} {path}" for path, known in hashes().items())]
        pathlib.Path(record).write_text("\n".join([*lines, ""]), encoding="utf-8")
        return
    print("\n".join(sorted(sum(to_be_searched(record, sys.argv[2], sys.argv[3:]), []))))


if __name__ == "__main__":
    main()
