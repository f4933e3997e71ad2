# SPDX-License-Identifier: Apache-2.0
"""Small tensors that the host knows: what the device makes of them is what PyTorch makes of them on the host (docs/shim.md, "Numbers that are computed").

Operands and types are drawn at random. Where the device does not compute, it reads as zeros: that is counted, and must not happen for what is asked here.
"""
import random
import warnings

import torch

warnings.filterwarnings("ignore")
random.seed(7)
torch.manual_seed(7)
WHOLE = [torch.bool, torch.uint8, torch.int32, torch.int64]
REAL = [torch.float16, torch.bfloat16, torch.float32, torch.float64]
SHAPES = [(1,), (5,), (130,), (3, 4), (2, 3, 5)]


def drawn(dtype, shape):
    if dtype == torch.bool:
        return torch.rand(shape) < 0.6
    x = torch.randint(0 if dtype == torch.uint8 else -9, 9, shape).to(dtype)
    return x / 4 if dtype in REAL else x


def cases():
    for dtype in WHOLE + REAL:
        for shape in SHAPES:
            a, b = drawn(dtype, shape), drawn(dtype, shape)
            scalar = random.choice([0, 1, 2, 3])
            yield "eq", lambda x, y: x == y, (a, b)
            yield "ne scalar", lambda x, s=scalar: x != s, (a,)
            yield "lt", lambda x, y: x < y, (a, b)
            yield "ge scalar", lambda x, s=scalar: x >= s, (a,)
            yield "logical", lambda x, y: torch.logical_or(torch.logical_and(x, y), torch.logical_not(x)), (a, b)
            yield "where", lambda x, y: torch.where(x != 0, x, y), (a, b)
            yield "cat", lambda x, y: torch.cat([x, y], dim=-1), (a, b)
            for to in (torch.bool, torch.int32, torch.int64, torch.float32):
                yield f"to {to}", lambda x, to=to: x.to(to), (a.abs() if dtype in REAL else a,)
            if dtype != torch.bool:
                yield "add", lambda x, y: x + y, (a, b)
                yield "mul scalar", lambda x, s=scalar: x * s, (a,)
            if dtype in (torch.int32, torch.int64):
                yield "rsub", lambda x: 3 - x, (a,)
                yield "add other type", lambda x, y: x + y, (a, drawn(torch.int64, shape))
                yield "max", lambda x: x.max(), (a,)
                yield "min", lambda x: x.min(), (a,)
            if dtype == torch.int64:
                yield "sum", lambda x: x.sum(), (a,)
                yield "column and row", lambda x, y: x == y, (drawn(dtype, (4, 1)), drawn(dtype, (1, 6)))
                yield "running sum", lambda x: torch.cumsum(x, -1), (drawn(dtype, (3, 7)),)
            if dtype in WHOLE:
                yield "any", lambda x: x.any(), (a,)
                yield "all", lambda x: x.all(), (a,)
            if dtype == torch.bool:
                yield "bits", lambda x, y: (x & ~y) | (x ^ y), (a, b)
                yield "how many", lambda x: torch.tensor(x.nonzero().shape[0]), (a,)
    for n in (1, 9, 300):
        yield "arange", lambda x, n=n: torch.arange(n, device=x.device) + torch.arange(2, 2 + n, device=x.device), (torch.zeros(1),)
        yield "full", lambda x, n=n: torch.full((n,), 3, dtype=torch.int64, device=x.device), (torch.zeros(1),)


done = 0
for name, function, operands in cases():
    want = function(*operands)
    got = function(*[x.to("cuda") for x in operands]).cpu()
    assert got.dtype == want.dtype and torch.equal(got, want), (name, [x.dtype for x in operands], operands[0].shape, want, got)
    torch.cuda.empty_cache()  # what a kernel that is not computed may have written reaches into what lies behind it
    done += 1
print("cases", done)
x = torch.randn(50, device="cuda")
assert torch.isfinite(x).all().item() and not torch.isnan(x).any().item() and x[~torch.isinf(x)].shape == (50,)
