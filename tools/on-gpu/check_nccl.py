#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The libnccl.so.2 with virtual peers on a real GPU: what tests/gpu/test_nccl.c looks at over a driver that runs on the host.

    check_nccl.py libmaquette-nccl.so

Rank 1 of 4 meets three peers of a table, some milliseconds apart. Looked at: values, that every meeting ends when the table says (by events, to
50 us), that waits of many blocks follow ones of few and none hangs, and that a graph that was captured once walks on through the table.
"""
import ctypes
import os
import struct
import sys
import tempfile
import time

import torch

MASK = (1 << 64) - 1
F32, SUM, MAX = 7, 0, 2
STEP_NS, OWN_NS, LATE_NS, LASTS_NS = 4_000_000, 1_000_000, 2_000_000, 500_000
P, S, I = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int
N = 400


class Id(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_char * 128)]


def lineage(data):
    """maq_rec_hash of shim/record.h."""
    h = 0
    for byte in data:
        h = (h ^ byte) * 0x100000001b3 & MASK
    z = (h + 0x9e3779b97f4a7c15 * (len(data) + 1)) & MASK
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9 & MASK
    z = (z ^ z >> 27) * 0x94d049bb133111eb & MASK
    return z ^ z >> 31


def table(name):
    """Meeting i: this rank comes at i steps + OWN, the others LATE after that, and it lasts LASTS."""
    entries = b"".join(struct.pack("<qqq", i * STEP_NS + OWN_NS, i * STEP_NS + OWN_NS + LATE_NS, LASTS_NS) for i in range(N))
    return struct.pack("<8sIIII", b"maqwaits", 1, 4, 1, 0) + struct.pack("<QIIqQ", name, N, N, 0, 24 + 32) + entries


class Nccl:
    def __init__(self, path, folder):
        card, waits = os.path.join(folder, "card"), os.path.join(folder, "waits")
        with open(card, "w") as file:
            file.write(f"world 4\nrank 1\nper_node 4\nlocal 1\nmode alone\nwaits {waits}\n")
        os.environ["MAQUETTE_RUN"] = card
        self.library = ctypes.CDLL(path)
        self.library.ncclCommInitRank.argtypes = [ctypes.POINTER(P), I, Id, I]
        self.library.ncclAllReduce.argtypes = [P, P, S, I, I, P, P]
        self.library.ncclAllGather.argtypes = [P, P, S, I, P, P]
        self.library.ncclReduceScatter.argtypes = [P, P, S, I, I, P, P]
        ident, self.comm = Id(), P()
        assert self.library.ncclGetUniqueId(ctypes.byref(ident)) == 0
        with open(waits, "wb") as file:
            file.write(table(lineage(bytes(ident))))
        assert self.library.ncclCommInitRank(ctypes.byref(self.comm), 4, ident, 1) == 0

    def __call__(self, name, *arguments):
        assert getattr(self.library, name)(*arguments, self.comm, torch.cuda.current_stream().cuda_stream) == 0, name

    def all_reduce(self, x, op=SUM):
        self("ncclAllReduce", x.data_ptr(), x.data_ptr(), x.numel(), F32, op)


def spin(ns, rate):
    if ns > 0:
        torch.cuda._sleep(int(ns * rate))


def cycles_per_ns():
    marks = [torch.cuda.Event(enable_timing=True) for _ in range(2)]
    torch.cuda._sleep(1000)
    marks[0].record()
    torch.cuda._sleep(20_000_000)
    marks[1].record()
    torch.cuda.synchronize()
    return 20_000_000 / (marks[0].elapsed_time(marks[1]) * 1e6)


def main():
    torch.cuda.init()
    stream = torch.cuda.Stream()
    with tempfile.TemporaryDirectory() as folder, torch.cuda.stream(stream):
        x = torch.ones(24 << 18, device="cuda")
        rate = cycles_per_ns()
        nccl = Nccl(sys.argv[1], folder)
        # in time: the peers are last, so that a step lasts STEP, whatever is computed in it; waits of 1 and of 24 blocks in turn
        small, marks = x[:4], []
        for i in range(40):
            nccl.all_reduce(x if i % 4 == 3 else small, MAX)
            mark = torch.cuda.Event(enable_timing=True)
            mark.record()
            marks.append(mark)
            spin(OWN_NS / 2, rate)
        began = time.monotonic()
        while not marks[-1].query():
            assert time.monotonic() - began < 5, "a wait has not ended: it hangs"
            time.sleep(0.01)
        torch.cuda.synchronize()
        steps = [a.elapsed_time(b) * 1e6 for a, b in zip(marks, marks[1:])]
        off = max(abs(step - STEP_NS) for step in steps)
        print(f"40 meetings, 1 and 24 blocks: steps of {STEP_NS / 1e6} ms are off by at most {off / 1e3:.1f} us")
        assert off < 50_000, steps
        # late: this rank holds the others up, and they come later from then on
        spin(STEP_NS * 3, rate)
        nccl.all_reduce(small, MAX)
        late, after = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        late.record()
        spin(OWN_NS, rate)
        nccl.all_reduce(small, MAX)
        after.record()
        torch.cuda.synchronize()
        assert marks[-1].elapsed_time(late) > 11.5, marks[-1].elapsed_time(late)
        step = late.elapsed_time(after) * 1e6
        print(f"after a late arrival the next step is {step / 1e6:.3f} ms")
        assert abs(step - STEP_NS) < 100_000, step
        # a graph walks on
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=stream):
            nccl.all_reduce(small, MAX)
        ends = [torch.cuda.Event(enable_timing=True) for _ in range(9)]
        for end in ends:
            graph.replay()
            end.record()
        torch.cuda.synchronize()
        steps = [a.elapsed_time(b) * 1e6 for a, b in zip(ends, ends[1:])]
        off = max(abs(step - STEP_NS) for step in steps)
        print(f"a graph that was captured once: off by at most {off / 1e3:.1f} us")
        assert off < 50_000, steps
        # values
        y = torch.tensor([1.0, 2.0, 3.0, 4.0], device="cuda")
        nccl.all_reduce(y)
        gathered, part = torch.zeros(16, device="cuda"), torch.zeros(4, device="cuda")
        nccl("ncclAllGather", y.data_ptr(), gathered.data_ptr(), 4, F32)
        nccl("ncclReduceScatter", gathered.data_ptr(), part.data_ptr(), 4, F32, SUM)
        torch.cuda.synchronize()
        assert y.tolist() == [4, 8, 12, 16], y
        assert gathered.tolist() == [4, 8, 12, 16] * 4, gathered
        assert part.tolist() == [16, 32, 48, 64], part
        print("values: as the rules say")


if __name__ == "__main__":
    main()
