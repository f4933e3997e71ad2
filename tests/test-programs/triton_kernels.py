# SPDX-License-Identifier: Apache-2.0
"""Kernels in Triton whose work is known in closed form: what run.py looks for in their records. With `--compile` those that PyTorch compiles of
a product, the fastest of which it takes.
"""
import sys

import torch
import triton
import triton.language as tl

from say import say


@triton.jit
def product_kernel(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows, columns, depth = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN), tl.arange(0, BK)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K, BK):
        x = tl.load(a + rows[:, None] * K + (k + depth)[None, :], mask=rows[:, None] < M, other=0.0)
        y = tl.load(b + (k + depth)[:, None] * N + columns[None, :], mask=columns[None, :] < N, other=0.0)
        acc = tl.dot(x, y, acc)
    tl.store(c + rows[:, None] * N + columns[None, :], acc.to(tl.bfloat16), mask=(rows[:, None] < M) & (columns[None, :] < N))


@triton.jit
def attention_kernel(q, k, v, o, KEYS, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    at, column, step = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, D), tl.arange(0, BN)
    head = tl.program_id(1) * KEYS * D
    query = tl.load(q + head + at[:, None] * D + column[None, :])
    top, total = tl.full((BM,), -1e30, tl.float32), tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, D), tl.float32)
    for n in range(0, KEYS, BN):
        key = tl.load(k + head + (n + step)[None, :] * D + column[:, None])
        score = tl.dot(query, key)
        new = tl.maximum(top, tl.max(score, 1))
        p = tl.exp2(score - new[:, None])
        scale = tl.exp2(top - new)
        total = total * scale + tl.sum(p, 1)
        value = tl.load(v + head + (n + step)[:, None] * D + column[None, :])
        acc = tl.dot(p.to(tl.bfloat16), value, acc * scale[:, None])
        top = new
    tl.store(o + head + at[:, None] * D + column[None, :], (acc / total[:, None]).to(tl.bfloat16))


@triton.jit
def norm_kernel(x, w, y, COLUMNS, BLOCK: tl.constexpr):
    row, at = tl.program_id(0) * COLUMNS, tl.arange(0, BLOCK)
    squares = tl.zeros((BLOCK,), tl.float32)
    for c in range(0, COLUMNS, BLOCK):
        value = tl.load(x + row + c + at, mask=c + at < COLUMNS, other=0.0).to(tl.float32)
        squares += value * value
    scale = tl.rsqrt(tl.sum(squares) / COLUMNS)
    for c in range(0, COLUMNS, BLOCK):
        value = tl.load(x + row + c + at, mask=c + at < COLUMNS, other=0.0).to(tl.float32)
        tl.store(y + row + c + at, value * scale * tl.load(w + c + at, mask=c + at < COLUMNS), mask=c + at < COLUMNS)


@triton.jit
def counted_kernel(lengths, x, y, BLOCK: tl.constexpr):
    length, acc, at = tl.load(lengths + tl.program_id(0)), tl.zeros((BLOCK,), tl.float32), tl.arange(0, BLOCK)
    for i in range(0, length):
        acc += tl.load(x + i * BLOCK + at)
    tl.store(y + tl.program_id(0) * BLOCK + at, acc)


def empty(*sizes, dtype=torch.bfloat16):
    return torch.empty(sizes, device="cuda", dtype=dtype)


def main():
    if "--compile" in sys.argv:
        product = torch.compile(lambda x, y: torch.nn.functional.gelu(x @ y), mode="max-autotune-no-cudagraphs")
        product(empty(2048, 1024), empty(1024, 4096))
        torch.cuda.synchronize()
        return say("done")
    for m, n, k in ((4096, 2048, 1024), (1000, 512, 8192)):
        product_kernel[(triton.cdiv(m, 128), triton.cdiv(n, 64))](empty(m, k), empty(k, n), empty(m, n), m, n, k, 128, 64, 64)
    attention_kernel[(16, 32)](empty(32, 2048, 64), empty(32, 2048, 64), empty(32, 2048, 64), empty(32, 2048, 64), 2048, 64, 128, 64)
    for columns in (4096, 5000):
        norm_kernel[(300,)](empty(300, columns), empty(columns), empty(300, columns), columns, 1024)
    for length in (3, 8):
        lengths = torch.full((4,), length, dtype=torch.int32).cuda()
        counted_kernel[(4,)](lengths, empty(8, 256, dtype=torch.float32), empty(4, 256, dtype=torch.float32), 256)
    torch.cuda.synchronize()
    return say("done")


if __name__ == "__main__":
    main()
