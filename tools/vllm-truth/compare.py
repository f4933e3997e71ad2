#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What vLLM did on the zero-GPU device (emulated.py) beside what `maquette serve` says of the same.

usage: compare.py --maquette MAQUETTE --model CONFIG.json --cluster CLUSTER RECORDING.jsonl [TRACE.mqr]

Blocks of the KV cache, iterations one by one (`maquette validate schedule`), and with the trace of a batch of equal requests (emulated.py --batch)
the time of its prefill and of a token: the sum of what the engine launched in an iteration, each as the cost chain has it, beside the sum of what
serve takes an iteration to be. The exit status is 1 where blocks differ by more than 1 %, any iteration differs, or a time by more than 5 %.
"""
import argparse
import json
import pathlib
import re
import statistics
import struct
import subprocess
import sys

DEF_OP, DEF_COMM, DEF_TEXT, LAUNCH, COPY, SET, COLL, SEND, RECV, READ, BOOT, MARK = 1, 2, 3, 5, 6, 7, 8, 9, 10, 19, 20, 21  # shim/record.h
PUSH, POP = 1, 2
WAITS = ("launch_s", "host_s")  # parts of serve's iteration in which the device waits
GEMM, GROUPED, ATTENTION, SEQUENCES = 1, 2, 3, 9
KINDS = {GEMM: "gemm", GROUPED: "experts", ATTENTION: "attention", SEQUENCES: "attention"}


def records(data):
    """(kind, id, arg, ns, payload) of each record: a head of 64 bytes, then records of 32, behind some of them a payload."""
    at = 64
    while at + 32 <= len(data):
        kind, _, _, ident, _, arg, size, ns = struct.unpack_from("<BBHIIIQQ", data, at)
        at += 32
        payload = b""
        if kind in (DEF_OP, DEF_COMM, DEF_TEXT, READ, BOOT):
            payload = data[at:at + size]
            at += (size + 31) // 32 * 32
        yield kind, ident, arg, ns, payload


def kind_of(payload):
    """What serve calls an operator, by its kind; keys and values are written to the cache in its attention."""
    kind, = struct.unpack_from("<H", payload)
    return "attention" if b"reshape_and_cache" in payload[96:] else KINDS.get(kind, "other")


def iterations(path):
    """ns of device time of each iteration, by kind."""
    kinds, texts, out, inside = {}, {}, {}, None
    for kind, ident, arg, ns, payload in records(pathlib.Path(path).read_bytes()):
        if kind == DEF_OP:
            kinds[ident] = kind_of(payload)
        elif kind == DEF_TEXT:
            texts[ident] = payload.decode(errors="replace")
        elif kind == MARK and arg == PUSH:
            found = re.match(r"iteration (\d+)$", texts.get(ident, ""))
            inside = int(found.group(1)) if found else inside
        elif kind == MARK and arg == POP:
            inside = None
        elif inside is not None and kind in (LAUNCH, COPY, SET, COLL, SEND, RECV):
            what = out.setdefault(inside, {})
            name = kinds.get(ident, "other") if kind == LAUNCH else "communication" if kind in (COLL, SEND, RECV) else "other"
            what[name] = what.get(name, 0) + ns
    return [out[i] for i in sorted(out)]


def serve(a, said, *more):
    knobs = said["knobs"]
    command = [a.maquette, "serve", "--model", a.model, "--cluster", a.cluster, "--tp", said["tp"], *([] if said["memory"].get("graphs") else ["--enforce-eager"]), "--engine-version",
               said["version"], "--max-model-len", knobs["max_model_len"], "--max-num-batched-tokens", knobs["max_num_batched_tokens"],
               "--max-num-seqs", knobs["max_num_seqs"], "--json", *more]
    return json.loads(subprocess.run([str(c) for c in command], capture_output=True, text=True, check=True).stdout)


def line(what, engine, ours, bar, unit=""):
    off = 100 * (ours / engine - 1)
    print(f"{what:<28}{engine:>14,.3f}{ours:>14,.3f}{unit:>4}  {off:+6.2f} %")
    return abs(off) <= bar


def times(a, said):
    steps = iterations(a.trace)
    answer = serve(a, said, "--batch", said["batch"], "--isl", said["isl"], "--osl", said["osl"])["batch"]
    tokens = len(steps) - 1
    ok = True
    for name, mine, ours in (("prefill", steps[:1], answer["prefill"]), ("a token", steps[1:], {k: v / tokens for k, v in answer["decode"].items()})):
        total = statistics.mean(sum(s.values()) for s in mine) / 1e6
        ok &= line(name, total, 1e3 * sum(seconds for part, seconds in ours.items() if part not in WAITS), 5, "ms")
        for kind, keys in (("gemm", ["gemm_s"]), ("attention", ["attention_s"]), ("communication", ["communication_s"]), ("experts", ["experts_s"]), ("other", ["pointwise_s", "sampling_s"])):
            engine = statistics.mean(s.get(kind, 0) for s in mine) / 1e6
            if engine > 0:
                line(f"  {kind}", engine, 1e3 * sum(ours[k] for k in keys), 5, "ms")
    return ok


def main():
    args = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument("--maquette", required=True)
    args.add_argument("--model", required=True)
    args.add_argument("--cluster", default="h100-sxm:1")
    args.add_argument("recording", type=pathlib.Path)
    args.add_argument("trace", nargs="?")
    a = args.parse_args()
    said = json.loads(a.recording.with_suffix(".json").read_text(encoding="utf-8"))
    ours = serve(a, said, "--batch", 1)["memory"]
    print(f"vllm {said['version']}, tp {said['tp']}            vllm         serve")
    ok = line("blocks", said["knobs"]["blocks"], ours["blocks"], 1)
    line("weights", said["memory"]["weights"] / 1e9, ours["weights_bytes"] / 1e9, 1, "GB")
    line("beside weights", (said["memory"]["consumed"] - said["memory"]["weights"] + said["memory"]["activations"]) / 1e9,
         ours["activations_bytes"] / 1e9, 1, "GB")
    if said["memory"].get("graphs"):
        line("graphs", said["memory"]["graphs"] / 1e9, ours["graphs_bytes"] / 1e9, 1, "GB")
    ok &= subprocess.run([a.maquette, "validate", "schedule", a.recording], check=False).returncode == 0
    if a.trace and said.get("batch"):
        ok &= times(a, said)
    host = said["host_s"][len(said["host_s"]) // 2:]
    print(f"processor time of the host, an iteration: {1e3 * statistics.median(host):.1f} ms in the middle, {len(host)} iterations, of this machine "
          "and with the zero-GPU device in it")
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())
