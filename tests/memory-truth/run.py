#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`make memory-truth`: peaks of memory of real training programs on the zero-GPU device, and what `maquette train` says of the same jobs.

usage: run.py [--build FOLDER] [--python PYTHON] [--only PART] [--again] [--table] [--jobs]

PYTHON (or MAQ_MEMORY_PYTHON) has the libraries of a matrix: torch, transformers, accelerate, peft and deepspeed for models of transformers
(table.py); torch, transformer-engine and what Megatron-LM imports for its own script (megatron_lm.py), of which MAQ_MEGATRON_LM
is a checkout. What it found is kept in tests/data with the versions; a job that is there is not run again without --again.
--table only compares, without PYTHON. --jobs adds a line for each job that is not held out.
"""
import argparse
import collections
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import megatron_lm
import table

HERE = pathlib.Path(__file__).resolve().parent
DATA = HERE.parent / "data"


def versions(python, libraries):
    ask = f"import importlib.metadata as m; print(*('%s=%s' % (x, m.version(x)) for x in {libraries!r}))"
    done = subprocess.run([python, "-c", ask], capture_output=True, text=True, check=False)
    return dict(x.split("=") for x in done.stdout.split()) if done.returncode == 0 else None


def measure(maquette, python, matrix, job):
    """The program's figures, or why there are none."""
    with tempfile.TemporaryDirectory(prefix="maq-memory-") as folder:
        folder = pathlib.Path(folder)
        program, values, variables = matrix.program(job, folder)
        (folder / "values").write_text(values)
        command = [maquette, "run", "--world", job["world"], "--rank", matrix.rank(job), "--device", "h100-sxm", "--output", folder / "report",
                   "--values", folder / "values", "--", python, *program]
        try:
            done = subprocess.run([str(x) for x in command], env={**os.environ, "TMPDIR": str(folder), "TOKENIZERS_PARALLELISM": "false", **variables},
                                  cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300, check=False)
        except subprocess.TimeoutExpired:
            return {"skipped": "not done in 300 s"}
    said = re.search(r"^FIGURES (.*)$", done.stdout, re.M)
    if not said:
        errors = [x for x in done.stderr.splitlines() if "Error" in x]
        return {"skipped": (errors or done.stderr.splitlines() or ["nothing said"])[0][:200]}
    figures = json.loads(said[1])
    figures.pop("phases", None)
    return figures


def predict(maquette, matrix, job):
    arguments, document = matrix.prediction(job)
    done = subprocess.run([str(maquette), *arguments], input=document, capture_output=True, text=True, check=False)
    if not done.stdout:
        return {"refused": done.stderr.strip()}
    said = json.loads(done.stdout)
    return {**said["stages"][job.get("stage", 0)]["memory"], "low": said["memory_low"], "high": said["memory_high"]}


def quantile(values, q):
    values = sorted(values)
    at = q * (len(values) - 1)
    low = int(at)
    return values[low] + (at - low) * (values[min(low + 1, len(values) - 1)] - values[low])


def error(predicted, truth):
    return 100 * (predicted / truth - 1)


# Devices on which a job is tried: so many, their memory spread evenly (in its logarithm) from so much of what the program allocates to so much more.
DEVICES, LEAST, MOST = 20, 0.8, 1.25


def fits_right(guess, truth):
    """Of the devices, on how many it is known whether the program fits: it does where they have what its allocator hands out."""
    around = guess["total_bytes"] - guess["reserved_bytes"]  # context, communicators
    room = [truth["allocated"] * LEAST * (MOST / LEAST) ** ((k + 0.5) / DEVICES) for k in range(DEVICES)]
    return sum((guess["needed_bytes"] - around <= x) == (truth["allocated"] <= x) for x in room) / DEVICES


def summary(title, rows):
    if not rows:
        return
    allocated, reserved = ([r[k] for r in rows] for k in ("allocated", "reserved"))
    size = [abs(x) for x in allocated]
    print(f"  {title:<28}{len(rows):>4}{quantile(size, 0.5):>10.1f}{quantile(size, 0.9):>8.1f}{sum(allocated) / len(rows):>+8.1f}"
          f"{quantile([abs(x) for x in reserved], 0.5):>10.1f}{quantile([abs(x) for x in reserved], 0.9):>8.1f}"
          f"{100 * sum(r['fits'] for r in rows) / len(rows):>8.1f}{100 * sum(r['inside'] for r in rows) / len(rows):>8.0f}")


def keep(matrix, truth):
    """A line for each job."""
    lines = [f"{json.dumps(n)}: {json.dumps(j, sort_keys=True)}" for n, j in sorted(truth["jobs"].items())]
    (DATA / matrix.KEPT).write_text('{"jobs": {\n' + ",\n".join(lines) + '\n},\n"versions": ' + json.dumps(truth["versions"], sort_keys=True) + "}\n")


def compare(maquette, matrix, truth, show_jobs):
    groups = collections.defaultdict(list)
    for job in matrix.JOBS:
        known = truth["jobs"].get(job["name"])
        if not known or "skipped" in known:
            continue
        guess, half = predict(maquette, matrix, job), "held out" if matrix.held_out(job["name"]) else "seen"
        if "refused" in guess:
            print(f"refused: {job['name']}: {guess['refused']}")
            continue
        row = {"allocated": error(guess["allocated_bytes"], known["allocated"]), "reserved": error(guess["reserved_bytes"], known["reserved"]),
               "fits": fits_right(guess, known),
               "inside": guess["low"] * guess["allocated_bytes"] <= known["allocated"] <= guess["high"] * guess["allocated_bytes"]}
        later = any(j["name"] == job["name"] for j in matrix.LATER)
        groups[half, "added later" if later else job["way"]].append(row)
        groups[half, "all"].append(row)
        if show_jobs and half == "seen":
            print(f"  {job['name']:<58}{known['allocated'] / 2**20:>9.0f} MiB{row['allocated']:>+8.1f} %  reserved {row['reserved']:>+7.1f} %")
    print("errors in %: allocated peak                    median     p90    bias  reserved     p90    fits  inside")
    for half in ("seen", "held out"):
        for way in sorted({w for h, w in groups if h == half and w != "all"}) + ["all"]:
            summary(f"{half}: {way}", groups[half, way])
    skipped = [(n, j["skipped"]) for n, j in truth["jobs"].items() if "skipped" in j]
    for name, why in skipped:
        print(f"SKIPPED: {name}: {why}")


def run_missing(a, maquette, matrix, truth):
    """Runs what is not kept yet, or all anew."""
    why = matrix.missing()
    found = versions(a.python, matrix.LIBRARIES) if not why else None
    if not found:
        print(f"SKIPPED: {why or a.python + ' has not all of ' + ', '.join(matrix.LIBRARIES)}: compared with the figures that are kept")
        return
    for job in sorted(matrix.JOBS, key=matrix.order):
        known = truth["jobs"].get(job["name"])
        if a.only not in job["name"] or (known and "skipped" not in known and not a.again):
            continue
        truth["versions"] = found | matrix.other_versions()
        truth["jobs"][job["name"]] = measure(maquette, a.python, matrix, job)
        print(job["name"], truth["jobs"][job["name"]].get("skipped", "measured"), flush=True)
        keep(matrix, truth)


def main():
    args = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument("--build", type=pathlib.Path, default=HERE.parent.parent / "build")
    args.add_argument("--python", default=os.environ.get("MAQ_MEMORY_PYTHON", sys.executable))
    args.add_argument("--only", default="")
    args.add_argument("--again", action="store_true")
    args.add_argument("--table", action="store_true")
    args.add_argument("--jobs", action="store_true")
    a = args.parse_args()
    maquette = (a.build / "maquette").resolve()
    for matrix in (table, megatron_lm):
        print(matrix.TITLE)
        kept = DATA / matrix.KEPT
        truth = json.loads(kept.read_text()) if kept.exists() else {"versions": {}, "jobs": {}}
        if not a.table:
            run_missing(a, maquette, matrix, truth)
        compare(maquette, matrix, truth, a.jobs)
    return 0


if __name__ == "__main__":
    sys.exit(main())
