# SPDX-License-Identifier: Apache-2.0
"""What AIConfigurator recommends and estimates. Run by run.py with an interpreter that has aiconfigurator.

A question a line on standard input, as JSON; an answer a line on standard output:

  {"ask": "best", model, system, backend, isl, osl, ttft_ms, tpot_ms, gpus}             {"tp", "pp", "dp", "etp", "ep", "tokens_per_s_per_gpu", "version"}
  {"ask": "estimate", model, system, backend, isl, osl, tp, pp, dp, etp, ep, batches}   [{"batch", "ttft_ms", "tpot_ms", "tokens_per_s_per_gpu"}]

An answer that it does not have is {"why": ...}.
"""
import contextlib
import csv
import json
import os
import pathlib
import subprocess
import sys
import tempfile


def best(q):
    with tempfile.TemporaryDirectory() as out:
        command = [pathlib.Path(sys.executable).parent / "aiconfigurator", "cli", "default", "--model-path", q["model"], "--system", q["system"],
                   "--backend", q["backend"], "--total-gpus", str(q["gpus"]), "--serving-mode", "agg", "--isl", str(q["isl"]), "--osl", str(q["osl"]),
                   "--ttft", str(q["ttft_ms"]), "--tpot", str(q["tpot_ms"]), "--no-color", "--save-dir", out]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        tables = sorted(pathlib.Path(out).rglob("agg/best_config_topn.csv"))
        if not tables:
            said = [line for line in (done.stdout + done.stderr).splitlines() if "Error" in line or "No " in line or "[E]" in line]
            return {"why": (said or ["no answer"])[-1][-160:]}
        with open(tables[0], encoding="utf-8") as f:
            rows = list(csv.DictReader(f))
    if not rows:
        return {"why": "nothing holds the target"}
    row = max(rows, key=lambda r: float(r["tokens/s/gpu_cluster"]))
    return {"tp": int(row["tp"]), "pp": int(row["pp"]), "dp": int(row["dp"]), "etp": int(row["moe_tp"]), "ep": int(row["moe_ep"]),
            "ttft_ms": float(row["ttft"]), "tpot_ms": float(row["tpot"]), "tokens_per_s_per_gpu": float(row["tokens/s/gpu_cluster"]), "version": row["version"]}


def estimate(q):
    from aiconfigurator.cli import api  # slow to load, and not needed for the other question

    answers = []
    for batch in q["batches"]:
        experts = {"moe_tp_size": q["etp"], "moe_ep_size": q["ep"]} if q["etp"] * q["ep"] == q["tp"] * q["dp"] else {}
        try:
            e = api.cli_estimate(q["model"], q["system"], backend_name=q["backend"], isl=q["isl"], osl=q["osl"], batch_size=batch, tp_size=q["tp"],
                                 pp_size=q["pp"], attention_dp_size=q["dp"], **experts)
        except Exception as e:  # of any kind: it is its answer
            return answers or {"why": f"{type(e).__name__}: {e}"[:160]}
        gpus = q["tp"] * q["pp"] * q["dp"]
        answers.append({"batch": batch, "ttft_ms": e.ttft, "tpot_ms": e.tpot,
                        "tokens_per_s_per_gpu": batch * q["dp"] * q["osl"] * 1e3 / (e.ttft + (q["osl"] - 1) * e.tpot) / gpus})
    return answers


def main():
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    with contextlib.redirect_stdout(sys.stderr):
        for line in sys.stdin:
            q = json.loads(line)
            print(json.dumps(best(q) if q["ask"] == "best" else estimate(q)), file=out, flush=True)


if __name__ == "__main__":
    main()
