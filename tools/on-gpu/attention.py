#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The attention of training, measured through PyTorch, as a table for `maquette profile import`.

    attention.py OUT.csv PROFILE.json...        documents of `maquette profile --json`: which operators

cuDNN's operation answers for the operator as it stands, FlashAttention-2 for the one with the flag `flash2`. As the module measures: before every
launch twice the last-level cache is overwritten, launches are queued behind a kernel that waits.
"""
import csv
import json
import math
import statistics
import sys
import time

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

COLUMNS = ("device gpu cuda cudnn kind dtype flags queries d0 d1 d2 d3 d4 d5 mode cache kernel n median_s min_s p90_s stddev_s "
           "created").split()
BACKENDS = {"": SDPBackend.CUDNN_ATTENTION, "flash2": SDPBackend.FLASH_ATTENTION}
LAUNCHES = 24


def operators(paths):
    found = {}
    for path in paths:
        with open(path) as file:
            for item in json.load(file)["items"]:
                if item["kind"] in ("attention", "attention_bwd") and item["dtype"] == "bf16" and not item["queries"]:
                    if not {"window", "kv_fp8", "dropout", "unfused"} & set(item["flags"].split("+")):
                        found[(item["kind"], "causal" in item["flags"], *(item[f"d{i}"] for i in range(6)))] = item
    return found


def sequence_of(tokens, keys, causal):
    """As src/measure/buffers.c finds it: the sequence whose mean of keys per query is the operator's."""
    for s in range(2 * keys if causal else keys, (2 * keys - 3 if causal else keys - 1), -1):
        if s > 0 and tokens % s == 0 and ((s + 2) // 2 if causal else s) == keys:
            return s
    return None


def measured(run, flush):
    for _ in range(3):
        run()
    marks = [[torch.cuda.Event(enable_timing=True) for _ in range(2)] for _ in range(LAUNCHES)]
    torch.cuda._sleep(30_000_000)
    for begin, end in marks:
        flush.zero_()
        begin.record()
        run()
        end.record()
    torch.cuda.synchronize()
    return sorted(a.elapsed_time(b) * 1e-3 for a, b in marks)


def prepared(kind, causal, tokens, keys, heads, kv_heads, width, value_width, backend):
    s = sequence_of(tokens, keys, causal)
    if s is None:
        raise ValueError("its keys are a mean over packed documents")
    def tensor(n, w):
        return torch.randn(tokens // s, s, n, w, dtype=torch.bfloat16, device="cuda").transpose(1, 2).requires_grad_()
    q, k, v = tensor(heads, width), tensor(kv_heads, width), tensor(kv_heads, value_width)

    def forward():
        with sdpa_kernel(backend):
            return F.scaled_dot_product_attention(q, k, v, is_causal=causal, enable_gqa=heads != kv_heads)
    if kind == "attention":
        return forward
    out = forward()
    gradient = torch.randn_like(out)
    return lambda: torch.autograd.grad(out, (q, k, v), gradient, retain_graph=True)


def main():
    out, paths = sys.argv[1], sys.argv[2:]
    flush = torch.empty(100 * 2**20, dtype=torch.uint8, device="cuda")
    rows = 0
    with open(out, "w", newline="") as file:
        table = csv.DictWriter(file, COLUMNS)
        table.writeheader()
        for (kind, causal, *d), _ in operators(paths).items():
            for word, backend in BACKENDS.items():
                try:
                    x = measured(prepared(kind, causal, *d, backend), flush)
                except (RuntimeError, ValueError) as fault:
                    print(f"{kind} {d} {backend.name}: {' '.join(str(fault).split())[:160]}", file=sys.stderr)
                    continue
                table.writerow({
                    "device": "h100-sxm", "gpu": torch.cuda.get_device_name(), "cuda": torch.version.cuda,
                    "cudnn": torch.backends.cudnn.version(), "kind": kind, "dtype": "bf16",
                    "flags": "+".join(([word] if word else []) + (["causal"] if causal else [])), "queries": 0,
                    **{f"d{i}": n for i, n in enumerate(d)}, "mode": "burst", "cache": "cold", "kernel": f"torch-{backend.name.lower()}",
                    "n": len(x), "median_s": f"{statistics.median(x):.6e}", "min_s": f"{x[0]:.6e}",
                    "p90_s": f"{x[math.ceil(0.9 * len(x)) - 1]:.6e}", "stddev_s": f"{statistics.stdev(x):.3e}",
                    "created": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())})
                file.flush()
                rows += 1
    print(f"{rows} measurements of attention")
    return 0 if rows else 1


if __name__ == "__main__":
    sys.exit(main())
