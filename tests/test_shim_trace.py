#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How a trace ends: by exit, by a signal, by a kill, with a fork on the way, with a second process of the same rank; where times come
from (the socket of questions) and where invented values come from (the oracle's file)."""
import os
import pathlib
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import vgpu_run  # noqa: E402
from cli_case import Tap  # noqa: E402

HEAD = """
import ctypes, os, signal, struct, sys, time
vgpu = ctypes.CDLL(sys.argv[1])
def malloc(n):
    p = ctypes.c_void_p()
    assert vgpu.cudaMalloc(ctypes.byref(p), ctypes.c_size_t(n)) == 0
    return p
def memset(p, n):
    assert vgpu.cudaMemset(p, 0, ctypes.c_size_t(n)) == 0
def read(p, n):
    out = ctypes.create_string_buffer(n)
    assert vgpu.cudaMemcpy(out, p, ctypes.c_size_t(n), 2) == 0
    return out.raw[:n]
"""
LAUNCH = """
m = ctypes.c_void_p(); f = ctypes.c_void_p()
image = bytes(64)
assert vgpu.cuModuleLoadData(ctypes.byref(m), image) == 0
def launch(name, grid):
    assert vgpu.cuModuleGetFunction(ctypes.byref(f), m, name) == 0
    assert vgpu.cuLaunchKernel(f, grid, 1, 1, 32, 1, 1, 0, None, None, None) == 0
"""


def start(folder, body, more="", preload=False):
    card = folder / "card"
    card.write_text(f"world 1\nrank 0\nper_node 1\ntrace {folder}/trace\n{more}", encoding="utf-8")
    return subprocess.Popen([sys.executable, "-c", HEAD + body, vgpu_run.device_library()], stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                            env=dict(os.environ, MAQUETTE_RUN=str(card),
                                     **({"LD_PRELOAD": str(vgpu_run.device_library())} if preload else {})))


def finish(process, status=0):
    out, err = process.communicate(timeout=60)
    assert process.returncode == status, f"status {process.returncode}: {err}"
    return out, err


def records(folder):
    return vgpu_run.read(folder / "trace")


def kinds(folder):
    return [r.kind for r in records(folder)]


def exits(folder):
    finish(start(folder, "p = malloc(3 << 20)\nmemset(p, 8)\nsys.exit(3)"), 3)
    found = records(folder)
    assert [r.kind for r in found] == ["alloc", "memset", "end"], kinds(folder)
    assert (found[-1].id, found[-1].arg, found[-1].bytes) == (3, 0, 3 << 20)


def leaves_at_once(folder):
    """os._exit(), as workers of multiprocessing do: in a process that was forked before anything was driven."""
    body = ("pid = os.fork()\nif pid == 0:\n    memset(malloc(64), 8)\n    os._exit(7)\n"
            "assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7")
    finish(start(folder, body, preload=True))
    found = records(folder)
    assert [r.kind for r in found] == ["alloc", "memset", "end"] and found[-1].id == 7, kinds(folder)


def nothing_done(folder):
    finish(start(folder, "assert vgpu.cudaGetDeviceCount(ctypes.byref(ctypes.c_int())) == 0"))
    assert not (folder / "trace").exists(), "a program that drives nothing leaves no trace"


def ends_by_signal(folder):
    finish(start(folder, "malloc(1)\nsignal.signal(signal.SIGTERM, signal.SIG_DFL)\n"), 0)
    finish(start(folder, "malloc(1)\nos.kill(os.getpid(), signal.SIGTERM)\ntime.sleep(60)"), -signal.SIGTERM)
    last = records(folder)[-1]
    assert (last.kind, last.id, last.arg) == ("end", signal.SIGTERM, 1), kinds(folder)


def killed(folder):
    """What went to the file before stays readable, and there is no end."""
    body = "p = malloc(4096)\nfor i in range(20000):\n    memset(p, 8)\nos.kill(os.getpid(), signal.SIGKILL)\ntime.sleep(60)"
    finish(start(folder, body), -signal.SIGKILL)
    found = kinds(folder)
    assert found[0] == "alloc" and set(found[1:]) == {"memset"} and 8192 <= len(found) <= 20001, len(found)


def killed_after_a_wait(folder):
    """Few records, and a wait: they are in the file, whoever kills the program then."""
    body = "p = malloc(4096)\nmemset(p, 8)\nassert vgpu.cudaDeviceSynchronize() == 0\nos.kill(os.getpid(), signal.SIGKILL)\ntime.sleep(60)"
    finish(start(folder, body), -signal.SIGKILL)
    assert kinds(folder)[:2] == ["alloc", "memset"], kinds(folder)


def forks(folder):
    body = ("p = malloc(4096)\nmemset(p, 8)\npid = os.fork()\nif pid == 0:\n    memset(p, 8)\n    sys.exit(9)\n"
            "assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 9\nmemset(p, 16)")
    finish(start(folder, body))
    found = records(folder)
    assert [r.kind for r in found] == ["alloc", "memset", "memset", "end"], kinds(folder)
    assert found[2].bytes == 16 and found[3].id == 0


def second_process(folder):
    """Two at a time of one rank: the first is recorded, the other runs and says that it is not."""
    ready = folder / "ready"
    first = start(folder, f"p = malloc(1)\nopen('{ready}', 'w').close()\n"
                          f"while os.path.exists('{ready}'):\n    time.sleep(0.01)\nmemset(p, 1)")
    while not ready.exists():
        assert first.poll() is None, first.communicate()
    _, said = finish(start(folder, "malloc(7)\nmalloc(7)"))
    assert "not recorded" in said, said
    ready.unlink()
    finish(first)
    assert kinds(folder) == ["alloc", "memset", "end"]


def asks(folder):
    """Every distinct question once; the answer is the duration. Without an answer the fixed rule."""
    at = folder / "ask"
    server = socket.socket(socket.AF_UNIX)
    server.bind(str(at))
    server.listen()
    heard = []

    def serve():
        line, _ = server.accept()
        with line:
            while True:
                data = b""
                while len(data) < 112 and (more := line.recv(112 - len(data))):
                    data += more
                if len(data) < 112:
                    return
                kind, _, size = struct.unpack_from("<IIQ", data)
                name = b""
                while len(name) < struct.unpack_from("<I", data, 16 + 36)[0]:
                    name += line.recv(4096)
                heard.append((kind, size, name.decode()))
                if len(heard) == 3:
                    return  # hangs up
                line.sendall(struct.pack("<Q", 123456))

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    launch = (LAUNCH +
              "for i in range(5):\n    launch(b'one', 1)\nlaunch(b'one', 2)\nlaunch(b'two', 1)\nlaunch(b'three', 1)\n")
    finish(start(folder, launch, f"ask {at}\n"))
    thread.join(10)
    server.close()
    assert heard == [(1, 0, "one"), (1, 0, "one"), (1, 0, "two")], heard
    found = [r.ns for r in records(folder) if r.kind == "launch"]
    assert found == [123456] * 6 + [2000, 2000], found


def oracle(folder):
    values = folder / "values"
    values.write_text("# a loss that falls, then stays\n0 0 0 f32 11.5\n0 0 1 f32 10.25 # second read\n0 0 * f32 9\n"
                      "* 8 * i32 7 8\nnonsense here\n", encoding="utf-8")
    body = ("p = malloc(4096)\n"
            "print([struct.unpack('<f', read(p, 4))[0] for i in range(4)])\n"
            "q = ctypes.c_void_p(p.value + 8)\nprint(struct.unpack('<3i', read(q, 12)))\n"
            "print(read(ctypes.c_void_p(p.value + 100), 4))")
    out, _ = finish(start(folder, body, f"values {values}\n"))
    assert out.splitlines() == ["[11.5, 10.25, 9.0, 9.0]", "(7, 8, 7)", r"b'\x00\x00\x00\x00'"], out
    reads = [r for r in records(folder) if r.kind == "read"]
    assert len(reads) == 6 and all(r.flags & 4 for r in reads), "invented values are marked"


def oracle_after(folder):
    """Values by what was launched last: for allocators that put things where they like."""
    values = folder / "values"
    values.write_text("after count 12 i32 share 11\nafter count 16 i64 share 6\nafter count 2 u8 share 5\nafter count 8 i32 share\n"
                      "after count 8 f32 share 4\nafter * 4 f32 0.5\nafter scan * i32 3 4\n", encoding="utf-8")
    body = LAUNCH + ("p = malloc(4096)\n"
                     "def read_after(name, n, form):\n    launch(name, 1)\n    return struct.unpack(form, read(p, n))\n"
                     "print(read_after(b'recount_all', 12, '<3i'), read_after(b'count', 16, '<2q'), read_after(b'count', 2, '<2B'))\n"
                     "print(read_after(b'count', 8, '<2i'), read_after(b'sort', 12, '<3i'), read_after(b'sort', 4, '<f'))\n"
                     "print(read_after(b'scan', 12, '<3i'), struct.unpack('<i', read(p, 4)))\n")
    out, _ = finish(start(folder, body, f"values {values}\n"))
    assert out.splitlines() == ["(4, 4, 3) (3, 3) (3, 2)", "(0, 0) (0, 0, 0) (0.5,)", "(3, 4, 3) (1056964608,)"], out
    reads = [r for r in records(folder) if r.kind == "read"]
    assert len(reads) == 8 and all(r.flags & 4 for r in reads), "invented values are marked"


def main():
    tap = Tap()
    for case in (exits, leaves_at_once, nothing_done, ends_by_signal, killed, killed_after_a_wait, forks, second_process, asks, oracle, oracle_after):
        name = case.__name__.replace("_", " ")
        if vgpu_run.device_library() is None:
            tap.skip(name, "the device is not built under a sanitizer")
            continue
        with tempfile.TemporaryDirectory(prefix="maq-trace-") as folder:
            try:
                case(pathlib.Path(folder))
                tap.result(True, name)
            except (AssertionError, OSError, subprocess.SubprocessError) as error:
                tap.result(False, name, str(error) or type(error).__name__)
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
