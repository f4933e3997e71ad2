#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A sample of the matrix of `make memory-truth`: what `maquette train` says against the figures of the real programs that are kept.

None of the sample is held out; the whole of it is run by tests/memory-truth/run.py.
"""
import json
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE / "memory-truth")]
import table  # noqa: E402
from cli_case import Scratch, Tap  # noqa: E402

# Percent of the allocated peak, and of what is reserved: what was seen, rounded up.
SAMPLE = [
    ("ddp-llama-2x1024", 0.5, 1),
    ("ddp-mistral-2x1024", 0.5, 1),
    ("ddp-qwen3-2x512-views", 0.5, 1),
    ("ddp-deep-2x1024-ac_full", 1, 1),
    ("ddp-llama-2x1024-accumulate_3", 0.5, 1),
    ("ddp-deep-2x512-optimizer_foreach", 0.5, 3),
    ("fsdp2-llama-2x1024", 0.5, 1),
    ("fsdp2-qwen3-2x512-reduce_fp32", 0.5, 1),
    ("fsdp2-llama-2x1024-pure", 0.5, 2),
    ("fsdp1-llama-2x1024-ac_full", 2, 1),
    ("trainer-ddp-deep-4x512", 0.5, 1),
    ("trainer-ddp-moe-2x1024", 1, 2),
    ("trainer-ddp-wide-2x1024-lora_16", 3, 8),
    ("trainer-ds-llama-2x1024-zero_2", 3, 16),
]


def check(job, truth, allocated, reserved):
    assert not table.held_out(job["name"])
    with Scratch() as scratch:
        (scratch.path / "job.json").write_text(json.dumps(table.document(job)), encoding="utf-8")
        out, err, _ = scratch.run("maquette train --json job.json")
    if not out:
        return False, err
    memory = json.loads(out)["stages"][0]["memory"]
    errors = [100 * (memory[k + "_bytes"] / truth[k] - 1) for k in ("allocated", "reserved")]
    return abs(errors[0]) <= allocated and abs(errors[1]) <= reserved, f"allocated {errors[0]:+.2f} %, reserved {errors[1]:+.2f} %"


def main():
    truth = json.loads((HERE / "data/memory_truth.json").read_text(encoding="utf-8"))["jobs"]
    jobs = {job["name"]: job for job in table.JOBS}
    tap = Tap()
    for name, allocated, reserved in SAMPLE:
        good, said = check(jobs[name], truth[name], allocated, reserved)
        tap.result(good, f"{name}: {said}")
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
