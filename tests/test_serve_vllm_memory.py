#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Blocks of the cache that vLLM itself made on the zero-GPU device (tools/vllm-truth/memory.py) against those of `maquette serve`.

Of CUDA graphs the device counts what the allocator's pool has and no memory of the driver's, which serve counts. A case that is compiled without
graphs is held against serve's answer with what it takes off for graphs put back.
"""
import json
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
from cli_case import PROGRAM, Tap  # noqa: E402

BAR, GRAPHS_BAR = 0.5, 1.5  # %: of tokens that the cache has; vLLM's blocks are of another size where layers keep states
UNIT = 16  # tokens of a block of serve
OPTIONS = {"max_model_len": "--max-model-len", "max_num_batched_tokens": "--max-num-batched-tokens", "max_num_seqs": "--max-num-seqs"}


def answer(config, case):
    options = case["options"]
    with tempfile.TemporaryDirectory(prefix="maq-vllm-") as folder:
        path = pathlib.Path(folder) / "config.json"
        path.write_text(json.dumps(config))
        words = [PROGRAM, "serve", "--model", path, "--cluster", "h100-sxm:1", "--engine-version", case["vllm"], "--batch", 1, "--json"]
        for key, flag in OPTIONS.items():
            words += [flag, options[key]]
        if options.get("enforce_eager"):
            words.append("--enforce-eager")
        if "quantization" in options:
            words += ["--weights", options["quantization"]]
        done = subprocess.run([str(w) for w in words], capture_output=True, text=True, check=False)
        return json.loads(done.stdout).get("memory") if done.stdout else None, done.stderr or done.stdout


def mode_of(case):
    o = case["options"]
    return "eager" if o.get("enforce_eager") else "compiled" if "compilation_config" in o else "graphs"


def name_of(case):
    o = case["options"]
    return f"{case['model']} {mode_of(case)}{' fp8' if 'quantization' in o else ''}, {o['max_num_batched_tokens']} tokens, {o['max_num_seqs']} requests"


def off(config, case):
    """Percent, of tokens that the cache has; and why not, where there is no answer."""
    memory, why = answer(config, case)
    if memory is None:
        return None, why
    blocks = memory["blocks"] * (1 + (memory["graphs_bytes"] / memory["kv_cache_bytes"] if mode_of(case) == "compiled" else 0))
    return 100 * (blocks * UNIT / (case["blocks"] * case["block_size"]) - 1), ""


def main():
    kept = json.loads((HERE / "data" / "vllm_memory.json").read_text(encoding="utf-8"))
    tap = Tap()
    for case in (c for c in kept["cases"] if "blocks" in c):
        percent, why = off(kept["models"][case["model"]], case)
        said = "no answer" if percent is None else f"{percent:+.2f} %"
        tap.result(percent is not None and abs(percent) <= (GRAPHS_BAR if mode_of(case) == "graphs" else BAR), f"{name_of(case)}{', held out' if case.get('held_out') else ''}: {said}", why)
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
