#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What serving is made of, measured by PyTorch and CUDA events: decode attention, skinny products, launches, copies, small pointwise
kernels, sampling.

    micro.py OUT.csv [--seconds 90] [--quick] [--only NAME,...]

A row is `group,what,dtype,m,n,k,batch,kv,median_s,min_s,runs,bytes,flop,note`. Kernels are launched from a CUDA graph that walks over copies of
their operands, together at least twice the last-level cache, so that neither the host nor the cache is in the times; the median is that of
graph replays, divided by the launches in one. A group that fails is a row with its reason, and the next one begins.
"""
import argparse
import csv
import statistics
import sys
import time

import torch
import torch.nn.functional as F

BF16, FP8 = torch.bfloat16, torch.float8_e4m3fn
CACHE = 2 * 50 * 2**20
GRAPH_S, REPLAYS, LAUNCHES = 4e-3, 7, 200
COLUMNS = "group what dtype m n k batch kv median_s min_s runs bytes flop note".split()


class Table:
    def __init__(self, path, seconds):
        self.file = open(path, "w", newline="")
        self.rows = csv.DictWriter(self.file, COLUMNS)
        self.rows.writeheader()
        self.n, self.began, self.seconds = 0, time.monotonic(), seconds

    def add(self, group, what, **more):
        for key in ("median_s", "min_s"):
            if isinstance(more.get(key), float):
                more[key] = f"{more[key]:.4e}"
        self.rows.writerow({"group": group, "what": what, **more})
        self.file.flush()
        self.n += 1

    def left(self, share):
        """Whether a group that has a share of the whole may go on; share: what has been spent by its end."""
        return time.monotonic() - self.began < self.seconds * share


def copies_of(operand_bytes):
    return max(1, min(64, -(-2 * CACHE // max(1, int(operand_bytes)))))


def graph_of(calls, launches):
    """A graph of that many launches, in turn over the calls; they have run once, so that plans and workspaces exist."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for call in calls[:2]:
            call()
    torch.cuda.current_stream().wait_stream(side)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for i in range(launches):
            calls[i % len(calls)]()
    return graph


def events(run, n):
    """Seconds of each of n runs, queued behind each other."""
    marks = [torch.cuda.Event(enable_timing=True) for _ in range(n + 1)]
    marks[0].record()
    for mark in marks[1:]:
        run()
        mark.record()
    torch.cuda.synchronize()
    return [a.elapsed_time(b) * 1e-3 for a, b in zip(marks, marks[1:])]


def kernels(calls):
    """Median and least seconds of one call, out of graphs."""
    for call in calls[:3]:
        call()
    torch.cuda.synchronize()
    once = min(events(lambda: calls[0](), 3))
    launches = max(len(calls), min(LAUNCHES, int(GRAPH_S / max(once, 1e-6))))
    launches = min(max(launches, 4), 400)
    graph = graph_of(calls, launches)
    graph.replay()
    times = [t / launches for t in events(graph.replay, REPLAYS)]
    return {"median_s": statistics.median(times), "min_s": min(times), "runs": REPLAYS * launches}


def said(fault):
    return " ".join(f"{type(fault).__name__}: {fault}".split())[:160]


def guarded(table, group, what, make, **more):
    """make() gives the calls; what fails is a row, and does not take the next ones along."""
    try:
        table.add(group, what, **more, **kernels(make()))
    except Exception as fault:  # noqa: BLE001 - whatever it is, it is a result
        table.add(group, what, **more, note=said(fault))
        torch.cuda.synchronize()


# --- the groups --------------------------------------------------------------------------------------------------------------------

def decode(table, quick):
    """One query per sequence against its keys: 32 heads of 128 over 8 of keys, as in Llama-3-8B."""
    from torch.nn.attention import SDPBackend, sdpa_kernel
    heads, kv_heads, width, most = 32, 8, 128, 12 * 2**30
    for kv in (512, 32768) if quick else (512, 1024, 2048, 4096, 8192, 16384, 32768):
        for batch in (1, 16) if quick else (1, 4, 16, 32, 64, 128, 256):
            size = 2 * batch * kv * kv_heads * width * 2
            if size > most or not table.left(0.35):
                continue
            n = copies_of(size)
            keys = [torch.randn(2, batch, kv_heads, kv, width, dtype=BF16, device="cuda") for _ in range(n)]
            q = torch.randn(batch, heads, 1, width, dtype=BF16, device="cuda")
            for backend in (SDPBackend.FLASH_ATTENTION, SDPBackend.CUDNN_ATTENTION):
                def call(k, backend=backend):
                    with sdpa_kernel(backend):
                        return F.scaled_dot_product_attention(q, k[0], k[1], enable_gqa=True)
                guarded(table, "decode_attention", backend.name, lambda call=call: [lambda k=k: call(k) for k in keys], dtype="bf16",
                        m=heads, n=kv_heads, k=width, batch=batch, kv=kv, bytes=size, flop=4 * batch * heads * kv * width)
            del keys


WIDTHS = {  # name: (n, k)
    "8b.qkv": (6144, 4096), "8b.o": (4096, 4096), "8b.gate_up": (28672, 4096), "8b.down": (4096, 14336), "8b.head": (128256, 4096),
    "70b/4.qkv": (2560, 8192), "70b/4.o": (8192, 2048), "70b/4.gate_up": (14336, 8192), "70b/4.down": (8192, 7168),
    "70b/4.head": (32064, 8192)}


def skinny(table, quick):
    one = torch.ones((), device="cuda")
    for name, (n, k) in list(WIDTHS.items())[:2] if quick else WIDTHS.items():
        weights = [torch.randn(n, k, dtype=BF16, device="cuda") for _ in range(copies_of(2 * n * k))]
        narrow = []
        for m in (1, 64) if quick else (1, 2, 4, 8, 16, 32, 64, 128, 256, 512):
            if not table.left(0.65):
                return
            x = torch.randn(m, k, dtype=BF16, device="cuda")
            guarded(table, "skinny_gemm", name, lambda: [lambda w=w: F.linear(x, w) for w in weights], dtype="bf16", m=m, n=n, k=k,
                    bytes=2 * (n * k + m * k + m * n), flop=2 * m * n * k)
        for m in (16,) if quick else (1, 8, 16, 32, 64, 128, 256, 512):
            if not table.left(0.65):
                return
            if not narrow:
                try:
                    narrow = [torch.randn(n, k, dtype=BF16, device="cuda").to(FP8) for _ in range(copies_of(n * k))]
                except RuntimeError as fault:
                    table.add("skinny_gemm", name, dtype="fp8", note=said(fault))
                    break
            x = torch.randn(m, k, dtype=BF16, device="cuda").to(FP8)
            rows, columns = torch.ones(m, 1, device="cuda"), torch.ones(1, n, device="cuda")
            for kind, scale in (("tensor", (one, one)), ("row", (rows, columns))):
                guarded(table, "skinny_gemm", f"{name}, scale per {kind}", lambda: [
                    lambda w=w: torch._scaled_mm(x, w.t(), scale_a=scale[0], scale_b=scale[1], out_dtype=BF16,
                                                 use_fast_accum=True) for w in narrow], dtype="fp8",
                    m=m, n=n, k=k, bytes=n * k + m * k + 2 * m * n, flop=2 * m * n * k)
        del weights, narrow


def launches(table, quick):
    """What the host pays for a launch, and the device for a node of a graph."""
    x = torch.zeros(32, device="cuda")
    n = 200 if quick else 3000

    def host(run, times):
        run()
        torch.cuda.synchronize()
        best = []
        for _ in range(5):
            began = time.perf_counter()
            for _ in range(times):
                run()
            best.append((time.perf_counter() - began) / times)
            torch.cuda.synchronize()
        return {"median_s": statistics.median(best), "min_s": min(best), "runs": 5 * times}

    table.add("launch", "eager add_, host", **host(lambda: x.add_(1), n))
    y = torch.zeros(64, 64, dtype=BF16, device="cuda")
    table.add("launch", "eager linear 64, host", **host(lambda: F.linear(y, y), n))
    times = events(lambda: [x.add_(1) for _ in range(100)], 7)
    table.add("launch", "eager add_, back to back, device", median_s=statistics.median(times) / 100, min_s=min(times) / 100, runs=700)
    for nodes in (1, 10, 100, 1000):
        graph = graph_of([lambda: x.add_(1)], nodes)
        graph.replay()
        times = [t / nodes for t in events(graph.replay, 15)]
        table.add("launch", f"graph of {nodes}, device, per node", median_s=statistics.median(times), min_s=min(times), runs=15 * nodes)
        table.add("launch", f"graph of {nodes}, host, per graph", **host(graph.replay, 20 if quick else 100))


def copy(table, quick):
    sizes = (4096, 2**24) if quick else (4096, 65536, 2**20, 2**22, 2**24, 2**26, 2**28)
    for size in sizes:
        device = [torch.zeros(size, dtype=torch.uint8, device="cuda") for _ in range(2)]
        for pinned in (True, False):
            host = torch.zeros(size, dtype=torch.uint8)
            if pinned:
                host = host.pin_memory()
            kind = "pinned" if pinned else "pageable"
            for what, run in ((f"host to device, {kind}", lambda: device[0].copy_(host, non_blocking=True)),
                              (f"device to host, {kind}", lambda: host.copy_(device[0], non_blocking=True))):
                run()
                times = events(run, 5 if size > 2**26 else 10)
                table.add("copy", what, bytes=size, median_s=statistics.median(times), min_s=min(times), runs=len(times))
        guarded(table, "copy", "device to device", lambda: [lambda: device[1].copy_(device[0])], bytes=2 * size)
    if not quick:
        big = torch.zeros(2, 2**31, dtype=torch.uint8, device="cuda")
        guarded(table, "copy", "device to device", lambda: [lambda: big[1].copy_(big[0])], bytes=2**32)
        guarded(table, "copy", "fill", lambda: [lambda: big[0].zero_()], bytes=2**31)


def fused():
    """Kernels as serving engines have them, in Triton; None where there is none."""
    try:
        import fused_kernels
        return fused_kernels
    except ImportError as fault:
        return str(fault)


def pointwise(table, quick):
    own = fused()
    for width, ffn, heads in ((4096, 14336, 40), (8192, 7168, 20)):  # 70B: on four ranks
        for m in (1, 64) if quick else (1, 8, 32, 64, 128, 256, 512):
            if not table.left(0.9):
                return
            def some(*shape):
                return [torch.randn(*shape, dtype=BF16, device="cuda") for _ in range(4)]
            x, w, gate_up, q = some(m, width), torch.ones(width, dtype=BF16, device="cuda"), some(m, 2 * ffn), some(m, heads, 128)
            angle = torch.randn(m, 1, 64, device="cuda")
            cos, sin = angle.cos(), angle.sin()
            rows = dict(dtype="bf16", m=m)
            guarded(table, "pointwise", "rms_norm, torch", lambda: [lambda a=a: F.rms_norm(a, (width,), w, 1e-5) for a in x], n=width,
                    bytes=4 * m * width, **rows)
            guarded(table, "pointwise", "silu_mul, torch (2 kernels)", lambda: [
                lambda a=a: F.silu(a[:, :ffn]) * a[:, ffn:] for a in gate_up], n=ffn, bytes=6 * m * ffn, **rows)
            guarded(table, "pointwise", "add, torch", lambda: [lambda a=a: torch.add(a, x[0]) for a in x], n=width, bytes=6 * m * width,
                    **rows)
            if isinstance(own, str):
                continue
            guarded(table, "pointwise", "add_rms_norm, fused", lambda: [lambda a=a: own.add_rms_norm(a, x[0], w) for a in x], n=width,
                    bytes=8 * m * width, **rows)
            guarded(table, "pointwise", "silu_mul, fused", lambda: [lambda a=a: own.silu_mul(a) for a in gate_up], n=ffn,
                    bytes=6 * m * ffn, **rows)
            guarded(table, "pointwise", "rope, fused", lambda: [lambda a=a: own.rope(a, cos, sin) for a in q], n=heads * 128,
                    bytes=4 * m * heads * 128, **rows)
    if isinstance(own, str):
        table.add("pointwise", "fused", note=own[:160])


def sampling(table, quick):
    vocabulary = 128256
    for m in (1, 16) if quick else (1, 8, 32, 64, 128, 256):
        if not table.left(1.0):
            return
        logits = [torch.randn(m, vocabulary, device="cuda") for _ in range(min(4, copies_of(4 * m * vocabulary)))]
        size = dict(dtype="fp32", m=m, n=vocabulary, bytes=4 * m * vocabulary)

        def topk(x):
            value, index = torch.topk(x, 50, dim=-1)
            return index.gather(-1, torch.multinomial(torch.softmax(value, -1), 1))

        def topp(x):
            value, index = torch.sort(x, dim=-1, descending=True)
            p = torch.softmax(value, -1)
            p = torch.where(p.cumsum(-1) - p > 0.9, 0.0, p)
            return index.gather(-1, torch.multinomial(p, 1))

        for what, run in (("argmax", lambda x: x.argmax(-1)), ("softmax", lambda x: torch.softmax(x, -1)),
                          ("softmax, multinomial", lambda x: torch.multinomial(torch.softmax(x, -1), 1)),
                          ("exponential race", lambda x: torch.softmax(x, -1).div_(torch.empty_like(x).exponential_()).argmax(-1)),
                          ("top 50, softmax, multinomial", topk), ("sort, top p, multinomial", topp)):
            guarded(table, "sampling", what, lambda run=run: [lambda x=x: run(x) for x in logits], **size)
            try:
                run(logits[0])
                times = events(lambda: run(logits[0]), 7)
                table.add("sampling", what + ", eager", **size, median_s=statistics.median(times), min_s=min(times), runs=len(times))
            except RuntimeError as fault:
                table.add("sampling", what + ", eager", **size, note=said(fault))


def training(table, quick):
    """What an eager framework runs beside products and attention, forward and backward."""
    torch.set_grad_enabled(True)
    width, ffn, vocabulary = 4096, 14336, 128256
    for m in (512,) if quick else (512, 2048, 8192):
        def some(*shape):
            return [torch.randn(*shape, dtype=BF16, device="cuda", requires_grad=True) for _ in range(copies_of(2 * m * width))]
        w = torch.ones(width, dtype=BF16, device="cuda", requires_grad=True)
        x, both, logits = some(m, width), some(m, 2 * ffn)[:4], torch.randn(m, vocabulary, device="cuda", requires_grad=True)
        g, ga = torch.randn(m, width, dtype=BF16, device="cuda"), torch.randn(m, ffn, dtype=BF16, device="cuda")
        labels = torch.randint(vocabulary, (m,), device="cuda")
        for what, forward, inputs, weights, grad, size in (
                ("rms_norm", lambda a: F.rms_norm(a, (width,), w, 1e-5), x, (w,), g, dict(dtype="bf16", n=width, bytes=4 * m * width)),
                ("silu_mul, 2 kernels", lambda a: F.silu(a[:, :ffn]) * a[:, ffn:], both, (), ga,
                 dict(dtype="bf16", n=ffn, bytes=6 * m * ffn)),
                ("cross_entropy", lambda a: F.cross_entropy(a, labels), [logits], (), None,
                 dict(dtype="fp32", n=vocabulary, bytes=4 * m * vocabulary))):
            guarded(table, "training", f"{what}, torch", lambda: [lambda a=a: forward(a) for a in inputs], m=m, **size)
            # a backward pass runs on the stream of its forward pass: only both together can be captured
            guarded(table, "training", f"{what} and its backward, torch", lambda: [
                lambda a=a: torch.autograd.grad(forward(a), (a, *weights), grad) for a in inputs], m=m, **size)
        del x, both, logits
    for dtype, name in ((BF16, "bf16"), (torch.float32, "fp32")):
        for fused in (True, False):
            p = [torch.randn(4096, 4096, dtype=dtype, device="cuda", requires_grad=True) for _ in range(4 if quick else 30)]
            for q in p:
                q.grad = torch.randn_like(q)
            n, size = sum(q.numel() for q in p), p[0].element_size()
            what = f"AdamW, {'fused' if fused else 'foreach'}"
            try:
                optimizer = torch.optim.AdamW(p, lr=1e-4, fused=fused, foreach=not fused)
                optimizer.step()
                times = events(optimizer.step, 7)
                table.add("training", what, dtype=name, n=n, median_s=statistics.median(times), min_s=min(times), runs=len(times),
                          bytes=7 * size * n)
            except RuntimeError as fault:
                table.add("training", what, dtype=name, n=n, note=said(fault))
            del p, optimizer
            torch.cuda.empty_cache()


GROUPS = {"launch": launches, "copy": copy, "decode": decode, "skinny": skinny, "pointwise": pointwise, "sampling": sampling, "training": training}


def main():
    p = argparse.ArgumentParser()
    p.add_argument("out")
    p.add_argument("--seconds", type=float, default=90)
    p.add_argument("--quick", action="store_true")
    p.add_argument("--only")
    a = p.parse_args()
    torch.manual_seed(0)
    torch.set_grad_enabled(False)
    table = Table(a.out, a.seconds)
    for name, group in GROUPS.items():
        if a.only and name not in a.only.split(","):
            continue
        began = time.monotonic()
        try:
            group(table, a.quick)
        except Exception as fault:  # noqa: BLE001
            table.add(name, "the group ended", note=said(fault))
        torch.cuda.synchronize()
        torch.cuda.empty_cache()
        print(f"{name}: {time.monotonic() - began:.1f} s, {table.n} rows so far", flush=True)
    return 0 if table.n else 1


if __name__ == "__main__":
    sys.exit(main())
