# SPDX-License-Identifier: Apache-2.0
"""Pointwise kernels as serving engines fuse them, in Triton: a block per row."""
import torch
import triton
import triton.language as tl


@triton.jit
def _add_rms_norm(x, residual, weight, out, width, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    inside = at < width
    value = tl.load(x + row * width + at, inside, 0.0).to(tl.float32) + tl.load(residual + row * width + at, inside, 0.0).to(tl.float32)
    tl.store(residual + row * width + at, value.to(tl.bfloat16), inside)
    scale = tl.rsqrt(tl.sum(value * value) / width + 1e-5)
    tl.store(out + row * width + at, (value * scale * tl.load(weight + at, inside, 0.0).to(tl.float32)).to(tl.bfloat16), inside)


@triton.jit
def _silu_mul(x, out, width, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = at < width
    gate = tl.load(x + row * 2 * width + at, inside, 0.0).to(tl.float32)
    up = tl.load(x + row * 2 * width + width + at, inside, 0.0).to(tl.float32)
    tl.store(out + row * width + at, (gate * tl.sigmoid(gate) * up).to(tl.bfloat16), inside)


@triton.jit
def _rope(x, cos, sin, heads, HALF: tl.constexpr):
    row, head = tl.program_id(0), tl.program_id(1)
    at = tl.arange(0, HALF)
    c, s = tl.load(cos + row * HALF + at), tl.load(sin + row * HALF + at)
    to = x + (row * heads + head) * 2 * HALF
    left, right = tl.load(to + at).to(tl.float32), tl.load(to + HALF + at).to(tl.float32)
    tl.store(to + at, (left * c - right * s).to(tl.bfloat16))
    tl.store(to + HALF + at, (right * c + left * s).to(tl.bfloat16))


def add_rms_norm(x, residual, weight):
    out = torch.empty_like(x)
    _add_rms_norm[(x.shape[0],)](x, residual, weight, out, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]), num_warps=8)
    return out


def silu_mul(x):
    out = torch.empty(x.shape[0], x.shape[1] // 2, dtype=x.dtype, device=x.device)
    _silu_mul[(x.shape[0], triton.cdiv(out.shape[1], 1024))](x, out, out.shape[1], BLOCK=1024, num_warps=4)
    return out


def rope(x, cos, sin):
    _rope[(x.shape[0], x.shape[1])](x, cos, sin, x.shape[1], HALF=64, num_warps=1)
    return x
