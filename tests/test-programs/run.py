#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`make test-programs`: PyTorch's stock CUDA wheel and Megatron-Core on the zero-GPU device, and what their traces have to say.

usage: run.py [--python PYTHON] [NAME...]

Installs torch and megatron-core by their package names into a virtual environment of the build folder, unless --python (or
MAQ_TORCH_PYTHON) is an interpreter that has them. About 3 GB are fetched once. Whatever cannot be had is SKIPPED with the reason.
Each program runs twice and must leave the same bytes both times; whole jobs, captured and emulated, are in jobs.py, what
is predicted of them in predicted.py, and programs that the user has a folder of in by_path.py.
"""
import argparse
import collections
import os
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import vgpu_run  # noqa: E402
import by_path  # noqa: E402
import jobs  # noqa: E402
import predicted  # noqa: E402
from cli_case import Tap  # noqa: E402

BUILD = pathlib.Path(os.environ.get("MAQ_BUILD_ROOT", HERE.parent.parent / "build")).resolve()
STEPS, LAYERS, PARAMETERS = 3, 2, 1874944  # of gpt.py
CAUSAL = 1


def interpreter(given):
    """(path, None), or (None, why there is none)."""
    if given:
        probe = subprocess.run([given, "-c", "import torch; print(torch.version.cuda or '')"], capture_output=True, text=True,
                               check=False)
        return (given, None) if probe.stdout.strip() else (None, f"{given} has no torch that was built for CUDA")
    python = BUILD / "test-programs-venv/bin/python"
    if not python.exists():
        made = subprocess.run([sys.executable, "-m", "venv", python.parent.parent], capture_output=True, text=True, check=False)
        if made.returncode:
            return None, "no virtual environment can be made here"
    for names, modules in ((["torch", "numpy", "nvidia-ml-py"], "torch, numpy, pynvml"), (["megatron-core"], "megatron.core")):
        if subprocess.run([python, "-c", "import " + modules], capture_output=True, check=False).returncode:
            print("# installing", *names, flush=True)
            got = subprocess.run([python, "-m", "pip", "install", "--quiet", *names], capture_output=True, text=True, check=False)
            if got.returncode and "torch" in names:
                return None, "torch cannot be installed: " + (got.stderr.strip().splitlines() or ["?"])[-1]
    return interpreter(str(python))


def lacks(python, module):
    """Why the interpreter has no such module; None if it has."""
    got = subprocess.run([python, "-W", "ignore", "-c", "import " + module], capture_output=True, text=True, check=False)
    return None if got.returncode == 0 else f"no {module}: " + (got.stderr.strip().splitlines() or ["?"])[-1]


def launches(records, *words):
    """Launches of kernels whose names have all these words, whether a rule knows what they are or not."""
    return [r for r in records if r.kind == "launch" and all(w in r.op.name for w in words)]


def of_kind(records, kind):
    return [r for r in records if r.kind == "launch" and r.op.kind == kind]


def number(text, word):
    return int(re.search(rf"\b{word} (\d+)", text).group(1))


def products_of_gpt(records, batch=8, sequence=128, width=256, vocabulary=512):
    """Every product of a step, by its sizes as cuBLAS counts: forward, and the gradients of inputs and weights."""
    tokens = batch * sequence
    expected = collections.Counter()
    for out, into, times in ((3 * width, width, LAYERS), (width, width, LAYERS), (4 * width, width, LAYERS),
                             (width, 4 * width, LAYERS), (vocabulary, width, 1)):
        for sizes in ((out, tokens, into), (into, tokens, out), (into, out, tokens)):
            expected[sizes + (1,)] += STEPS * times
    found = collections.Counter(r.op.d[:4] for r in of_kind(records, "gemm"))
    assert found == expected, (found - expected, expected - found)
    assert {r.op.type for r in of_kind(records, "gemm")} == {"bf16"}


def start(records, _):
    assert [r.op.d[:4] for r in of_kind(records, "gemm")] == [(4, 4, 4, 1), (4096, 4096, 4096, 1)]
    assert records[-1].kind == "end" and records[-1].id == 0


def cudnn(records, _):
    products_of_gpt(records)
    for kind in ("attention", "attention_bwd"):
        found = of_kind(records, kind)
        assert len(found) == STEPS * LAYERS, (kind, len(found))
        assert {(r.op.d, r.op.flags, r.op.type) for r in found} == {((8, 4, 4, 128, 128, 64), CAUSAL, "bf16")}


def flash(records, _):
    products_of_gpt(records)
    assert len(launches(records, "flash_fwd")) == STEPS * LAYERS
    assert len(launches(records, "flash_bwd_dq_dk_dv_loop")) == STEPS * LAYERS


def efficient(records, _):
    products_of_gpt(records)
    assert len(launches(records, "fmha_cutlassF")) == STEPS * LAYERS
    assert len(launches(records, "fmha_cutlassB")) == STEPS * LAYERS


def plain(records, _):
    scores = [r for r in of_kind(records, "gemm") if r.op.d[3] == 8 * 4]
    assert len(scores) == STEPS * LAYERS * 6  # two products forward, four backward
    assert not of_kind(records, "attention")


def fused(records, text):
    flash(records, text)
    found = launches(records, "fused_adamw")
    assert found and all(r.op.bytes > 0 for r in found)


def foreach(records, text):
    flash(records, text)
    assert launches(records, "multi_tensor_apply") and not launches(records, "fused_adamw")


def memory(records, text):
    """Weights and two moments; a step counter for each of 29 tensors (fused), in blocks of 512 bytes."""
    flash(records, text)
    assert number(text, "allocated") - number(text, "states") >= 4 * PARAMETERS
    assert number(text, "states") == 2 * 4 * PARAMETERS + 29 * 512
    assert records[-1].bytes >= number(text, "reserved")  # the runtime gave at least the segments of the allocator


def ddp(records, _):
    found = collections.Counter()
    for r in records:
        if r.kind == "collective" and r.id & 63 == 0 and r.id >> 6 & 63 == vgpu_run.TYPES.index("f32"):
            found[r.bytes] += 1
    total = sum(bytes_ * n for bytes_, n in found.items())
    assert total == STEPS * 4 * PARAMETERS + (4 << 20) + 4, found  # gradients; what the program reduces; the barrier


def fsdp2(records, _):
    products_of_gpt(records)
    assert [r for r in records if r.kind == "communicator"]


def triton(records, _):
    """What kernels do, read from their PTX, against what their sources say: flop, bytes read, bytes written, depth, features of a head."""
    assert not [r.op.name for r in launches(records, "kernel") if r.op.kind == "kernel"]
    found = [r.op for r in launches(records, "product_kernel")]
    assert [op.d[:5] for op in found] == [(2 * m * n * k, 2 * (m * k + k * n), 2 * m * n, k, 0) for m, n, k in ((4096, 2048, 1024),)] + \
        [found[1].d[:5]], found[0].d
    near(found[1].d, (2 * 1024 * 512 * 8192, 2 * (1000 * 8192 + 8192 * 512), 2 * 1000 * 512), 0.03)  # 1000 rows, in tiles of 128
    assert {op.type for op in found} == {"bf16"}
    attention = launches(records, "attention_kernel")[0].op
    assert attention.d[:5] == (4 * 32 * 2048 ** 2 * 64, 3 * 2 * 32 * 2048 * 64, 2 * 32 * 2048 * 64, 2 * 2048, 64), attention.d
    for op, columns in zip([r.op for r in launches(records, "norm_kernel")], (4096, 5000)):
        near(op.d[:3], (0, 2 * columns * 301, 2 * columns * 300), 0.05)
    for op, length in zip([r.op for r in launches(records, "counted_kernel")], (3, 8)):
        near(op.d[:3], (0, 4 * 256 * length + 4 * 4, 4 * 256 * 4), 0.01)


def compiled(records, _):
    """A product by cuBLAS, or by one of the kernels that PyTorch tries, all of which do the same."""
    m, n, k = 2048, 4096, 1024
    tried = {r.op.d[:4] for r in launches(records, "triton_") if r.op.kind == "work" and r.op.d[0] > 0}
    assert tried <= {(2 * m * n * k, 2 * (m * k + k * n), 2 * m * n, k)}, tried
    assert tried or (n, m, k) in {r.op.d[:3] for r in of_kind(records, "gemm")}


def near(found, expected, part):
    for x, y in zip(found, expected):
        assert abs(x - y) <= part * y, (found, expected)


CASES = [("start", "start.py", (), start), ("arithmetic", "arithmetic.py", (), None),
         ("gpt-fused", "gpt.py", ("--attention", "flash"), fused),
         ("gpt-foreach", "gpt.py", ("--attention", "flash", "--optimizer", "foreach"), foreach),
         ("gpt-memory", "gpt.py", ("--attention", "flash"), memory),
         ("gpt-efficient", "gpt.py", ("--attention", "efficient"), efficient),
         ("gpt-math", "gpt.py", ("--attention", "math"), plain), ("gpt-cudnn", "gpt.py", ("--attention", "cudnn"), cudnn),
         ("gpt-profile", "gpt.py", ("--attention", "cudnn", "--profile"), cudnn), ("ddp", "ddp.py", (), ddp),
         ("fsdp2", "fsdp2.py", (), fsdp2), ("tp", "tp.py", (), None), ("nvml", "nvml.py", (), None),
         ("triton", "triton_kernels.py", (), triton), ("triton-compiled", "triton_kernels.py", ("--compile",), compiled),
         ("triton-ampere", "triton_kernels.py", (), triton), ("triton-blackwell", "triton_kernels.py", (), triton)]
CARDS = {"triton-ampere": {"capability": 80}, "triton-blackwell": {"capability": 100}}
MEASURES = {"triton-compiled"}  # the first run tries kernels out, and the second knows the best


def check(name, python, script, arguments, look):
    traces, done = [], None
    environment = {"RANK": "0", "WORLD_SIZE": "1", "LOCAL_RANK": "0", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29573"}
    with tempfile.TemporaryDirectory(prefix="maq-program-") as folder:
        environment |= {"TRITON_CACHE_DIR": f"{folder}/triton", "TORCHINDUCTOR_CACHE_DIR": f"{folder}/inductor"}
        for turn in range(2):
            trace = pathlib.Path(folder) / f"trace-{turn}"
            done = vgpu_run.run([python, HERE / script, *arguments], trace, card=CARDS.get(name, ()), env=environment)
            assert done.returncode == 0, done.stderr[-2000:]
            said = [line for line in done.stderr.splitlines() if line.startswith("maquette: ")]
            assert not said, said
            traces.append(trace.read_bytes() if trace.exists() else b"")
        assert name in MEASURES or traces[0] == traces[1], "two runs left different bytes"
        if look:
            look(vgpu_run.read(trace), done.stdout)


def attempt(tap, name, case):
    try:
        case()
        tap.result(True, name)
    except (AssertionError, KeyError, subprocess.TimeoutExpired) as error:
        tap.result(False, name, f"{type(error).__name__}: {error}"[:3000])


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--python", default=os.environ.get("MAQ_TORCH_PYTHON"))
    p.add_argument("names", nargs="*")
    a = p.parse_args()
    tap = Tap()
    python, why = (None, "the device is not built under a sanitizer") if vgpu_run.device_library() is None \
        else interpreter(a.python)
    for name, script, arguments, look in CASES:
        if a.names and name not in a.names:
            continue
        if python is None:
            tap.skip(name, why)
            continue
        attempt(tap, name, lambda: check(name, python, script, arguments, look))
    wholes = [(name, job, lambda module=module: (python, why if python is None else lacks(python, module)))
              for name, module, job in [*jobs.CASES, *predicted.CASES]]
    wholes += [(name, job, lambda place=place: by_path.folder_of(*place)) for name, place, job in by_path.CASES]
    for name, job, find in wholes:
        if a.names and name not in a.names:
            continue
        where, reason = find()
        if reason:
            tap.skip(name, reason)
        else:
            attempt(tap, name, lambda: job(BUILD / "maquette", where))
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
