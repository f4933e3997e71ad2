#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""clang-tidy over many files, remembering which of them had nothing to find.

    tools/tidy.py BUILD NODES FILE...

Prints findings (not the paths to them: `clang-tidy-14 -p BUILD FILE` shows those) and exits with 1 when there is one. Nearly all of the
time is the path search of clang-analyzer, which NODES bounds per function; a file that was clean is not searched again under the same
checks, bound and command while neither it nor a header changes that its compiler read (BUILD knows them, once it is built). What was
clean is kept as empty files in a cache folder, by hash, for a month.
"""
import concurrent.futures
import functools
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys
import time

TIDY = "clang-tidy-14"
KEEP_S = 30 * 24 * 3600
FINDING = re.compile(r"(error|warning):")


def read_by_object(build):
    """Object -> the files that its compiler read, as ninja wrote them down; {} where it did not."""
    run = subprocess.run(["ninja", "-C", build, "-t", "deps"], capture_output=True, text=True, check=False)
    read, names = {}, []
    for line in run.stdout.splitlines():
        if line.startswith(" "):
            names.append(line.strip())
        elif ": #deps" in line:
            names = read.setdefault(line.split(": #deps")[0], [])
    return read


@functools.lru_cache(maxsize=None)
def digest_of(path):
    return hashlib.sha256(pathlib.Path(path).read_bytes()).digest()


def seen_by_compiler(entry, read):
    """A hash of the command and of all that it read, wherever the checkout lies; None where that is not known: a file that was not
    compiled, or has gone."""
    here = os.getcwd()
    names = read.get(entry["output"])
    if not names:
        return None
    seen = hashlib.sha256(entry["command"].replace(here, "").encode())
    try:
        for name in names:
            path = os.path.realpath(os.path.join(entry["directory"], name))
            seen.update(name.replace(here, "").encode() + digest_of(path))
    except OSError:
        return None
    return seen.digest()


def check(file, entry, build, nodes, salt, cache, read):
    """Findings of one file; an empty list also where it is known to be clean."""
    seen = seen_by_compiler(entry, read) if entry else None
    known = cache / hashlib.sha256(salt + seen).hexdigest() if seen else None
    if known and known.exists():
        os.utime(known)
        return [], False
    extra = [f"--extra-arg={word}" for word in ("-Xclang", "-analyzer-config", "-Xclang", f"max-nodes={nodes}")]
    run = subprocess.run([TIDY, "--quiet", "-p", build, *extra, file], capture_output=True, text=True, check=False)
    found = [line for line in run.stdout.splitlines() if FINDING.search(line)]
    if run.returncode and not found:
        found = [f"{file}: {TIDY} failed: {(run.stderr.strip().splitlines() or ['it said nothing'])[-1]}"]
    if known and not found:
        known.touch()
    return found, True


def main():
    build, nodes, files = sys.argv[1], sys.argv[2], sys.argv[3:]
    cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "maquette-tidy"
    cache.mkdir(parents=True, exist_ok=True)
    for path in cache.iterdir():
        if path.stat().st_mtime < time.time() - KEEP_S:
            path.unlink(missing_ok=True)
    version = subprocess.run([TIDY, "--version"], capture_output=True, check=True).stdout
    salt = version + pathlib.Path(".clang-tidy").read_bytes() + nodes.encode()
    with open(pathlib.Path(build) / "compile_commands.json", encoding="utf-8") as commands:
        entries = {os.path.realpath(os.path.join(e["directory"], e["file"])): e for e in json.load(commands)}
    read = read_by_object(build)
    findings, searched = set(), 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        jobs = [pool.submit(check, file, entries.get(os.path.realpath(file)), build, nodes, salt, cache, read) for file in files]
        for job in jobs:
            found, ran = job.result()
            findings.update(found)
            searched += ran
    print("\n".join(sorted(findings)) or f"{len(files)} files, {searched} searched")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
