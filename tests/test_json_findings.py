#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Warnings and notes are in the JSON of every command, and a command that fails prints a document of its own."""
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from cli_case import ROOT, Scratch, Tap  # noqa: E402

JOB = "--model gpt2 --seq 2048 --gbs 64 --cluster h100:64"  # a node that nobody sells, positions that are not there
TABLE = "source,model,gpu,num_gpus,tp,pp,mbs,gbs,seq_len,precision,iter_time_s,remarks\nx,gpt2,h100-sxm,8,1,1,1,64,1024,bf16,1,mine\n"
# command, codes that its document has, its exit status
CASES = [
    (f"train {JOB} --json", ["MAQ1218", "MAQ1303"], 0),
    (f"plan {JOB} --json", ["MAQ1218", "MAQ1303"], 0),
    (f"risk {JOB} --json", ["MAQ1218", "MAQ1303"], 0),
    (f"train --model {ROOT}/tests/data/hf/gemma-3-4b --cluster h100-sxm:8 --mbs 1 --gbs 8 --json", ["MAQ1115"], 0),
    ("validate train table.csv --json", ["MAQ1558"], 0),
    ("train --model gpt2 --cluster h100-sxm:8 --json", [], 0),
    ("train --model gpt2 --cluster h100-sxm:8 --tp 9 --json", ["MAQ1300"], 3),
    ("train --model gpt2 --cluster h100-sxm:8 --tpp 9 --json", ["MAQ1801"], 2),
    ("train missing.yaml --json", ["MAQ1030"], 4),
    ("show nothing-like-it --json", ["MAQ1890"], 2),
    ("plan --model gpt2 --cluster h100-sxm:8 --json", ["MAQ1303"], 3),
    ("train --model gpt2 --cluster h100-sxm:8 --tp 9 --json --output out.json", ["MAQ1300"], 3),
]


def check(command, codes, status):
    with Scratch() as scratch:
        (scratch.path / "table.csv").write_text(TABLE, encoding="utf-8")
        out, err, code = scratch.run("maquette " + command)
        document = json.loads(out)
        said = document.get("diagnostics", [])
        return (code == status and [x["code"] for x in said] == codes and all(x["message"] in err for x in said)
                and (document["schema"] == "maquette.error/1") == (status > 1)
                and document.get("exit_status", status) == status), out + err


def main():
    tap = Tap()
    for command, codes, status in CASES:
        good, said = check(command, codes, status)
        tap.result(good, command.replace(str(ROOT) + "/", ""), "" if good else said)
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
