# SPDX-License-Identifier: Apache-2.0
"""Runs a program on the zero-GPU device as `maquette run` does, for tests of the shim alone, and reads its trace.

A private folder of symbolic links stands in for CUDA's libraries; one inode, so one copy of the device's state.
"""
import os
import pathlib
import struct
import subprocess
import tempfile

LIBRARIES = {"13": ("libcudart.so.13", "libcublas.so.13", "libcublasLt.so.13", "libcudnn.so.9", "libnccl.so.2",
                    "libcuda.so.1", "libnvidia-ml.so.1", "libnvrtc.so.13", "libcupti.so.13")}
KINDS = ("end operator communicator text host launch copy memset collective send recv record_event wait_event sync_event "
         "sync_stream sync_device host_function alloc free read exchange mark").split()
PAYLOAD = {"operator", "communicator", "text", "read", "exchange"}
OPERATORS = ("kernel gemm grouped_gemm attention attention_bwd norm norm_bwd conv library sequences sequences_bwd elementwise "
             "gated_activation rope embedding softmax part quantize work").split()
TYPES = "i8 u8 i32 u32 i64 u64 f16 f32 f64 bf16 f8e4m3 f8e5m2 tf32 f4 bit other".split()


class Operator:
    """A distinct operator of a trace (struct maq_rec_op of shim/record.h)."""

    def __init__(self, payload):
        kind, kind_in, kind_out, self.flags = struct.unpack_from("<HBBI", payload, 0)
        self.kind, self.type, self.out = OPERATORS[kind], TYPES[kind_in], TYPES[kind_out]
        self.grid, self.block = struct.unpack_from("<3I", payload, 8), struct.unpack_from("<3I", payload, 20)
        self.shared, n = struct.unpack_from("<II", payload, 32)
        self.d, (self.bytes,) = struct.unpack_from("<6q", payload, 40), struct.unpack_from("<Q", payload, 88)
        self.name = payload[96:96 + n].decode("utf-8", "replace")


class Record:
    def __init__(self, words):
        kind, self.flags, self.stream, self.id, self.host_ns, self.arg, self.bytes, self.ns = words
        self.kind, self.op = KINDS[kind], None


def read(path):
    """Records of a trace; those of launches have their operator."""
    data = pathlib.Path(path).read_bytes()
    assert data[:8] == b"maqrank\n", data[:8]
    at, operators, records = struct.unpack_from("<I", data, 12)[0], [], []
    while at + 32 <= len(data):
        r = Record(struct.unpack_from("<BBHIIIQQ", data, at))
        at += 32
        if r.kind in PAYLOAD:
            if r.kind == "operator":
                operators.append(Operator(data[at:at + r.bytes]))
            at += (r.bytes + 31) // 32 * 32
        if r.kind == "launch":
            r.op = operators[r.id]
        records.append(r)
    return records


def device_library(major="13"):
    """The shared object of the device; None where it was not built."""
    path = pathlib.Path(os.environ.get("MAQ_BUILD_ROOT", "build")) / f"shim/libmaquette-vgpu-{major}.so"
    return path.resolve() if path.is_file() else None


def run(command, trace, card=(), env=(), major="13", timeout=300):
    """Runs it; a finished process with its text. card: more lines of the run card."""
    with tempfile.TemporaryDirectory(prefix="maq-vgpu-") as folder:
        place = pathlib.Path(folder)
        for name in LIBRARIES[major]:
            (place / name).symlink_to(device_library(major))
        lines = {"world": 1, "rank": 0, "per_node": 1, "local": 0, "trace": trace, **dict(card)}
        (place / "card").write_text("".join(f"{key} {value}\n" for key, value in lines.items()), encoding="utf-8")
        # A name without a slash is looked for as a NEEDED one is, and what is preloaded is found before any RPATH.
        return subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False, stdin=subprocess.DEVNULL,
                              env=dict(os.environ, **dict(env), MAQUETTE_RUN=str(place / "card"), LD_LIBRARY_PATH=folder,
                                       LD_PRELOAD=":".join(LIBRARIES[major])))
