#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`make beside-aiconfigurator`: what `maquette serve plan` recommends beside NVIDIA's AIConfigurator, on eight GPUs, for the models, GPUs and lengths of
measured runs; a table for docs/serve-plan.md.

usage: run.py --build FOLDER --rows FILE [--python PYTHON] [--only WORD]

FILE is the output of `maquette validate serve TABLE --json`. A case is a model, GPU, engine and precision with runs of two deployments or more,
at the lengths with the most of them; the target is the median of their TPOT, and a first token within two seconds, both in the mean. Each
recommendation is the degrees of a replica. It is judged three times, by the most tokens a second and GPU that it has within the target: by
maquette's simulation of requests that come by themselves (the engine's limits are searched for either), by AIConfigurator's own estimate at any number of requests at once, and by the measured runs, where there are
some of both.

Installs aiconfigurator by its name into a virtual environment of the build folder, unless --python or MAQ_AICONFIGURATOR_PYTHON is an
interpreter that has it. SKIPPED with the reason where it cannot be had.
"""
import argparse
import collections
import json
import os
import pathlib
import subprocess
import sys

VERSION = "0.12.0"
HERE = pathlib.Path(__file__).resolve().parent
GPUS = 8
TTFT_S = 2.0
TOLERANCE = 1.05  # of what was measured
SYSTEMS = {"h100-sxm": "h100_sxm", "h200": "h200_sxm", "b200": "b200_sxm", "gb200": "gb200"}
# Of a model and a precision the checkpoint that AIConfigurator knows.
CHECKPOINTS = {("meta-llama/Llama-3.1-70B", "fp8"): "nvidia/Llama-3.1-70B-Instruct-FP8", ("Qwen/Qwen3-32B", "fp8"): "Qwen/Qwen3-32B-FP8",
               ("meta-llama/Llama-3.1-8B-Instruct", ""): "meta-llama/Meta-Llama-3.1-8B", ("MiniMaxAI/MiniMax-M2.5", "fp4"): "nvidia/MiniMax-M2.5-NVFP4"}
# Checkpoints that say their types themselves.
OWN_TYPES = ("openai/", "MiniMaxAI/", "Qwen/Qwen3-235B-A22B-FP8")
Degrees = collections.namedtuple("Degrees", "tp pp dp ep")


def run(*command):
    return subprocess.run([str(c) for c in command], capture_output=True, text=True, check=False)


def last_line(text):
    return (text.strip().splitlines() or ["?"])[-1]


def interpreter(given, build):
    """(path, None), or (None, why there is none)."""
    probe = "from importlib.metadata import version; print(version('aiconfigurator'))"
    if given:
        got = run(given, "-c", probe)
        return (given, None) if got.returncode == 0 else (None, f"{given} has no aiconfigurator: {last_line(got.stderr)}")
    python = build / "aiconfigurator-venv/bin/python"
    if not python.exists() and run(sys.executable, "-m", "venv", python.parent.parent).returncode:
        return None, "no virtual environment can be made here"
    if last_line(run(python, "-c", probe).stdout) != VERSION:
        got = run(python, "-m", "pip", "install", "--quiet", f"aiconfigurator=={VERSION}")
        if got.returncode:
            return None, f"aiconfigurator {VERSION} cannot be installed: {last_line(got.stderr)}"
    return interpreter(str(python), build)


class Other:
    """AIConfigurator, asked a question at a time."""

    def __init__(self, python):
        self.process = subprocess.Popen([python, HERE / "recommend.py"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)

    def ask(self, **question):
        print(json.dumps(question), file=self.process.stdin, flush=True)
        return json.loads(self.process.stdout.readline())


class Maquette:
    """The program, and the model, engine and lengths of a case."""

    def __init__(self, program, case):
        weights = {"fp8": ["--weights", "fp8"], "fp4": ["--weights", "nvfp4"]}.get(case.precision, [])
        if case.model.startswith(OWN_TYPES) and case.precision != "fp4" or case.model.startswith("openai/"):
            weights = []
        self.command, self.osl = [program, "serve"], case.osl
        self.job = ["--model", case.model, "--cluster", f"{case.device}:{GPUS}", "--engine", case.framework, *weights, "--isl", case.isl, "--osl", case.osl, "--json"]

    def best(self, target_s, *space):
        """(degrees of the best deployment, its tokens a second and GPU) among all, or those of `space`; (None, None)."""
        done = run(*self.command, "plan", *self.job, "--no-pools", "--no-front", "--slo", f"ttft_mean<={TTFT_S}s, tpot_mean<={target_s * 1e3:.4f}ms", *space)
        found = json.loads(done.stdout)["best"] if done.stdout and '"best"' in done.stdout else None
        if not found:
            return None, None
        return Degrees(*(found["fleet"][0][k] for k in ("tp", "pp", "dp", "ep"))), found["requests_per_s"] * self.osl / found["gpus"]

    def most(self, d, target_s):
        """The same of a deployment with these degrees, whatever limits its engine is told."""
        return self.best(target_s, *(f"--space={axis}={value}" for axis, value in zip(Degrees._fields, d)))[1]


def most_within(at, target_s):
    """The most tokens a second and GPU within the target, at(concurrency) -> (TTFT, TPOT, rate) or None; None: none is."""
    held, missed, rate = 0, None, None
    concurrency = 1
    while missed is None and concurrency <= 1024:
        found = at(concurrency)
        if found and found[0] <= TTFT_S and found[1] <= target_s:
            held, rate = concurrency, max(rate or 0, found[2])
            concurrency *= 2
        else:
            missed = concurrency
    while missed and missed - held > 1 + held // 16:
        middle = (held + missed) // 2
        found = at(middle)
        if found and found[0] <= TTFT_S and found[1] <= target_s:
            held, rate = middle, max(rate or 0, found[2])
        else:
            missed = middle
    return rate


class Case:
    def __init__(self, key, rows):
        self.model, self.device, self.framework, self.precision, isl, osl = key
        self.isl, self.osl, self.rows = int(isl), int(osl), rows
        tpots = sorted(row["tpot"] for row in rows)
        self.target_s = tpots[(len(tpots) - 1) // 2]

    def measured(self, d):
        """The most of a deployment's measured runs within the target; None: there is none, or none of it was measured."""
        rates = [r["rate"] for r in self.rows
                 if (r["tp"], r["pp"], max(r["dp"], 1)) == d[:3] and (max(r["ep"], 1) > 1) == (d.ep > 1)
                 and r["tpot"] <= self.target_s * TOLERANCE and r["ttft"] <= TTFT_S * TOLERANCE]
        return max(rates, default=None)


def cases_of(document):
    groups = collections.defaultdict(list)
    rows = document["rows"]
    for token, first in zip(rows, rows[1:]):
        if (token["metric"], first["metric"]) != ("tpot", "ttft") or token["id"] != first["id"] or token["kind"] != "serving" or not token["load"]:
            continue
        gpus = token["tp"] * token["pp"] * max(token["dp"], 1)
        key = (token["model"], token["device"], token["framework"], token["precision"], token["isl"], token["osl"])
        groups[key].append({**{k: token[k] for k in ("tp", "pp", "dp", "ep")}, "tpot": token["measured"], "ttft": first["measured"],
                            "rate": token["load"] * token["osl"] / (first["measured"] + (token["osl"] - 1) * token["measured"]) / gpus})
    chosen = {}
    for key, found in sorted(groups.items()):
        if len({(r["tp"], r["pp"], r["dp"], r["ep"] > 1) for r in found}) < 2 or key[1] not in SYSTEMS:
            continue
        if len(found) > len(chosen.get(key[:4], (None, []))[1]):
            chosen[key[:4]] = (key, found)
    return [Case(*entry) for entry in chosen.values()]


def words(d):
    return "none" if d is None else " ".join(f"{name}{value}" for name, value in zip(Degrees._fields, d) if value > 1 or name == "tp")


def cell(value):
    return "" if value is None else f"{value:.0f}"


def judge(case, program, other):
    """A line of the table."""
    mine, checkpoint = Maquette(program, case), CHECKPOINTS.get((case.model, case.precision), case.model)
    question = {"model": checkpoint, "system": SYSTEMS[case.device], "backend": case.framework, "isl": case.isl, "osl": case.osl}
    theirs = other.ask(ask="best", ttft_ms=TTFT_S * 1e3, tpot_ms=case.target_s * 1e3, gpus=GPUS, **question)
    head = f"| {case.model.split('/')[-1]}, {case.precision or 'bf16'} | {case.device} | {case.framework} | {case.isl}/{case.osl} | {case.target_s * 1e3:.1f} |"
    if "why" in theirs and theirs["why"] != "nothing holds the target":
        return f"# {head} AIConfigurator: {theirs['why']}"
    best, rate = mine.best(case.target_s)
    recommended = [best, Degrees(theirs["tp"], theirs["pp"], theirs["dp"], theirs["ep"]) if "tp" in theirs else None]

    def estimated(d, etp):
        def at(concurrency):
            got = other.ask(ask="estimate", batches=[concurrency], tp=d.tp, pp=d.pp, dp=d.dp, etp=etp, ep=d.ep, **question)
            return (got[0]["ttft_ms"] / 1e3, got[0]["tpot_ms"] / 1e3, got[0]["tokens_per_s_per_gpu"]) if isinstance(got, list) else None
        return most_within(at, case.target_s)

    simulated = [rate, rate if recommended[1] == best else recommended[1] and mine.most(recommended[1], case.target_s)]
    estimates = [d and estimated(d, d.tp * d.dp // d.ep if d.ep > 1 else d.tp * d.dp) for d in recommended]
    measured = [d and case.measured(d) for d in recommended]
    figures = [f"{cell(a)} / {cell(b)}" for a, b in (simulated, estimates, measured)]
    return f"{head} {words(recommended[0])} | {words(recommended[1])} | {' | '.join(figures)} |"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", default="build", type=pathlib.Path)
    parser.add_argument("--rows", required=True, type=pathlib.Path)
    parser.add_argument("--python", default=os.environ.get("MAQ_AICONFIGURATOR_PYTHON"))
    parser.add_argument("--only", default="", help="cases whose model, GPU and engine have this in them")
    options = parser.parse_args()
    python, why = interpreter(options.python, options.build)
    if not python:
        print(f"SKIPPED: {why}")
        return 0
    other = Other(python)
    print("| model | GPU | engine | in/out | TPOT ms | maquette | AIConfigurator | simulated | estimated | measured |")
    print("|---|---|---|---|---|---|---|---|---|---|", flush=True)
    for case in cases_of(json.loads(options.rows.read_text(encoding="utf-8"))):
        if options.only in f"{case.model} {case.device} {case.framework} {case.precision}":
            print(judge(case, options.build / "maquette", other), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
