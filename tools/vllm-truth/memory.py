#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What vLLM itself holds beside its cache, on the zero-GPU device, and how many blocks it makes of the rest.

usage: memory.py --maquette MAQUETTE --python PYTHON [--only PART] [--again] [FILE]

FILE (tests/data/vllm_memory.json) has models, each a config.json, and cases: a model and options of `vllm.LLM`. A case that has figures is not run
again without --again; PYTHON has vLLM. Weights are dummies. tests/test_serve_vllm_memory.py holds `maquette serve` against the figures.
What torch.compile tries the first time is in the figures of that run, so that a compiled case runs twice and the second counts. Seen with vllm 0.33.0.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
KEPT = ROOT / "tests" / "data" / "vllm_memory.json"
ALWAYS = dict(HF_HUB_OFFLINE="1", VLLM_NO_USAGE_STATS="1", VLLM_ENABLE_V1_MULTIPROCESSING="0", VLLM_USE_FLASHINFER_SAMPLER="0",
              VLLM_DEEP_GEMM_WARMUP="skip")


def inside(folder, options, out):
    """In vLLM's own process: starts its engine and writes what it measured."""
    import vllm
    from vllm.v1.worker.gpu_worker import Worker

    said, measure = {}, Worker.determine_available_memory

    def measured(worker):
        available = measure(worker)
        said.update(weights=int(worker.model_runner.model_memory_usage), consumed=int(worker.total_consumed),
                    activations=int(worker.peak_activation_memory), available=int(available))
        return available

    Worker.determine_available_memory = measured
    llm = vllm.LLM(model=folder, load_format="dummy", skip_tokenizer_init=True, async_scheduling=False, **json.loads(options))
    cache = llm.llm_engine.vllm_config.cache_config
    pathlib.Path(out).write_text(json.dumps(dict(vllm=vllm.__version__, blocks=cache.num_gpu_blocks, block_size=cache.block_size, **said)))


def run(maquette, python, config, options):
    """Figures, or the last line that the program said."""
    with tempfile.TemporaryDirectory(prefix="maq-vllm-") as folder:
        folder = pathlib.Path(folder)
        (folder / "model").mkdir()
        (folder / "model" / "config.json").write_text(json.dumps(config))
        command = [maquette, "run", "--world", "1", "--trace", folder / "t.mqr", "--", python, __file__, "--inside", folder / "model", json.dumps(options),
                   folder / "out.json"]
        for _ in range(1 if options.get("enforce_eager") else 2):
            done = subprocess.run([str(c) for c in command], env={**os.environ, **ALWAYS}, capture_output=True, text=True, check=False)
            if done.returncode != 0 or not (folder / "out.json").exists():
                return None, (done.stderr or done.stdout).strip().splitlines()[-1:]
        return json.loads((folder / "out.json").read_text()), None


def write(path, kept):
    """A model and a case are a line each."""
    rows = lambda items: ",\n".join("  " + json.dumps(x) for x in items)
    models = ",\n".join(f"  {json.dumps(name)}: {json.dumps(config)}" for name, config in kept["models"].items())
    path.write_text('{\n "models": {\n' + models + '\n },\n "cases": [\n' + rows(kept["cases"]) + "\n ]\n}\n", encoding="utf-8")


def main():
    if sys.argv[1:2] == ["--inside"]:
        return inside(*sys.argv[2:])
    args = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument("--maquette", required=True)
    args.add_argument("--python", required=True)
    args.add_argument("--only", default="")
    args.add_argument("--again", action="store_true")
    args.add_argument("file", nargs="?", type=pathlib.Path, default=KEPT)
    a = args.parse_args()
    kept = json.loads(a.file.read_text(encoding="utf-8"))
    for case in kept["cases"]:
        if a.only not in case["model"] or ("blocks" in case and not a.again):
            continue
        said, why = run(a.maquette, a.python, kept["models"][case["model"]], case["options"])
        print(case["model"], case["options"], said or why, flush=True)
        if said:
            case.update(said)
            write(a.file, kept)
    return 0


if __name__ == "__main__":
    sys.exit(main())
