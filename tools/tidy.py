#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""clang-tidy over many files, remembering which of them had nothing to find.

    tools/tidy.py BUILD NODES FILE...

Prints findings (not the paths to them: `clang-tidy-14 -p BUILD FILE` shows those) and exits with 1 when there is one. Nearly all of the
time is the path search of clang-analyzer, which NODES bounds per function; a file whose preprocessed text, comments included, was clean
under the same checks and bound is not searched again. What was clean is kept as empty files in a cache folder, by hash, for a month.
"""
import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import time

TIDY = "clang-tidy-14"
KEEP_S = 30 * 24 * 3600
FINDING = re.compile(r"(error|warning):")


def preprocessed(command, folder):
    """The text that the compiler sees, with comments, as bytes; None where that fails (clang-tidy will say why)."""
    words = [w for w in shlex.split(command) if w != "ccache"]
    drop = {"-o", "-MF", "-MQ", "-MT"}
    kept = [words[0]]
    for before, word in zip(words, words[1:]):
        if word not in drop | {"-c", "-MD"} and before not in drop:
            kept.append(word)
    run = subprocess.run(kept + ["-E", "-C", "-P"], cwd=folder, capture_output=True, check=False)
    return run.stdout if run.returncode == 0 else None


def check(file, entry, build, nodes, salt, cache):
    """Findings of one file; an empty list also where it is known to be clean."""
    text = preprocessed(entry["command"], entry["directory"]) if entry else None
    known = cache / hashlib.sha256(salt + text).hexdigest() if text else None
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
    findings, searched = set(), 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        jobs = [pool.submit(check, file, entries.get(os.path.realpath(file)), build, nodes, salt, cache) for file in files]
        for job in jobs:
            found, ran = job.result()
            findings.update(found)
            searched += ran
    print("\n".join(sorted(findings)) or f"{len(files)} files, {searched} searched")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
