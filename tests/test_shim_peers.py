#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Programs that were written for MPI and for real clocks, under the zero-GPU device: compiled here, run as ranks.

The ABI files of shim/abi are compared with the real headers where there are some. A check whose compiler, header or library is
missing says SKIP with the reason.
"""
import os
import pathlib
import re
import shutil
import struct
import subprocess
import tempfile

ROOT = pathlib.Path(os.environ["MAQ_SOURCE_ROOT"])
SHIM = pathlib.Path(os.environ["MAQ_BUILD_ROOT"]) / "shim"
DEVICE, CLOCK = SHIM / "libmaquette-vgpu-13.so", SHIM / "libmaquette-clock.so"
STAND_INS = ["libcudart.so.13", "libnccl.so.2", "libmpi.so.40"]
CC = os.environ.get("CC", "cc").split()[-1]
TOOLKIT = pathlib.Path(os.environ.get("CUDA_HOME", "/usr/local/cuda"))


class Skip(Exception):
    pass


def compile_c(folder, source, *args):
    out = folder / pathlib.Path(source).stem
    done = subprocess.run([CC, "-std=c17", "-D_GNU_SOURCE", "-Wall", "-I", str(ROOT), str(ROOT / source), "-o", str(out), *args],
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return out


def mpi_include():
    mpicc = shutil.which("mpicc")
    if not mpicc:
        raise Skip("no mpicc: mpi.h not found")
    shown = subprocess.run([mpicc, "--showme:incdirs"], capture_output=True, text=True)
    if shown.returncode:
        raise Skip("mpicc is not Open MPI's")
    return [f"-I{d}" for d in shown.stdout.split()]


def device_folder(folder):
    if not DEVICE.exists():
        raise Skip(f"no {DEVICE.name}: a build with sanitizers has none")
    links = folder / "lib"
    links.mkdir(exist_ok=True)
    for name in STAND_INS:
        if not (links / name).exists():
            (links / name).symlink_to(DEVICE)
    return links


def segment(path, world):
    """An empty meeting segment, as link.h lays it out: 65,536 slots of 80 bytes and a GiB for payloads, all of it a hole."""
    slots, area = 1 << 16, 1 << 30
    data_at = (72 + slots * 80 + 4095) // 4096 * 4096
    with open(path, "wb") as f:
        f.write(struct.pack("<8sIIQQQQIIQII", b"maqmeet\n", 1, world, slots, data_at, area, 48 * 8, 0, 0, 0, 0, 0))
        f.truncate(data_at + area)


def run(folder, world, ranks, command, per_node=8, meet=False, card="", expect=0, wait=60):
    """Runs ranks of a job; their standard outputs, in order."""
    links = device_folder(folder)
    lines = f"world {world}\nper_node {per_node}\ntrace {folder}/trace.%r\n{card}"
    if meet:
        (folder / "meet").unlink(missing_ok=True)
        segment(folder / "meet", world)
        lines += f"mode meet\nmeet {folder}/meet\n"
    (folder / "card").write_text(lines, encoding="utf-8")
    env = {**os.environ, "MAQUETTE_RUN": str(folder / "card"), "LD_LIBRARY_PATH": str(links),
           "LD_PRELOAD": f"{CLOCK} {' '.join(STAND_INS)}"}
    started = [subprocess.Popen(command, env={**env, "RANK": str(r)}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
               for r in ranks]
    outputs = []
    try:
        for process in started:
            out, err = process.communicate(timeout=wait)
            assert process.returncode == expect, f"status {process.returncode}: {out} {err}"
            outputs.append(out)
    finally:
        for process in started:
            process.kill()
            process.wait()
    return outputs


# --- checks ---------------------------------------------------------------------------------------------------------------

def abi_of_nccl(folder):
    header = next((d for d in (TOOLKIT / "include", pathlib.Path("/usr/include")) if (d / "nccl.h").exists()), None)
    if not header or not (header / "cuda_runtime.h").exists():
        raise Skip("no nccl.h beside a CUDA toolkit")
    program = compile_c(folder, "tests/abi/nccl_abi.c", f"-I{header}")
    assert subprocess.run([program]).returncode == 0, "magic numbers differ"


def abi_of_mpi(folder):
    program = compile_c(folder, "tests/abi/mpi_abi.c", *mpi_include())
    assert subprocess.run([program]).returncode == 0, "MPI_IN_PLACE differs"


def sizes_of_mpi(folder):
    """Exported objects are as large as Open MPI's: programs copy them into themselves."""
    del folder
    real = next((p for d in ("/usr/lib/x86_64-linux-gnu", "/usr/lib64/openmpi/lib") for p in [pathlib.Path(d) / "libmpi.so.40"]
                 if p.exists()), None)
    if not real:
        raise Skip("no libmpi.so.40")
    if not DEVICE.exists():
        raise Skip(f"no {DEVICE.name}: a build with sanitizers has none")

    def objects(path):
        shown = subprocess.run(["nm", "-DS", "--defined-only", path], capture_output=True, text=True, check=True).stdout
        return {m[2]: int(m[1], 16) for m in re.finditer(r"^\w+ (\w+) [BDV] (ompi_\w+)$", shown, re.M)}
    ours, theirs = objects(DEVICE), objects(real)
    assert len(ours) > 80, ours
    wrong = {n: (s, theirs.get(n)) for n, s in ours.items() if theirs.get(n) != s}
    assert not wrong, wrong


def link_mpi(folder, *more):
    links = device_folder(folder)
    return compile_c(folder, "tests/victims/mpi_ranks.c", *mpi_include(), *more, str(links / "libmpi.so.40"))


def mpi_ranks_meet(folder):
    program = link_mpi(folder)
    out = run(folder, 6, range(6), [program, "meet"], per_node=2, meet=True)
    assert out == [f"rank {r} of 6, local {r % 2}, processor node0000{r // 2}\n" for r in range(6)], out


def mpi_copies(folder):
    """The same without position-independent code: MPI_COMM_WORLD is then in the program, not in the library."""
    program = link_mpi(folder, "-no-pie", "-fno-pie")
    out = run(folder, 4, range(4), [program, "meet"], per_node=2, meet=True)
    assert out[3].startswith("rank 3 of 4, local 1"), out


def mpi_alone(folder):
    program = link_mpi(folder)
    out = run(folder, 8192, [0, 4095, 8191], [program, "start"])
    assert out == [f"rank {r} of 8192, local {r % 8}, processor node{r // 8:05}\n" for r in (0, 4095, 8191)], out


def mpi_twice(folder):
    """Two runs of ranks that meet leave the same traces."""
    program = link_mpi(folder)
    traces = []
    for _ in range(2):
        run(folder, 4, range(4), [program, "meet"], per_node=2, meet=True)
        traces.append([(folder / f"trace.{r}").read_bytes() for r in range(4)])
    assert traces[0] == traces[1] and len(traces[0][1]) > 5 << 20


def host_clocks(folder):
    links = device_folder(folder)
    program = compile_c(folder, "tests/victims/host_clocks.c", str(links / "libnccl.so.2"), "-lpthread")
    assert run(folder, 8192, [4095], [program], card="call_ns 0\n") == ["host node00511\n"]
    assert run(folder, 8192, [8], [program, "real"], card="call_ns 0\nclock real\n") == ["host node00001\n"]


def boots(path):
    """(channel, rank in it, bytes) of the exchanges of a trace."""
    data, at, found = path.read_bytes(), 64, []
    while at + 32 <= len(data):
        kind, _, _, _, _, arg, size, ns = struct.unpack_from("<BBHIIIQQ", data, at)
        at += 32
        if kind in (1, 2, 3, 19, 20):  # with payloads: operator, communicator, text, read, exchange
            if kind == 20:
                found.append((ns, arg, data[at:at + size]))
            at += (size + 31) // 32 * 32
    return found


def contributions(path, traces):
    """The file of contributions from the traces of slices (link.h): entries by (channel, seq, rank), then the bytes."""
    entries, blob = [], b""
    for trace in traces:
        count = {}
        for channel, rank, data in boots(trace):
            seq = count.setdefault(channel, 0)
            count[channel] += 1
            if data:
                entries.append((channel, seq, rank, len(blob), len(data)))
                blob += data
    start = 16 + 32 * len(entries)
    rows = b"".join(struct.pack("<QIIQQ", c, s, r, start + at, n) for c, s, r, at, n in sorted(entries))
    path.write_bytes(b"maqpeers" + struct.pack("<Q", len(entries)) + rows + blob)


def tcp(folder):
    """Rank 0 of 8,192 is told of 8,191 clients; rank 4,095 then reads what it told them, and before that zeros."""
    links, port = device_folder(folder), 12345
    program = compile_c(folder, "tests/victims/tcp_id.c", str(links / "libnccl.so.2"))

    def rank(r, more=""):
        return run(folder, 8192, [r], [program, str(r), "8192", str(port)], card=f"tcp {port}\n{more}")
    assert rank(4095) == ["\n"]
    assert rank(0) == ["maqnccl\n"]
    contributions(folder / "peers", [folder / "trace.0"])
    assert rank(4095, f"peers {folder}/peers\n") == ["maqnccl\n"]
    lineages = {struct.unpack_from("<Q", (folder / f"trace.{r}").read_bytes(), (folder / f"trace.{r}").read_bytes().index(
        struct.pack("<II", 8192, r), 64) - 8) for r in (0, 4095)}
    assert len(lineages) == 1, lineages


def gloo(folder):
    """Rank 3 of a group of four over gloo: what ranks that never ran put in, then what rank 0 and 2 were seen to
    put in, and 1 is taken to, which follows 0."""
    device_folder(folder)
    program = compile_c(folder, "tests/victims/gloo_ranks.c")

    def rank(r, more="", **how):
        return run(folder, 4, [r], [program, str(r), *how.pop("arguments", ())], card=more, **how)[0].splitlines()
    sums, alike = "all-reduce 13 23 33 43", "all-gather" + " 300 301 302" * 4
    last = ["all-to-all 30 31 32 33"]
    assert rank(3) == [sums, alike, "broadcast -1", "gather 0 0 0 1003", *last, "messages 0 0", alike]
    alone = (folder / "trace.3").read_bytes()
    assert rank(3) and (folder / "trace.3").read_bytes() == alone, "two runs left different traces"
    for r in (0, 2):
        rank(r)
    assert rank(0)[0] == "all-reduce 10 20 30 40"
    contributions(folder / "last", [folder / "trace.3"])
    assert rank(0, f"peers {folder}/last\n")[0] == "all-reduce 23 43 30 40", "the last rank's first numbers"
    assert rank(0, "stops 1\n", expect=86) == [], "the last rank runs first"
    rank(0)
    contributions(folder / "peers", [folder / "trace.0", folder / "trace.2"])
    told = rank(3, f"peers {folder}/peers\n")
    assert told == [sums, "all-gather 0 1 2 0 1 2 200 201 202 300 301 302", "broadcast 4711", "gather 1000 1000 1002 1003",
                    *last, "messages 502 0", told[1]], told
    assert rank(3, arguments=["bad"], expect=1) == []  # a message of no known form ends the connection


def gloo_loop(folder):
    """200 pairs of gloo with nobody end sooner than its thread looks, and their ports are free again."""
    device_folder(folder)
    assert run(folder, 201, [0], [compile_c(folder, "tests/victims/gloo_loop.c")]) == [""]


def main():
    checks = [abi_of_nccl, abi_of_mpi, sizes_of_mpi, mpi_ranks_meet, mpi_copies, mpi_alone, mpi_twice, host_clocks, tcp, gloo, gloo_loop]
    print(f"1..{len(checks)}")
    for number, check in enumerate(checks, 1):
        with tempfile.TemporaryDirectory(prefix="maquette-shim-") as folder:
            try:
                check(pathlib.Path(folder))
                print(f"ok {number} - {check.__name__}", flush=True)
            except Skip as why:
                print(f"ok {number} - {check.__name__} # SKIP {why}", flush=True)
            except (AssertionError, subprocess.SubprocessError) as error:
                text = str(error).replace("\n", "\n# ")
                print(f"not ok {number} - {check.__name__}\n# {text}", flush=True)


if __name__ == "__main__":
    main()
