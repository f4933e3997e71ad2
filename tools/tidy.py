#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""clang-tidy over many files, remembering which of them had nothing to find.

    tools/tidy.py [--searched FILE] BUILD NODES FILE...

Prints findings (not the paths to them: `clang-tidy-14 -p BUILD FILE` shows those) and exits with 1 when there is one. Most of the time is
the path search of clang-analyzer, which NODES bounds per function. FILE says what was searched to NODES with nothing found
(tools/searched.py): what has not changed since is not searched, and a file of which only a header has, to a tenth of NODES.

A file that was clean is not searched again under the same checks, bound and command while neither it nor a header changes that its
compiler read (BUILD knows them, once it is built). What was clean is kept as empty files in a cache folder, by hash, for a month.
"""
import argparse
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

import searched

TIDY = "clang-tidy-14"
BATCH = 8
KEEP_S = 30 * 24 * 3600
FINDING = re.compile(r"(error|warning):")


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


class Search:
    """What one run asks of every file."""

    def __init__(self, build, cache, salt):
        with open(pathlib.Path(build) / "compile_commands.json", encoding="utf-8") as commands:
            self.entries = {os.path.realpath(os.path.join(e["directory"], e["file"])): e for e in json.load(commands)}
        self.build, self.cache, self.salt = build, cache, salt
        self.read = searched.read_by_object(build)

    def known(self, file, nodes):
        """Where it is kept that `file` was clean; None where its compiler's reading is not known."""
        entry = self.entries.get(os.path.realpath(file))
        seen = seen_by_compiler(entry, self.read) if entry else None
        return self.cache / hashlib.sha256(self.salt + b"%d" % nodes + seen).hexdigest() if seen else None

    def batch(self, files, nodes):
        """Findings of some files, in one process: starting one costs as much as reading a file."""
        extra = [f"--extra-arg={word}" for word in ("-Xclang", "-analyzer-config", "-Xclang", f"max-nodes={nodes}")]
        run = subprocess.run([TIDY, "--quiet", "-p", self.build, *extra, *files], capture_output=True, text=True, check=False)
        found = [line for line in run.stdout.splitlines() if FINDING.search(line)]
        if run.returncode and not found:
            if len(files) > 1:
                return [line for file in files for line in self.batch([file], nodes)]
            return [f"{files[0]}: {TIDY} failed: {(run.stderr.strip().splitlines() or ['it said nothing'])[-1]}"]
        where = {os.path.realpath(line.split(":")[0]) for line in found}
        elsewhere = where - {os.path.realpath(file) for file in files}  # in a header, of whichever of them
        for file in files:
            known = self.known(file, nodes)
            if known and not elsewhere and os.path.realpath(file) not in where:
                known.touch()
        return found


def main():
    words = argparse.ArgumentParser()
    words.add_argument("--searched")
    words.add_argument("build")
    words.add_argument("nodes", type=int)
    words.add_argument("files", nargs="+")
    words = words.parse_args()
    cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "maquette-tidy"
    cache.mkdir(parents=True, exist_ok=True)
    for path in cache.iterdir():
        if path.stat().st_mtime < time.time() - KEEP_S:
            path.unlink(missing_ok=True)
    version = subprocess.run([TIDY, "--version"], capture_output=True, check=True).stdout
    search = Search(words.build, cache, version + pathlib.Path(".clang-tidy").read_bytes())
    changed, reads_changed = searched.to_be_searched(words.searched, words.build, words.files) if words.searched else (words.files, [])
    wanted = {}
    for file, nodes in [(file, words.nodes) for file in changed] + [(file, words.nodes // 10) for file in reads_changed]:
        known = search.known(file, nodes)
        if known and known.exists():
            os.utime(known)
        else:
            wanted.setdefault(nodes, []).append(file)
    findings = set()
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        jobs = [pool.submit(search.batch, files[i:i + BATCH], nodes)
                for nodes, files in sorted(wanted.items(), reverse=True) for i in range(0, len(files), BATCH)]
        for job in jobs:
            findings.update(job.result())
    told = ", ".join(f"{len(files)} searched to {nodes} nodes" for nodes, files in sorted(wanted.items(), reverse=True))
    print("\n".join(sorted(findings)) or f"{len(words.files)} files: {told or 'all known to be clean'}")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
