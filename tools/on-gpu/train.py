#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Training steps of a Llama on one GPU: how long they take, what the allocator holds, what the profiler saw.

    train.py OUT.json [--layers 8] [--batch 2] [--sequence 4096] [--vocabulary 128256] [--steps 12] [--warm-up 5] [--compile]
             [--trace FILE.json.gz]

Under `maquette run` the same program says what maquette's zero-GPU device expects of it: the same lines of OUT.json, in its time.
"""
import argparse
import json
import os
import pathlib
import statistics
import sys

import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import llama  # noqa: E402

COUNTS = ("allocated_bytes.all.current", "allocated_bytes.all.peak", "reserved_bytes.all.current", "reserved_bytes.all.peak",
          "active_bytes.all.peak", "requested_bytes.all.peak", "allocation.all.allocated", "segment.all.peak", "num_alloc_retries")


def arguments():
    p = argparse.ArgumentParser()
    p.add_argument("out")
    for name, value in (("layers", 8), ("batch", 2), ("sequence", 4096), ("vocabulary", 128256), ("steps", 12), ("warm-up", 5)):
        p.add_argument(f"--{name}", type=int, default=value)
    p.add_argument("--compile", action="store_true")
    p.add_argument("--trace")
    return p.parse_args()


def step(model, optimizer, tokens):
    loss = llama.loss_of(model, tokens)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    return loss.detach()


def timed(run, steps):
    """Milliseconds of each step between events, with no wait for the device inside."""
    marks = [torch.cuda.Event(enable_timing=True) for _ in range(steps + 1)]
    marks[0].record()
    for mark in marks[1:]:
        run()
        mark.record()
    torch.cuda.synchronize()
    return [a.elapsed_time(b) for a, b in zip(marks, marks[1:])]


def profiled(run, path):
    """Two steps of the profiler, after one that warms it up: what `maquette graph` reads. Written when they are over: the next cycle
    of a profiler forgets the one before.
    """
    from torch.profiler import ProfilerActivity, profile, schedule
    more = {}
    try:
        from torch._C._profiler import _ExperimentalConfig
        more["experimental_config"] = _ExperimentalConfig(enable_cuda_sync_events=True)
    except (ImportError, TypeError):
        pass
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA], record_shapes=True,
                 schedule=schedule(wait=0, warmup=1, active=2, repeat=1), on_trace_ready=lambda p: p.export_chrome_trace(path),
                 **more) as p:
        for _ in range(3):
            run()
            torch.cuda.synchronize()
            p.step()


def main():
    a = arguments()
    torch.manual_seed(0)
    model = llama.make("cuda", a.layers, vocabulary=a.vocabulary, sequence=a.sequence)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    tokens = torch.randint(a.vocabulary, (a.batch, a.sequence + 1), device="cuda")
    called = torch.compile(model) if a.compile else model
    losses = []

    def run():
        losses.append(step(called, optimizer, tokens))

    first = timed(run, a.warm_up)
    at_rest = torch.cuda.memory_stats()
    torch.cuda.reset_peak_memory_stats()
    ms = timed(run, a.steps)
    memory = torch.cuda.memory_stats()
    free, total = torch.cuda.mem_get_info()
    result = {"layers": a.layers, "batch": a.batch, "sequence": a.sequence, "vocabulary": a.vocabulary, "compiled": a.compile,
              "torch": torch.__version__, "gpu": torch.cuda.get_device_name(),
              "parameters": sum(p.numel() for p in model.parameters()),
              "step_ms": statistics.median(ms), "steps_ms": ms, "first_ms": first,
              "peak_with_first_bytes": at_rest["allocated_bytes.all.peak"],
              "memory": {name: memory.get(name) for name in COUNTS}, "free_bytes": free, "total_bytes": total,
              "loss": [float(losses[0]), float(losses[-1])]}
    if a.trace:
        try:
            profiled(run, a.trace)
        except RuntimeError as fault:
            result["trace_fault"] = str(fault)
    pathlib.Path(a.out).write_text(json.dumps(result, indent=1) + "\n")
    print(f"step {result['step_ms']:.3f} ms, peak {memory['allocated_bytes.all.peak']} bytes, "
          f"reserved {memory['reserved_bytes.all.peak']}, loss {result['loss'][0]:.3f} to {result['loss'][1]:.3f}")
    fault = not os.environ.get("MAQUETTE_RUN") and not result["loss"][1] < result["loss"][0]
    if fault:
        print("the loss does not fall")
    if a.compile:  # whose workers may take minutes to end
        sys.stdout.flush()
        os._exit(fault)
    sys.exit(fault)


if __name__ == "__main__":
    main()
