# SPDX-License-Identifier: Apache-2.0
"""A small training job on CUDA's and NCCL's own interfaces, by ctypes: what `maquette run --all` and `maquette capture` are held against.

usage: job.py KIND [--tp N] [--pp N] [--steps N] [--ids] [--first] [--tell] [--along] [--objects] [--each] [--plans] [--grow] [--poll] ; KIND: dp, zero, tp, pp, ep, 3d

Communicators: one of all ranks, whose id comes over torch.distributed's store; the axes are split off it (ncclCommSplit), in
Megatron-LM's order of ranks (tp, dp, pp), or with --ids each group has an id of its own from the store, as PyTorch's have, and there is
a group of all tensor-parallel ranks of all stages. A step is products by cuBLAS, which differ from stage to stage, and the collectives of its kind.
--first splits by the rank of each group's first member, as PyTorch 2.15 does, and fails where a group has not its size.
--tell has everybody tell everybody what its stage is, as objects are gathered: the longest of all, then all of them.
--along has stages tell each other how much they compute, one after the other and back, as shapes are along a pipeline; who hears nothing fails.
--objects has rank 0 broadcast an object, gather one of each and scatter what follows from them, through device memory, as PyTorch does.
--each, beside it, has rank 0 fail where the gathered ones are not those of all ranks, as a distributed checkpoint's plan does.
--plans has rank 0 gather pickles and fail where they are not those of all ranks.
--grow allocates until the device has no more.
--poll asks whether a step is done until it is, instead of waiting for it.
"""
import ctypes
import os
import pickle
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
from rank import Store, options  # noqa: E402

U8, I32, I64, F32, SUM, MAX, NOT_READY = 1, 2, 4, 7, 0, 2, 600
TO_DEVICE, TO_HOST = 1, 2
rt, nccl, blas = (ctypes.CDLL(name) for name in ("libcudart.so.13", "libnccl.so.2", "libcublas.so.13"))
P, S, I = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int


class Id(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_char * 128)]


nccl.ncclCommInitRank.argtypes = [ctypes.POINTER(P), I, Id, I]
nccl.ncclCommSplit.argtypes = [P, I, I, ctypes.POINTER(P), P]
nccl.ncclCommCount.argtypes = [P, P]
for name in ("AllReduce", "ReduceScatter"):
    getattr(nccl, "nccl" + name).argtypes = [P, P, S, I, I, P, P]
nccl.ncclAllGather.argtypes = [P, P, S, I, P, P]
nccl.ncclSend.argtypes = nccl.ncclRecv.argtypes = [P, S, I, I, P, P]
blas.cublasSgemm_v2.argtypes = [P, I, I, I, I, I, P, P, I, P, I, P, P, I]
rt.cudaMalloc.argtypes = rt.cudaMallocHost.argtypes = [ctypes.POINTER(P), S]
rt.cudaStreamSynchronize.argtypes = rt.cudaStreamCreate.argtypes = rt.cudaEventQuery.argtypes = rt.cudaFree.argtypes = [P]
rt.cudaEventRecord.argtypes = [P, P]
rt.cudaMemcpy.argtypes = [P, P, S, I]
nccl.ncclBroadcast.argtypes = [P, P, S, I, I, P, P]


def good(result):
    assert result == 0, result


def made(call, *arguments):
    out = P()
    good(call(ctypes.byref(out), *arguments))
    return out


class Job:
    groups = 0

    def __init__(self, o):
        self.rank, self.world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
        tp, pp = o.tp, o.pp
        dp = self.world // tp // pp
        self.tp, self.pp, self.t, self.p = tp, pp, self.rank % tp, self.rank // tp // dp
        self.d, self.dp = self.rank // tp % dp, dp
        good(rt.cudaSetDevice(int(os.environ["LOCAL_RANK"])))
        self.stream = made(rt.cudaStreamCreate)
        self.side = made(rt.cudaStreamCreate)
        self.handle = made(blas.cublasCreate_v2)
        good(blas.cublasSetStream_v2(self.handle, self.stream))
        self.all = self.communicator("nccl id", self.world, self.rank)
        group = self.named if o.ids else self.counted if o.first else self.split
        self.tensor = group(self.rank - self.t if o.first else self.p * dp + self.d, self.t, tp)
        self.data = group(self.rank - self.d * tp if o.first else self.p * tp + self.t, self.d, dp)
        self.pipe = group(self.rank - self.p * tp * dp if o.first else self.d * tp + self.t, self.p, pp)
        self.model = group(self.d, self.p * tp + self.t, tp * pp) if o.ids else None
        if o.tell:
            self.tell()
        if o.objects:
            self.objects(o.each)
        if o.plans:
            self.plans()
        self.extra = self.along() if o.along else 0
        self.buffers = [self.buffer((16 << 20) * (1 + i) + self.p * 4096) for i in range(3)]

    def communicator(self, name, size, position):
        store, ident = Store(), Id()
        if position == 0:
            good(nccl.ncclGetUniqueId(ctypes.byref(ident)))
            store.set(name, bytes(ident))
        else:
            ident = Id.from_buffer_copy(store.get(name))
        return made(lambda out, *a: nccl.ncclCommInitRank(out, *a), size, ident, position)

    def named(self, color, key, size):
        self.groups += 1
        return self.communicator(f"group {self.groups} of {color}", size, key)

    def split(self, color, key, _):
        out = P()
        good(nccl.ncclCommSplit(self.all, color, key, ctypes.byref(out), None))
        return out

    def counted(self, color, key, size):
        comm, n = self.split(color, key, size), I()
        good(nccl.ncclCommCount(comm, ctypes.byref(n)))
        assert n.value == size, (n.value, size)
        return comm

    def tell(self):
        """Two words, both of them its stage."""
        most = self.all_of([2], nccl.ncclAllReduce, 1, MAX)[0]
        said = self.all_of([self.p] * most, nccl.ncclAllGather, self.world)
        assert len(said) == 2 * self.world and set(said) <= set(range(self.pp)), said

    def all_of(self, words, call, times, *how):
        n = len(words)
        have, found = ((ctypes.c_int32 * (n * t)).from_address(made(rt.cudaMallocHost, 4 * n * t).value) for t in (1, times))
        have[:] = words
        good(call(have, found, S(n), I32, *how, self.all, self.stream))
        good(rt.cudaStreamSynchronize(self.stream))
        return list(found)

    def along(self):
        """What the stages in front add up to, and then what those behind do."""
        front = self.heard(self.p - 1) if self.p > 0 else 1
        if self.p < self.pp - 1:
            self.said(self.p + 1, front + self.p)
        behind = self.heard(self.p + 1) if self.p < self.pp - 1 else front
        if self.p > 0:
            self.said(self.p - 1, behind + 1)
        return behind

    def heard(self, peer):
        word = ctypes.c_int32.from_address(made(rt.cudaMallocHost, 4).value)
        good(nccl.ncclRecv(ctypes.byref(word), 1, I32, peer, self.pipe, self.stream))
        good(rt.cudaStreamSynchronize(self.stream))
        assert word.value > 0, "nobody has said how much"
        return word.value

    def said(self, peer, n):
        word = ctypes.c_int32.from_address(made(rt.cudaMallocHost, 4).value)
        word.value = n
        good(nccl.ncclSend(ctypes.byref(word), 1, I32, peer, self.pipe, self.stream))
        good(rt.cudaStreamSynchronize(self.stream))

    def on_device(self, data):
        at = self.buffer(max(len(data), 1))
        good(rt.cudaMemcpy(at, data, len(data), TO_DEVICE))
        return at

    @staticmethod
    def on_host(at, size):
        data = ctypes.create_string_buffer(size)
        good(rt.cudaMemcpy(data, at, size, TO_HOST))
        return data.raw

    def broadcast(self, text):
        """Its length, and then itself: who has not been told the length cannot read it."""
        size = self.on_device(len(text).to_bytes(8, "little"))
        good(nccl.ncclBroadcast(size, size, 1, I64, 0, self.all, self.stream))
        n = int.from_bytes(self.on_host(size, 8), "little")
        assert n, "the length of an object is not known"
        whole = self.on_device(text.ljust(n))
        good(nccl.ncclBroadcast(whole, whole, n, U8, 0, self.all, self.stream))
        return self.on_host(whole, n)

    def plan(self, rank):
        """Rows of its own and a file of its own name: what a checkpoint gathers."""
        return pickle.dumps({"rows": (rank * 100, rank * 100 + 100), "file": f"__{rank}_0.part", "node": rank // 8, "format": "v1"})

    def plans(self):
        """Pickles, padded to the longest."""
        mine, size = self.plan(self.rank), 120
        at = self.on_device(mine.ljust(size, b"\0"))
        parts = [self.on_device(b"?" * size) for _ in range(self.world)] if self.rank == 0 else []
        good(nccl.ncclGroupStart())
        if self.rank:
            good(nccl.ncclSend(at, size, U8, 0, self.all, self.stream))
        for peer in range(1, len(parts)):
            good(nccl.ncclRecv(parts[peer], size, U8, peer, self.all, self.stream))
        good(nccl.ncclGroupEnd())
        found = [pickle.loads(self.on_host(part, size)) for part in parts[1:]]
        wanted = [pickle.loads(self.plan(rank)) for rank in range(1, len(parts))]
        assert found == wanted, next((i, x) for i, x in enumerate(found, 1) if x != wanted[i - 1])

    def objects(self, each):
        said = self.broadcast(b"folder of rank 0" if self.rank == 0 else b"")
        assert said == b"folder of rank 0", said
        mine, scattered = self.on_device(b"plan %6d" % (self.rank // 2)), self.on_device(b"?" * 12)
        parts = [self.on_device(b"?" * 11) for _ in range(self.world)] if self.rank == 0 else []
        good(nccl.ncclGroupStart())
        if self.rank:
            good(nccl.ncclSend(mine, 11, U8, 0, self.all, self.stream))
        for peer in range(1, len(parts)):
            good(nccl.ncclRecv(parts[peer], 11, U8, peer, self.all, self.stream))
        good(nccl.ncclGroupEnd())
        plans = [self.on_host(part, 11) for part in parts[1:]]
        assert all(plan.startswith(b"plan ") for plan in plans), plans
        assert not each or plans == [b"plan %6d" % (peer // 2) for peer in range(1, len(parts))], plans
        good(nccl.ncclGroupStart())
        for peer in range(1, len(parts)):
            good(nccl.ncclSend(self.on_device(b"of all %5d" % len(plans)), 12, U8, peer, self.all, self.stream))
        if self.rank:
            good(nccl.ncclRecv(scattered, 12, U8, 0, self.all, self.stream))
        good(nccl.ncclGroupEnd())
        back = self.on_host(scattered, 12)
        assert self.rank == 0 or back == b"of all %5d" % (self.world - 1), back

    @staticmethod
    def buffer(size):
        return made(rt.cudaMalloc, size)

    def product(self, m, n, k):
        one = ctypes.c_float(1)
        a, b, c = self.buffers
        good(blas.cublasSgemm_v2(self.handle, 0, 0, m, n, k, ctypes.byref(one), a, m, b, k, ctypes.byref(one), c, m))

    def all_reduce(self, comm, count):
        good(nccl.ncclAllReduce(self.buffers[0], self.buffers[0], count, F32, SUM, comm, self.stream))

    def dp_step(self):
        self.product(1024, 1024 + 64 * (self.rank % 3), 512)
        self.all_reduce(self.all, 1 << 20)

    def zero_step(self):
        n, a, b = (1 << 20) // self.world, self.buffers[0], self.buffers[1]
        good(nccl.ncclAllGather(a, b, n, F32, self.all, self.stream))
        self.product(1024, 1024, 512)
        good(nccl.ncclReduceScatter(b, a, n, F32, SUM, self.all, self.stream))

    def tp_step(self):
        for _ in range(2):
            self.product(4096 // self.tp, 1024, 1024)
            self.all_reduce(self.tensor, 1 << 18)
        self.all_reduce(self.data, 1 << 20)

    def pass_on(self, to, back):
        a, count = self.buffers[2], 1 << 18
        if back:
            good(nccl.ncclRecv(a, count, F32, to, self.pipe, self.stream))
        else:
            good(nccl.ncclSend(a, count, F32, to, self.pipe, self.stream))

    def pp_step(self):
        for _ in range(4):  # microbatches, all forward and then all backward
            if self.p > 0:
                self.pass_on(self.p - 1, True)
            self.product(512 * (1 + self.p) + 32 * self.extra, 1024, 512)
            self.all_reduce(self.tensor, 1 << 16)
            if self.p < self.pp - 1:
                self.pass_on(self.p + 1, False)
        for _ in range(4):
            if self.p < self.pp - 1:
                self.pass_on(self.p + 1, True)
            self.product(1024 * (1 + self.p), 1024, 512)
            if self.p > 0:
                self.pass_on(self.p - 1, False)
        self.all_reduce(self.data, 1 << 20)
        if self.model:
            self.all_reduce(self.model, 1)

    def ep_step(self):
        count = (1 << 18) // self.world
        for _ in range(2):
            good(nccl.ncclGroupStart())
            for peer in range(self.world):
                good(nccl.ncclSend(self.buffers[0], count, F32, peer, self.all, self.stream))
                good(nccl.ncclRecv(self.buffers[1], count, F32, peer, self.all, self.stream))
            good(nccl.ncclGroupEnd())
            self.product(512, 512 + 128 * (self.rank % 2), 512)

    def poll(self):
        """Waits by asking, as PyTorch's newer process groups do for their last works."""
        event = made(rt.cudaEventCreate)
        good(rt.cudaEventRecord(event, self.stream))
        self.ask(event)

    @staticmethod
    def ask(event):
        begin = time.monotonic()
        while rt.cudaEventQuery(event) == NOT_READY:
            assert time.monotonic() < begin + 100

    def end(self, step):
        """Rank 0 is late for the last step: the others wait for it, except where it is not there."""
        time.sleep(0.05 if self.rank == 0 else 0)
        step()
        done = made(rt.cudaEventCreate)
        good(rt.cudaEventRecord(done, self.stream))
        time.sleep(0.01)
        self.ask(done)
        for buffer in self.buffers:
            good(rt.cudaFree(buffer))

    def grow(self):
        """Blocks whose size hangs on the rank, until the device has no more."""
        n = 0
        while rt.cudaMalloc(ctypes.byref(P()), (1 << 30) + (self.p << 20)) == 0:
            n += 1
        rt.cudaGetLastError()
        os.write(1, f"rank {self.rank}: {n} blocks\n".encode())  # in one piece, for others write there too


def main():
    o = options(tp=1, pp=1, steps=3, ids=False, first=False, tell=False, along=False, objects=False, each=False, plans=False, grow=False, poll=False)
    job = Job(o)
    step = getattr(job, {"3d": "pp"}.get(o.kind, o.kind) + "_step")
    for _ in range(o.steps):
        step()
        if o.poll:
            job.poll()
        else:
            good(rt.cudaStreamSynchronize(job.stream))
    if o.poll:
        job.end(step)
    if o.grow:
        job.grow()
    good(rt.cudaDeviceSynchronize())


main()
