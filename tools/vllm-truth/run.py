#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`make vllm-truth`: records what vLLM's scheduler decides on random requests, and lets maquette decide the same; then the same with the whole
engine on the zero-GPU device (emulated.py), with its blocks (compare.py).

usage: run.py [--python PYTHON] [--first N] [--count N] [--build FOLDER]

Installs vllm (the version that src/serve was written from) by its name into a virtual environment of the build folder, unless --python
or MAQ_VLLM_PYTHON is an interpreter that has it: about 10 GB with PyTorch, once. SKIPPED with the reason where it cannot be had. The
recordings stay in BUILD/vllm-truth; recording N is the same every time.
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import truth  # noqa: E402

VERSION = "0.33.0"
HERE = pathlib.Path(__file__).resolve().parent
PROBE = "import vllm; print(vllm.__version__)"
MODEL = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 512, "intermediate_size": 1024, "num_hidden_layers": 4,
         "num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 64, "vocab_size": 32000, "max_position_embeddings": 4096,
         "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "hidden_act": "silu", "torch_dtype": "bfloat16", "tie_word_embeddings": False,
         "bos_token_id": 1, "eos_token_id": 2}
ENGINE_SECONDS = 600


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
        print(f"the engine does not run: {truth.last_line(got.stderr)}")
        return 1
    return subprocess.run([sys.executable, HERE / "compare.py", "--maquette", maquette, "--model", model / "config.json", recording],
                          check=False).returncode


def main():
    a = truth.arguments(__doc__, "MAQ_VLLM_PYTHON")
    python, why = truth.interpreter(a.python, a.build.resolve(), "vllm", VERSION, PROBE, [(f"vllm {VERSION}", [f"vllm=={VERSION}"])])
    if not python:
        print(f"SKIPPED: {why}")
        return 0
    out = a.build / "vllm-truth"
    shutil.rmtree(out, ignore_errors=True)
    record = subprocess.run([python, HERE / "record.py", "--out", out, "--first", str(a.first), "--count", str(a.count)],
                            stderr=subprocess.PIPE, text=True, check=False)
    files = truth.recordings(record, out)
    if not files:
        return 0
    decided = subprocess.run([a.build / "maquette", "validate", "schedule", *files], check=False).returncode
    return decided or engine(python, a.build / "maquette", out)


if __name__ == "__main__":
    sys.exit(main())
