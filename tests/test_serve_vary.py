#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`maquette serve --vary`: each row is the run that has its values on the command line, whoever runs it; which rows none beats is found by brute force."""
import itertools
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from cli_case import Scratch, Tap  # noqa: E402

BASE = "maquette serve --model llama-3.1-8b --cluster h100-sxm:4 --isl 300 --osl 40 --num-requests 60 --json"
SWEEPS = [
    ("--slo 'ttft_p95<300ms, tpot_mean<8ms'", {"rate": ["2", "8", "32"], "tp": ["1", "2", "3"]}, "--vary rate=2..32:x4 --vary tp=1..3:+1"),
    ("", {"concurrency": ["1", "16"], "enforce-eager": ["true", "false"], "weights": ["bf16", "fp8"]},
     "--vary concurrency=1,16 --vary enforce-eager=true,false,weights=bf16,fp8"),
    ("--rate 3", {"model": ["llama-3.1-8b", "llama-3.1-70b"], "cluster": ["h200:4", "b200:4 x 2"]},
     "--vary model=llama-3.1-8b,llama-3.1-70b --vary 'cluster=h200:4,b200:4 x 2'"),
]
FLAGS = {"enforce-eager"}


def alone(scratch, base, values):
    options = [f"--{key}" if key in FLAGS else f"--{key} '{value}'" for key, value in values.items() if value != "false"]
    out, _, code = scratch.run(" ".join([BASE, base, *options]))
    return json.loads(out), code


def same(row, document, code):
    """What is wrong with a row, or None."""
    if row["why"] is not None:
        return None if code > 1 and row["why"] == document["diagnostics"][0]["message"] else f"{row['why']} and {document}"
    if not row["fits"]:
        return None if code == 1 and not document["memory"]["fits"] else "it fits"
    latency, throughput = document["latency"], document["throughput"]
    pairs = {"requests_per_s": throughput["requests_per_s"], "output_tokens_per_s_per_device": throughput["output_tokens_per_s_per_device"],
             "overloaded": throughput["overloaded"], **{f"{name}_{q}_s": latency[f"{name}_s"][q] for name in ("ttft", "tpot", "e2el") for q in ("mean", "p95")}}
    if "slo" in document:
        pairs.update(slo_met=all(bound["met"] for bound in document["slo"]["bounds"]), goodput_per_s=document["slo"]["goodput"]["requests_per_s"])
    wrong = {key: (row[key], value) for key, value in pairs.items() if row[key] != value}
    return str(wrong) if wrong else None


def unbeaten(rows):
    served = [r for r in rows if r["why"] is None and r["fits"] and not r["overloaded"] and r.get("slo_met", True)]
    both = ("output_tokens_per_s_per_device", "output_tokens_per_s_per_user")
    return [r for r in served if not any(all(o[k] >= r[k] for k in both) and any(o[k] > r[k] for k in both) for o in served)]


def check(base, axes, options):
    with Scratch() as scratch:
        out, err, code = scratch.run(" ".join([BASE, base, options]))
        if code != 0:
            return False, out + err
        rows = json.loads(out)["variants"]
        wanted = [dict(zip(axes, values)) for values in itertools.product(*axes.values())]
        if [row["values"] for row in rows] != wanted:
            return False, str([row["values"] for row in rows])
        if [row for row in rows if row.get("pareto")] != unbeaten(rows):
            return False, "other rows are unbeaten"
        faults = [f"{row['values']}: {fault}" for row in rows if (fault := same(row, *alone(scratch, base, row["values"])))]
        kinds = {(row["why"] is None, row["fits"]) for row in rows}
        return not faults, "\n".join(faults) or str(kinds)


def refused(words, said):
    with Scratch() as scratch:
        out, err, code = scratch.run(f"{BASE.removesuffix(' --json')} {words}")
        return code == 2 and out == "" and said in err, out + err


def main():
    tap = Tap()
    for base, axes, options in SWEEPS:
        tap.result(*(lambda ok, why: (ok, f"rows of {options}", "" if ok else why))(*check(base, axes, options)))
    for words, said in (("--vary rate", "an option and its values are wanted"), ("--vary rat=1", "did you mean 'rate'?"),
                        ("--vary rate=2..8", "a range is FIRST..LAST"), ("--vary rate=1..9999:+1", "of 256 numbers at most"),
                        ("--vary engine=vllm,foo", "--engine does not take it"), ("--vary rate=1 --vary rate=2", "named twice"),
                        ("--vary json=true", "no option of the deployment"),
                        ("--vary rate=,1", "a value is missing")):
        tap.result(*(lambda ok, why: (ok, words, "" if ok else why))(*refused(words, said)))
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
