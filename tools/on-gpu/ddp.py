#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A rank of a data-parallel job: the same program that `maquette capture` runs without a GPU and `maquette emulate` on one.

    ddp.py [--layers 4] [--batch 1] [--sequence 4096] [--vocabulary 32768] [--steps 8] [--out FILE]

Prints, and appends to FILE, one line of JSON: the rank, the time of each step, what is allocated after each, and the peak.
"""
import argparse
import json
import os
import pathlib
import statistics
import sys

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import llama  # noqa: E402


def arguments():
    p = argparse.ArgumentParser()
    for name, value in (("layers", 4), ("batch", 1), ("sequence", 4096), ("vocabulary", 32768), ("steps", 8)):
        p.add_argument(f"--{name}", type=int, default=value)
    p.add_argument("--out")
    return p.parse_args()


def main():
    a = arguments()
    # every live rank of an emulation shares the one GPU that is here
    torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", 0)) % torch.cuda.device_count())
    dist.init_process_group("nccl", device_id=torch.device("cuda", torch.cuda.current_device()))
    torch.manual_seed(0)
    model = DistributedDataParallel(llama.make("cuda", a.layers, vocabulary=a.vocabulary, sequence=a.sequence))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    tokens = torch.randint(a.vocabulary, (a.batch, a.sequence + 1), device="cuda")
    allocated = []
    marks = [torch.cuda.Event(enable_timing=True) for _ in range(a.steps + 1)]
    marks[0].record()
    for mark in marks[1:]:
        llama.loss_of(model, tokens).backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        mark.record()
        allocated.append(torch.cuda.memory_allocated())
    torch.cuda.synchronize()
    ms = [x.elapsed_time(y) for x, y in zip(marks, marks[1:])]
    line = json.dumps({"rank": dist.get_rank(), "world": dist.get_world_size(), "steps_ms": ms,
                       "step_ms": statistics.median(ms[3:]), "peak": torch.cuda.max_memory_allocated(),
                       "allocated": allocated, "reserved": torch.cuda.max_memory_reserved()})
    os.write(1, (line + "\n").encode())
    if a.out:
        fd = os.open(a.out, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        os.write(fd, (line + "\n").encode())
        os.close(fd)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
