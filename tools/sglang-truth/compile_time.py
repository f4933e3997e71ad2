#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Time that Triton takes for the norm of queries and keys in front of a delta rule, which SGLang before 0.5.16 compiles for every number of tokens.

usage: compile_time.py L2NORM_PY [LENGTHS]

L2NORM_PY is sglang/srt/layers/attention/fla/l2norm.py of such a wheel. Needs triton (PyPI; seen with 3.5.1, which 0.5.9 needs) and no GPU: the
compiler writes for one that is named. The first length pays for what is loaded once and is not counted. What src/serve/engine/host.c has is this,
on the processor that docs/validate-serve.md names.
"""
import argparse
import importlib.util
import os
import pathlib
import statistics
import tempfile
import time

KERNEL, BEGIN, END = "l2norm_fwd_kernel", "@triton.jit\ndef l2norm_fwd_kernel(\n", "def l2norm_fwd(\n"
HEADS, WIDTH, ROWS = 2, 128, 16  # of keys on a rank of Qwen3.5 cut over eight, of a head, of a block
GPUS = {"Hopper": 90, "Blackwell": 100}


def kernel_of(path, folder):
    """The kernel alone: Triton reads a function's source from a file."""
    text = pathlib.Path(path).read_text(encoding="utf-8")
    begin = text.find(BEGIN)
    if begin < 0 or "T: tl.constexpr" not in text:
        raise SystemExit(f"{path}: no {KERNEL} with its rows as a constant: SGLang 0.5.16 and later have none")
    alone = pathlib.Path(folder) / "alone.py"
    alone.write_text("import triton\nimport triton.language as tl\n" + text[begin:text.index(END, begin)], encoding="utf-8")
    spec = importlib.util.spec_from_file_location("alone", alone)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, KERNEL)


def main():
    args = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument("source")
    args.add_argument("lengths", type=int, nargs="?", default=12)
    a = args.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["TRITON_CACHE_DIR"] = folder
        import triton
        from triton.backends.compiler import GPUTarget
        from triton.compiler import ASTSource
        kernel = kernel_of(a.source, folder)
        signature = {"x": "*bf16", "y": "*bf16", "eps": "fp32"} | dict.fromkeys(("NB", "T", "D", "BT", "BD"), "constexpr")
        for name, target in GPUS.items():
            took = []
            for i in range(a.lengths + 1):
                rows = HEADS * (1000 + 37 * i)
                constants = {"NB": triton.cdiv(rows, 2048), "T": rows, "D": WIDTH, "BT": ROWS, "BD": WIDTH}
                began = time.perf_counter()
                triton.compile(ASTSource(kernel, signature, constexprs=constants, attrs={(0,): [["tt.divisibility", 16]], (1,): [["tt.divisibility", 16]]}),
                               target=GPUTarget("cuda", target, 32), options={"num_warps": 8, "num_stages": 3})
                took.append(time.perf_counter() - began)
            print(f"{name}: {1e3 * statistics.median(took[1:]):.1f} ms a length, {1e3 * min(took[1:]):.1f} to {1e3 * max(took[1:]):.1f}")


if __name__ == "__main__":
    main()
