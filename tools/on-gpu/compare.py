#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What was measured beside what maquette says of it: compare.csv and compare.txt.

    compare.py FOLDER MAQUETTE TOOLS        FOLDER: the files that the steps of on-gpu.sh left
"""
import csv
import gzip
import json
import pathlib
import re
import statistics
import subprocess
import sys

KINDS = (  # of kernels, by their names; the first that fits
    ("attention", r"flash|fmha|sdpa"),
    ("gemm", r"nvjet|cutlass|gemm|xmma|cublas|splitK"),
    ("optimizer", r"multi_tensor"),
    ("cross entropy", r"softmax|nll_loss"),
    ("embedding", r"embedding|index_?select|compute_grad_weight|sum_and_scatter|gather_kernel|radix_sort"),
    ("norm", r"rms|layer_norm|GammaBeta|RowwiseMoments|norm_kernel"),
    ("triton", r"triton"),
)
PREDICTED = {"attention": "attention", "attention_bwd": "attention", "gemm": "gemm", "optimizer": "optimizer",
             "cross_entropy": "cross entropy", "cross_entropy_bwd": "cross entropy", "embedding": "embedding", "embedding_bwd": "embedding",
             "norm": "norm", "norm_bwd": "norm"}


def kind_of(name):
    return next((kind for kind, pattern in KINDS if re.search(pattern, name, re.IGNORECASE)), "pointwise and other")


class Folder:
    def __init__(self, path, maquette, tools):
        self.path, self.maquette, self.tools, self.rows = pathlib.Path(path), maquette, pathlib.Path(tools), []

    def json(self, name):
        try:
            return json.loads((self.path / name).read_text())
        except (OSError, ValueError):
            return None

    def train(self, *more, name="llama.yaml"):
        done = subprocess.run([self.maquette, "train", str(self.tools / name), "--json", *more], capture_output=True, text=True, check=False,
                              cwd=self.path)
        if done.returncode > 1 or not done.stdout:
            print(" ".join(done.stderr.split())[:300])
            return None
        return json.loads(done.stdout)

    def add(self, what, unit, measured, by, predicted):
        if measured is not None and predicted is not None:
            off = 100 * (predicted / measured - 1) if measured else None
            self.rows.append((what, unit, measured, by, predicted, off))

    def write(self):
        with open(self.path / "compare.csv", "w", newline="") as file:
            table = csv.writer(file)
            table.writerow("what unit measured predicted_by predicted error_percent".split())
            table.writerows(self.rows)
        lines = [f"{'':44} {'measured':>16} {'predicted':>16} {'error, %':>9}  by"]
        for what, unit, measured, by, predicted, off in self.rows:
            show = "{:,.0f}" if unit == "bytes" or unit == "" else "{:,.3f}"
            lines.append(f"{what + (', ' + unit if unit else ''):44} {show.format(measured):>16} {show.format(predicted):>16} "
                         f"{'-' if off is None else f'{off:+.2f}':>9}  {by}")
        (self.path / "compare.txt").write_text("\n".join(lines) + "\n")
        print("\n".join(lines))


def kernels_of(path):
    """Milliseconds a step of each kind of kernel, and how many there are."""
    with gzip.open(path, "rt") as file:
        events = json.load(file)["traceEvents"]
    steps = {e["name"] for e in events if e.get("ph") == "X" and str(e.get("name", "")).startswith("ProfilerStep#")}
    total, count = {}, {}
    for e in events:
        if e.get("ph") == "X" and e.get("cat") in ("kernel", "gpu_memset", "gpu_memcpy"):
            kind = kind_of(e["name"])
            total[kind] = total.get(kind, 0) + e["dur"] / 1e3
            count[kind] = count.get(kind, 0) + 1
    n = max(1, len(steps))
    return {kind: (ms / n, count[kind] / n) for kind, ms in total.items()}


def kernels_of_run(report, steps):
    """Likewise, as `maquette run` priced them."""
    total = {}
    for o in report["operators"]:
        kind = kind_of(o["name"])
        total[kind] = total.get(kind, 0) + 1e-6 * o["launches"] * o["ns"] / steps
    return total


def training(f):
    real, expected = f.json("train-eager.json"), f.json("expected/train.json")
    if not real:
        return
    job = f.train()
    measured_db = f.train("--measured", str(f.path / "h100.db")) if (f.path / "h100.db").exists() else None
    f.add("step, eager", "ms", real["step_ms"], "maquette train", job and 1e3 * job["step_time_s"])
    f.add("step, eager", "ms", real["step_ms"], "maquette train --measured", measured_db and 1e3 * measured_db["step_time_s"])
    f.add("step, eager", "ms", real["step_ms"], "the zero-GPU device", expected and expected["step_ms"])
    if expected:
        for name in sorted(real["memory"]):
            f.add(name, "bytes" if "bytes" in name else "", real["memory"][name], "the zero-GPU device", expected["memory"].get(name))
        f.add("total memory of the device", "bytes", real["total_bytes"], "the zero-GPU device", expected["total_bytes"])
    if job:
        memory = job["stages"][0]["memory"]
        f.add("allocated_bytes.all.peak", "bytes", real["memory"]["allocated_bytes.all.peak"], "maquette train", memory["allocated_bytes"])
        f.add("reserved_bytes.all.peak", "bytes", real["memory"]["reserved_bytes.all.peak"], "maquette train", memory["reserved_bytes"])
        used = real["total_bytes"] - real["free_bytes"]
        f.add("context: used less reserved", "bytes", used - real["memory"]["reserved_bytes.all.current"], "maquette train",
              memory["context_bytes"])
    compiled = f.json("train-compiled.json")
    if compiled:
        fused = f.train("--fused-kernels", "true")
        f.add("step, compiled", "ms", compiled["step_ms"], "maquette train --fused-kernels true", fused and 1e3 * fused["step_time_s"])
        f.add("allocated peak, compiled", "bytes", compiled["memory"]["allocated_bytes.all.peak"], "maquette train --fused-kernels true",
              fused and fused["stages"][0]["memory"]["allocated_bytes"])
    trace = f.path / "trace-eager.json.gz"
    operators = f.json("ops-own.json")
    if trace.exists() and operators:
        predicted = {}
        for item in operators["items"]:
            kind = PREDICTED.get(item["kind"], "pointwise and other")
            predicted[kind] = predicted.get(kind, 0) + 1e3 * item["calls"] * item["predicted_s"]
        run = f.json("expected/train-run.json")
        priced = kernels_of_run(run, len(expected["steps_ms"]) + len(expected["first_ms"])) if run and expected else {}
        for kind, (ms, _) in sorted(kernels_of(trace).items(), key=lambda item: -item[1][0]):
            f.add(f"kernels of a step: {kind}", "ms", ms, "maquette train", predicted.get(kind, 0))
            f.add(f"kernels of a step: {kind}", "ms", ms, "the zero-GPU device", priced.get(kind))


def replayed(f, *edits):
    """Milliseconds of a step of the captured job."""
    done = subprocess.run([f.maquette, "replay", "expected/ddp.mqt", "--json", *edits], capture_output=True, text=True, check=False,
                          cwd=f.path)
    return statistics.median(1e3 * step["time_s"] for step in json.loads(done.stdout)["steps"]) if done.returncode == 0 else None


def emulated(f):
    try:
        lines = [json.loads(line) for line in (f.path / "expected/ddp.lines").read_text().splitlines()]
    except (OSError, ValueError):
        lines = []
    virtual = {line["rank"]: line for line in lines}
    for name, edits in (("alone", []), ("one", []), ("slow", ["--slow", "rank:2=1.5x"]), ("two", [])):
        path, report = f.path / f"emulate-{name}.lines", f.json(f"emulate-{name}.json")
        for line in path.read_text().splitlines() if path.exists() else []:
            rank = json.loads(line)
            what = f"live: {name}, rank {rank['rank']}"
            f.add(f"{what}: step", "ms", rank["step_ms"], " ".join(["replay", *edits]), replayed(f, *edits))
            f.add(f"{what}: allocated peak", "bytes", rank["peak"], "the zero-GPU device", virtual.get(0, {}).get("peak"))
            for live in (report or {}).get("live", []):
                if live.get("rank") == rank["rank"]:
                    f.add(f"{what}: device memory", "bytes", live.get("device_peak_bytes"), "captured", live.get("captured_peak_bytes"))


def main():
    f = Folder(*sys.argv[1:4])
    for part in (training, emulated):
        try:
            part(f)
        except (KeyError, ValueError, OSError, TypeError) as fault:
            print(f"{part.__name__}: {type(fault).__name__}: {fault}")
    f.write()
    best = [r for r in f.rows if r[0].startswith("step") or r[0].startswith("allocated_bytes.all.peak")]
    print("; ".join(f"{r[0]} {r[5]:+.1f} % ({r[3]})" for r in best))
    return 0 if f.rows else 1


if __name__ == "__main__":
    sys.exit(main())
