#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`make model-truth`: holds every family of models that maquette reads against the transformers library, at random sizes.

usage: run.py [--python PYTHON] [--build FOLDER] [--count N] [--seed S] [--family NAME ...] [--write]

PYTHON (or MAQ_TRANSFORMERS_PYTHON) has torch and transformers; SKIPPED with the reason where there is none. Each model is read twice: from the
keys that were set alone, and from the whole config.json that the library writes of it. A refusal is counted; a wrong count fails.
--write puts the keys and counts into tests/data/model_truth.txt, which tests/test_model_truth.c reads without either.
"""
import argparse
import collections
import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
TABLE = HERE.parent.parent / "tests/data/model_truth.txt"
HEAD = """# Parameters of small models of random sizes, as the transformers library {version} counts them; written by tools/model-truth/run.py --write.
# family, the keys that were set (all others are the defaults of its class), parameters, load-balancing numbers that it keeps as buffers,
# and a dash where maquette refuses.
"""


def ask(python, a, out):
    command = [python, HERE / "ask.py", "--count", str(a.count), "--seed", str(a.seed)]
    with open(out, "w", encoding="utf-8") as stream:
        done = subprocess.run([str(c) for c in command + (["--family"] + a.family if a.family else [])],
                              stdout=stream, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        return f"{python} cannot ask: {(done.stderr.strip().splitlines() or ['?'])[-1]}"
    return None


def show(maquette, folder, number, row, form):
    """(count or None, what was said)"""
    keys = dict(row["keys"], model_type=row["family"]) if form == "keys" else row["whole"]
    path = pathlib.Path(folder) / f"{number}-{form}.{'yaml' if form == 'keys' else 'json'}"
    path.write_text(json.dumps(keys), encoding="utf-8")
    got = subprocess.run([maquette, "show", path, "--json"], capture_output=True, text=True, check=False)
    said = (got.stderr.strip().splitlines() or [""])[0].replace(str(path), "")
    if got.returncode:
        return None, said
    model = json.loads(got.stdout)
    return model.get("model", model)["parameters"], said


def main():
    args = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument("--python", default=os.environ.get("MAQ_TRANSFORMERS_PYTHON", sys.executable))
    args.add_argument("--build", type=pathlib.Path, default=HERE.parent.parent / "build")
    args.add_argument("--count", type=int, default=8)
    args.add_argument("--seed", type=int, default=1)
    args.add_argument("--family", nargs="*")
    args.add_argument("--asked", help="an answer of ask.py, instead of asking")
    args.add_argument("--write", action="store_true")
    a = args.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        answer = a.asked or pathlib.Path(folder) / "answer"
        why = None if a.asked else ask(a.python, a, answer)
        if why:
            print(f"SKIPPED: {why}")
            return 0
        rows = [json.loads(line) for line in open(answer, encoding="utf-8")]
        cases = [(n, row, form) for n, row in enumerate(rows) if "keys" in row for form in ("keys", "whole")]
        maquette = str(a.build / "maquette")
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            counts = list(pool.map(lambda c: show(maquette, folder, *c), cases))
    met, refused, wrong, lines = collections.Counter(), collections.defaultdict(list), [], []
    for (_, row, form), (count, said) in zip(cases, counts):
        name, truth = row["family"], row["parameters"] + row["buffers"]
        if count is None:
            refused[name].append(said)
        elif count == truth:
            met[name] += 1
        else:
            wrong.append(f"{name} from {form}: {count}, not {truth}: {json.dumps(row['keys'])}")
        if form == "keys":
            keys = json.dumps(row["keys"], separators=(",", ":"))
            lines.append("\t".join([name, keys, str(row["parameters"]), str(row["buffers"])] + ["-"] * (count is None)) + "\n")
    print("\n".join(wrong))
    never = sorted(set(refused) - set(met))
    print(f"{len(met)} families met in {sum(met.values())} files, {sum(map(len, refused.values()))} refused, {len(wrong)} wrong")
    for name in never:
        print(f"refused: {name}: {refused[name][0]}")
    if a.write:
        known = [line for line in lines if line.split("\t")[0] not in never]
        TABLE.write_text(HEAD.format(version=rows[0]["transformers"]) + "".join(known), encoding="utf-8")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
