#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`make vllm-truth`: records what vLLM's scheduler decides on random requests, and lets maquette decide the same; then the same with the whole
engine on the zero-GPU device (emulated.py), with its blocks (compare.py).

usage: run.py [--python PYTHON] [--first N] [--count N] [--build FOLDER]

Installs vllm (the version that src/serve was written from) by its name into a virtual environment of the build folder, unless --python
or MAQ_VLLM_PYTHON is an interpreter that has it: about 10 GB with PyTorch, once. SKIPPED with the reason where it cannot be had. The
recordings stay in BUILD/vllm-truth; recording N is the same every time.
"""
import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys

VERSION = "0.33.0"
HERE = pathlib.Path(__file__).resolve().parent
PROBE = "import vllm; print(vllm.__version__)"
MODEL = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 512, "intermediate_size": 1024, "num_hidden_layers": 4,
         "num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 64, "vocab_size": 32000, "max_position_embeddings": 4096,
         "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "hidden_act": "silu", "torch_dtype": "bfloat16", "tie_word_embeddings": False,
         "bos_token_id": 1, "eos_token_id": 2}
ENGINE_SECONDS = 600


def last_line(text):
    return (text.strip().splitlines() or ["?"])[-1]


def run(*command):
    return subprocess.run([str(c) for c in command], capture_output=True, text=True, check=False)


def interpreter(given, build):
    """(path, None), or (None, why there is none)."""
    if given:
        probe = run(given, "-c", PROBE)
        return (given, None) if probe.returncode == 0 else (None, f"{given} has no vllm: {last_line(probe.stderr)}")
    python = build / "vllm-truth-venv/bin/python"
    if not python.exists() and run(sys.executable, "-m", "venv", python.parent.parent).returncode:
        return None, "no virtual environment can be made here"
    if last_line(run(python, "-c", PROBE).stdout) != VERSION:
        print(f"# installing vllm {VERSION}", flush=True)
        got = run(python, "-m", "pip", "install", "--quiet", f"vllm=={VERSION}")
        if got.returncode:
            return None, f"vllm {VERSION} cannot be installed: {last_line(got.stderr)}"
    return interpreter(str(python), build)


def engine(python, maquette, out):
    """The engine itself, on the zero-GPU device, beside serve: an exit status."""
    model = out / "model"
    model.mkdir()
    (model / "config.json").write_text(json.dumps(MODEL), encoding="utf-8")
    recording = out / "engine.jsonl"
    path = f"{pathlib.Path(python).parent}{os.pathsep}{os.environ.get('PATH', '')}"  # where its compilers are found
    got = subprocess.run([str(c) for c in (maquette, "run", "--world", 1, "--output", out / "run.txt", "--", python, HERE / "emulated.py", "--model", model,
                                           "--out", recording)], capture_output=True, text=True, check=False, timeout=ENGINE_SECONDS,
                         env={**os.environ, "PATH": path})
    if got.returncode:
        print(f"the engine does not run: {last_line(got.stderr)}")
        return 1
    return subprocess.run([sys.executable, HERE / "compare.py", "--maquette", maquette, "--model", model / "config.json", recording],
                          check=False).returncode


def main():
    args = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument("--python", default=os.environ.get("MAQ_VLLM_PYTHON"))
    args.add_argument("--first", type=int, default=1000)
    args.add_argument("--count", type=int, default=50)
    args.add_argument("--build", type=pathlib.Path, default=HERE.parent.parent / "build")
    a = args.parse_args()
    python, why = interpreter(a.python, a.build.resolve())
    if not python:
        print(f"SKIPPED: {why}")
        return 0
    out = a.build / "vllm-truth"
    shutil.rmtree(out, ignore_errors=True)
    record = subprocess.run([python, HERE / "record.py", "--out", out, "--first", str(a.first), "--count", str(a.count)],
                            stderr=subprocess.PIPE, text=True, check=False)
    files = sorted(out.glob("*.jsonl.gz"))
    if record.returncode or not files:
        print(record.stderr[-2000:], file=sys.stderr)
        print(f"SKIPPED: nothing could be recorded: {last_line(record.stderr)}")
        return 0
    decided = subprocess.run([a.build / "maquette", "validate", "schedule", *files], check=False).returncode
    return decided or engine(python, a.build / "maquette", out)


if __name__ == "__main__":
    sys.exit(main())
