#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The kernels of src/measure/cuda/kernels.cu against PyTorch: what they compute, on the GPU.

    check_kernels.py libmaquette-kernels.so     (kernels.cu, with its functions visible)
"""
import ctypes
import math
import sys

import torch
import torch.nn.functional as F

BF16, FP16, FP32 = 3, 2, 0  # enum maq_dtype of include/maquette/cluster.h
P, L, I, B = ctypes.c_void_p, ctypes.c_int64, ctypes.c_int, ctypes.c_bool


class Rows(ctypes.Structure):
    _fields_ = [("stream", P), ("dtype", I), ("rows", L), ("columns", L), ("sms", I)]


def stream():
    return torch.cuda.current_stream().cuda_stream


def rows_of(dtype, rows, columns):
    number = {torch.bfloat16: BF16, torch.float16: FP16, torch.float32: FP32}[dtype]
    return Rows(stream(), number, rows, columns, torch.cuda.get_device_properties(0).multi_processor_count)


def near(name, got, want, within):
    got, want = got.detach().double(), want.detach().double()
    error = float((got - want).norm() / want.norm())
    print(f"{'ok' if error < within else 'WRONG'}  {name}: {error:.2e}")
    return error < within


def checks(k, dtype, within):
    def call(name, *arguments):
        getattr(k, name)(*[ctypes.byref(a) if isinstance(a, Rows) else P(a.data_ptr()) if torch.is_tensor(a) else a for a in arguments])
        torch.cuda.synchronize()
    rows, width, ffn = 65, 4096, 14336
    kind = str(dtype)[6:]
    x = torch.randn(rows, width, device="cuda").to(dtype).requires_grad_()
    w = torch.randn(width, device="cuda").to(dtype).requires_grad_()
    dy, y, dx = torch.randn_like(x), torch.empty_like(x), torch.empty_like(x)
    stats, dw = torch.empty(rows, device="cuda"), torch.zeros(width, device="cuda")
    r = rows_of(dtype, rows, width)
    want = F.rms_norm(x.float(), (width,), w.float(), 1e-5)
    gx, gw = torch.autograd.grad(want, (x, w), dy.float())
    call("maq_cuda_norm", r, x, w, y, stats, B(False))
    yield near(f"norm {kind}", y, want, within)
    parts = torch.full((512, width), math.nan, device="cuda")
    call("maq_cuda_norm_bwd", r, dy, x, w, dx, dw, stats, parts, B(False))
    yield near(f"norm_bwd {kind}, dx", dx, gx, within)
    yield near(f"norm_bwd {kind}, dw", dw, gw, within)
    wb = torch.randn(2, width, device="cuda").to(dtype)
    call("maq_cuda_norm", r, x, wb, y, stats, B(True))
    yield near(f"layer norm {kind}", y, F.layer_norm(x.float(), (width,), wb[0].float(), wb[1].float()), within)
    z = x.detach().requires_grad_()
    want = torch.softmax(z.float(), -1)
    call("maq_cuda_softmax", r, x, y)
    yield near(f"softmax {kind}", y, want, within)
    call("maq_cuda_softmax_bwd", r, dy, y, dx)
    yield near(f"softmax_bwd {kind}", dx, torch.autograd.grad(want, z, dy.float())[0], 3 * within)
    both = torch.randn(rows, 2 * ffn, device="cuda").to(dtype).requires_grad_()
    out, g, din = torch.empty(rows, ffn, device="cuda", dtype=dtype), torch.randn(rows, ffn, device="cuda").to(dtype), torch.empty_like(both)
    want = F.silu(both.float()[:, :ffn]) * both.float()[:, ffn:]
    ra = rows_of(dtype, rows, ffn)
    call("maq_cuda_activation", ra, both, out, B(True))
    yield near(f"activation {kind}", out, want, within)
    call("maq_cuda_activation_bwd", ra, g, both, din, B(True))
    yield near(f"activation_bwd {kind}", din, torch.autograd.grad(want, both, g.float())[0], within)
    vocabulary = 32000
    logits = torch.randn(rows, vocabulary, device="cuda").to(dtype)
    labels = torch.randint(vocabulary, (rows,), device="cuda")
    wide = logits.float().requires_grad_()
    losses = F.cross_entropy(wide, labels, reduction="none")
    got = torch.empty(rows, device="cuda")
    gradient = torch.autograd.grad(losses.sum(), wide)[0]
    call("maq_cuda_cross_entropy", rows_of(dtype, rows, vocabulary), logits, labels, got)
    yield near(f"cross_entropy {kind}", got, losses, within)
    yield near(f"cross_entropy {kind}, gradient", logits, gradient, within)
    index = torch.randint(rows, (100,), device="cuda")
    picked = torch.empty(100, width, device="cuda", dtype=dtype)
    call("maq_cuda_gather", rows_of(dtype, 100, width), x, index, picked, B(True))
    yield near(f"gather {kind}", picked, x[index], 1e-9)
    place, table = torch.randperm(200, device="cuda")[:rows], torch.randn(200, width, device="cuda").to(dtype)
    call("maq_cuda_scatter", r, x, place, table, ctypes.c_size_t(table.numel() * table.element_size()))
    yield near(f"scatter {kind}", table, torch.zeros_like(table).index_add_(0, place, x.detach()), 1e-9)
    angle = torch.randn(rows, 64, device="cuda")
    pairs = torch.stack((angle.cos(), angle.sin()), -1).contiguous()
    heads = x.detach().clone()
    left, right = heads.float().view(rows, -1, 128).split(64, -1)
    c, s = angle.cos()[:, None], angle.sin()[:, None]
    want = torch.cat((left * c - right * s, right * c + left * s), -1).view(rows, width)
    call("maq_cuda_rope", r, heads, pairs)
    yield near(f"rope {kind}", heads, want, within)


def quantized(k):
    x = torch.randn(64, 1024, device="cuda").to(torch.bfloat16)
    out, scales = torch.empty(64, 1024, dtype=torch.uint8, device="cuda"), torch.empty(64 * 8, device="cuda")
    k.maq_cuda_quantize(ctypes.byref(rows_of(torch.bfloat16, 64, 1024)), P(x.data_ptr()), P(out.data_ptr()), P(scales.data_ptr()))
    torch.cuda.synchronize()
    back = out.view(torch.float8_e4m3fn).float().view(-1, 128) * scales[:, None]
    return near("quantize", back, x.float().view(-1, 128), 0.04)


def filled(k):
    """Random numbers are spread over [-1, 1), and a scattering has no index twice."""
    x = torch.zeros(1 << 20, device="cuda", dtype=torch.bfloat16)
    k.maq_cuda_fill(P(stream()), P(x.data_ptr()), ctypes.c_size_t(2 << 20), I(BF16), ctypes.c_uint32(1))
    index = torch.zeros(100_000, device="cuda", dtype=torch.int64)
    k.maq_cuda_fill_indices(P(stream()), P(index.data_ptr()), ctypes.c_size_t(100_000), ctypes.c_size_t(128256), B(True))
    torch.cuda.synchronize()
    good = abs(float(x.float().mean())) < 0.01 and abs(float(x.float().std()) - 0.577) < 0.01
    good = good and index.unique().numel() == 100_000 and int(index.max()) < 128256
    print(f"{'ok' if good else 'WRONG'}  fill: deviation {float(x.float().std()):.3f}, {index.unique().numel()} indices")
    return good


def spins(k):
    a, b = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    k.maq_cuda_spin(P(stream()), ctypes.c_ulonglong(1000))
    a.record()
    k.maq_cuda_spin(P(stream()), ctypes.c_ulonglong(3_000_000))
    b.record()
    torch.cuda.synchronize()
    ms = a.elapsed_time(b)
    print(f"{'ok' if 2.95 < ms < 3.2 else 'WRONG'}  spin of 3 ms: {ms:.3f} ms")
    return 2.95 < ms < 3.2


def between_events(k):
    """What two events around a launch cost by themselves: a kernel of 16 bytes, as timing.c launches it."""
    small, flush = torch.empty(16, dtype=torch.uint8, device="cuda"), torch.zeros(100 * 2**20, dtype=torch.uint8, device="cuda")
    k.maq_cuda_fill(P(stream()), P(small.data_ptr()), ctypes.c_size_t(16), I(BF16), ctypes.c_uint32(1))  # both kernels are loaded now
    torch.cuda.synchronize()
    for cold in (False, True):
        marks = [[torch.cuda.Event(enable_timing=True) for _ in range(2)] for _ in range(40)]
        k.maq_cuda_spin(P(stream()), ctypes.c_ulonglong(20_000_000))
        for begin, end in marks:
            if cold:
                flush.zero_()
            begin.record()
            k.maq_cuda_fill(P(stream()), P(small.data_ptr()), ctypes.c_size_t(16), I(BF16), ctypes.c_uint32(1))
            end.record()
        torch.cuda.synchronize()
        us = sorted(1e3 * a.elapsed_time(b) for a, b in marks)
        print(f"    a kernel of 16 bytes between events, {'cold' if cold else 'warm'}: {us[0]:.2f} to {us[-1]:.2f} us, median {us[20]:.2f}")


def main():
    k = ctypes.CDLL(sys.argv[1])
    torch.manual_seed(0)
    between_events(k)
    good = [spins(k), filled(k), quantized(k)]
    for dtype, within in ((torch.bfloat16, 1e-2), (torch.float16, 2e-3), (torch.float32, 2e-5)):
        good += list(checks(k, dtype, within))
    print(f"{sum(good)} of {len(good)} are right")
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
