#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A sample of the matrix of `make memory-truth`: what `maquette train` says against the figures of the real programs that are kept.

None of the sample is held out; the whole of it is run by tests/memory-truth/run.py.
"""
import json
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE / "memory-truth")]
import megatron_lm  # noqa: E402
import table  # noqa: E402
from cli_case import PROGRAM, Tap  # noqa: E402

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


# Of Megatron-LM's script.
MEGATRON = [
    ("megatron-llama-4x2048-w1-r0", 0.5, 7),
    ("megatron-mla-2x1024-w1-r0", 0.5, 3),
    ("megatron-llama-4x1024-w1-r0-selective", 0.5, 1),
    ("megatron-wide-4x1024-w1-r0-selective-modules_layernorm", 0.5, 1),
    ("megatron-deep-2x1024-w8-r1", 1.5, 3.5),
    ("megatron-llama-2x1024-w8-r1-bf16grads", 1, 3),
    ("megatron-wide-2x2048-w4-r1-tp_4-sp", 1, 2),
    ("megatron-gpt-1x4096-w2-r1-cp_2", 0.5, 4),
    ("megatron-wide-2x1024-w2-r0-pp_2-mb8", 0.5, 1),
    ("megatron-deep-2x1024-w4-r3-pp_4-full-layers_1-mb8", 2, 6),
    ("megatron-moe-2x1024-w8-r1-ep_8", 1.5, 4),
    ("megatron-deep-2x1024-w8-r1-fp8-tensorwise", 0.5, 4.5),
]


def check(matrix, job, truth, allocated, reserved):
    assert not matrix.held_out(job["name"])
    arguments, document = matrix.prediction(job)
    done = subprocess.run([PROGRAM, *arguments], input=document, capture_output=True, text=True, check=False)
    if not done.stdout or done.stderr:
        return False, done.stderr
    memory = json.loads(done.stdout)["stages"][job.get("stage", 0)]["memory"]
    errors = [100 * (memory[k + "_bytes"] / truth[k] - 1) for k in ("allocated", "reserved")]
    return abs(errors[0]) <= allocated and abs(errors[1]) <= reserved, f"allocated {errors[0]:+.2f} %, reserved {errors[1]:+.2f} %"


def main():
    tap = Tap()
    for matrix, sample in ((table, SAMPLE), (megatron_lm, MEGATRON)):
        truth = json.loads((HERE / "data" / matrix.KEPT).read_text(encoding="utf-8"))["jobs"]
        jobs = {job["name"]: job for job in matrix.JOBS}
        for name, allocated, reserved in sample:
            good, said = check(matrix, jobs[name], truth[name], allocated, reserved)
            tap.result(good, f"{name}: {said}")
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
