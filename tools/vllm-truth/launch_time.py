#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Processor time that vLLM's worker takes to launch a pass, split into what every pass has and what each layer has.

usage: launch_time.py FEW.json MANY.json [FEW.json MANY.json...]

Each pair is what emulated.py wrote of one model with few and with many layers, started alike, one request of a prompt over many iterations:

    maquette run --world 1 -- PYTHON emulated.py --model FOLDER --out F.jsonl --batch 1 --isl 32000 --osl 60 --max-num-batched-tokens 640
             --max-model-len 34000 [--compiled | --graphs]

On the zero-GPU device a launch returns at once, so that what is left is Python, PyTorch and the engine. Times are of the tenth quickest of a
hundred, each over the yardstick before it (recording.py) and times the quickest of all yardsticks: what the processor is shared with goes out of
both. Prompts and decodes of a pair are apart. What src/serve/engine/host.c has is this, on the processor that docs/validate-serve.md names.
"""
import json
import pathlib
import sys


def read(path):
    told = json.loads(pathlib.Path(path).read_text(encoding="utf-8"))
    config = json.loads((pathlib.Path(told["model"]) / "config.json").read_text(encoding="utf-8"))
    return told, config["num_hidden_layers"]


def tenth_quickest(values):
    return sorted(values)[len(values) // 10]


def halves(told, quickest):
    """Milliseconds of an iteration of the prompt, and of one that decodes; the first ones of either warm up."""
    passes = [1e3 * s / y * quickest for s, y in zip(told["host_s"], told["yardstick_s"])]
    prompts = -(-told["isl"] // told["knobs"]["max_num_batched_tokens"])
    return tenth_quickest(passes[2:prompts - 1]), tenth_quickest(passes[prompts + 2:])


def main():
    paths = sys.argv[1:]
    if len(paths) < 2 or len(paths) % 2:
        sys.exit(__doc__)
    runs = [read(p) for p in paths]
    quickest = min(min(told["yardstick_s"]) for told, _ in runs)
    print(f"yardstick {1e3 * quickest:.3f} ms at best")
    for (few, low), (many, high) in zip(runs[::2], runs[1::2]):
        for kind, a, b in zip(("prompt", "decode"), halves(few, quickest), halves(many, quickest)):
            layer = (b - a) / (high - low)
            print(f"{few['model']:12} {kind}  {a:6.2f} ms of {low} layers, {b:6.2f} of {high}: {1e3 * layer:6.0f} us a layer, {a - low * layer:5.2f} ms a pass")


if __name__ == "__main__":
    main()
