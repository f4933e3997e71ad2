# SPDX-License-Identifier: Apache-2.0
"""A job of all-reduces that runs on the zero-GPU device and, with FAKE_GPU set, over a driver that runs on the host (tests/gpu).

It prints the nanoseconds from the end of its first all-reduce to the end of its last one. GPU_JOB_LOG is a file for when it began and ended.
"""
import ctypes
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from rank import Store  # noqa: E402

STEPS, COUNT, F32, SUM = 6, 1 << 20, 7, 0
P, S, I = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int
nccl = ctypes.CDLL("libnccl.so.2")


class Id(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_char * 128)]


nccl.ncclCommInitRank.argtypes = [ctypes.POINTER(P), I, Id, I]
nccl.ncclAllReduce.argtypes = [P, P, S, I, I, P, P]


class Fake:
    """The host's memory; a stream is a number, and its clock moves when the program says so."""

    def __init__(self):
        cuda = ctypes.CDLL("libcuda.so.1")
        ctypes.CDLL(os.environ["CUDA_INJECTION64_PATH"]).InitializeInjection()  # as the driver does at its first call
        self.clock = (ctypes.c_int64 * 8).in_dll(cuda, "fake_stream_ns")
        self.memory = (ctypes.c_float * COUNT)()
        self.buffer, self.stream, self.ends = ctypes.addressof(self.memory), 2, []

    def compute(self):
        self.clock[self.stream] += 1000

    def mark(self):
        self.ends.append(self.clock[self.stream])

    def between(self):
        return self.ends[-1] - self.ends[0]


class Device:
    def __init__(self):
        self.rt, self.blas = ctypes.CDLL("libcudart.so.13"), ctypes.CDLL("libcublas.so.13")
        self.rt.cudaMalloc.argtypes = [ctypes.POINTER(P), S]
        self.rt.cudaEventRecord.argtypes = [P, P]
        self.rt.cudaEventElapsedTime.argtypes = [ctypes.POINTER(ctypes.c_float), P, P]
        self.blas.cublasSgemm_v2.argtypes = [P, I, I, I, I, I, P, P, I, P, I, P, P, I]
        self.stream, self.buffer, self.handle, self.ends = P(), P(), P(), []
        assert self.rt.cudaStreamCreate(ctypes.byref(self.stream)) == 0
        assert self.rt.cudaMalloc(ctypes.byref(self.buffer), 4 * COUNT) == 0
        assert self.blas.cublasCreate_v2(ctypes.byref(self.handle)) == 0
        assert self.blas.cublasSetStream_v2(self.handle, self.stream) == 0

    def compute(self):
        one, a = ctypes.c_float(1), self.buffer
        assert self.blas.cublasSgemm_v2(self.handle, 0, 0, 512, 512, 512, ctypes.byref(one), a, 512, a, 512, ctypes.byref(one), a, 512) == 0

    def mark(self):
        event = P()
        assert self.rt.cudaEventCreate(ctypes.byref(event)) == 0
        assert self.rt.cudaEventRecord(event, self.stream) == 0
        self.ends.append(event)

    def between(self):
        ms = ctypes.c_float()
        assert self.rt.cudaDeviceSynchronize() == 0
        assert self.rt.cudaEventElapsedTime(ctypes.byref(ms), self.ends[0], self.ends[-1]) == 0
        return round(ms.value * 1e6)


def log(word):
    if "GPU_JOB_LOG" in os.environ:
        with open(os.environ["GPU_JOB_LOG"], "a") as file:
            file.write(f"{word}\n")


def main():
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    log(f"begin{rank}")
    gpu = Fake() if os.environ.get("FAKE_GPU") else Device()
    store, ident, comm = Store(), Id(), P()
    if rank == 0:
        assert nccl.ncclGetUniqueId(ctypes.byref(ident)) == 0
        store.set("nccl id", bytes(ident))
    else:
        ident = Id.from_buffer_copy(store.get("nccl id"))
    assert nccl.ncclCommInitRank(ctypes.byref(comm), world, ident, rank) == 0
    for _ in range(STEPS):
        gpu.compute()
        assert nccl.ncclAllReduce(gpu.buffer, gpu.buffer, COUNT, F32, SUM, comm, gpu.stream) == 0
        gpu.mark()
    os.write(1, b"%d\n" % gpu.between())  # one write: ranks of `run --all` share the file
    log(f"end{rank}")


main()
