#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""vLLM itself on the zero-GPU device: what it decides, holds and launches, recorded while it generates.

usage: maquette run --world 1 --trace T.mqr -- PYTHON emulated.py --model FOLDER --out OUT.jsonl [--requests N] [--seed N] [--tp N]
           [--max-num-batched-tokens N] [--max-num-seqs N] [--max-model-len N] [--batch N --isl N --osl N] [--graphs | --compiled]

FOLDER has a config.json and nothing else: weights are dummies, and nothing is downloaded. Requests are drawn from the seed, prompts of 1 to
2,000 tokens; --batch N are N equal ones that fit into one iteration. Eager; with --graphs iterations that only decode are CUDA graphs, uncompiled; with --compiled all are what torch.compile wrote, and none is a graph. With --tp N every rank runs this (`maquette run --world N --all`). OUT.jsonl is a recording for `maquette validate schedule`, of the
engine's own loop; OUT.json has blocks, memory in bytes and, for each iteration, the host's processor time. In the trace every iteration is a range
of NVTX by its number. compare.py reads all three. Seen with vllm 0.33.0.
"""
import argparse
import os
import pathlib
import random

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("VLLM_NO_USAGE_STATS", "1")
os.environ.setdefault("VLLM_ENABLE_V1_MULTIPROCESSING", "0")  # the engine in this process: one process is one rank
os.environ.setdefault("VLLM_USE_FLASHINFER_SAMPLER", "0")     # which compiles itself for minutes, once

from recording import Recording
from vllm import LLM, SamplingParams


def drawn_requests(seed, count, most):
    rnd = random.Random(seed)
    rows = []
    for i in range(count):
        prompt = min(rnd.choice([rnd.randrange(1, 60), rnd.randrange(60, 500), rnd.randrange(500, 2000)]), most - 60)
        rows.append({"id": str(i), "arrive_step": 0, "prompt": prompt, "output": rnd.randrange(2, 50), "priority": 0, "prefix": []})
    return rows


def equal_request(i, isl, osl):
    return {"id": str(i), "arrive_step": 0, "prompt": isl, "output": osl, "priority": 0, "prefix": []}


def tokens_of(row):
    own = random.Random("own" + row["id"])
    return [5 + own.randrange(20000) for _ in range(row["prompt"])]


def main():
    args = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument("--model", required=True)
    args.add_argument("--out", required=True, type=pathlib.Path)
    args.add_argument("--requests", type=int, default=24)
    args.add_argument("--seed", type=int, default=1)
    args.add_argument("--tp", type=int, default=1)
    args.add_argument("--max-num-batched-tokens", type=int, default=2048)
    args.add_argument("--max-num-seqs", type=int, default=16)
    args.add_argument("--max-model-len", type=int, default=4096)
    args.add_argument("--batch", type=int, default=0)
    args.add_argument("--isl", type=int, default=512)
    args.add_argument("--osl", type=int, default=8)
    args.add_argument("--graphs", action="store_true")
    args.add_argument("--compiled", action="store_true")
    a = args.parse_args()
    recording = Recording()
    recording.look_on()
    ranks = dict(tensor_parallel_size=a.tp, distributed_executor_backend="external_launcher", disable_custom_all_reduce=True) if a.tp > 1 else {}
    how = dict(compilation_config=dict(mode=0, cudagraph_mode="FULL_DECODE_ONLY")) if a.graphs else dict(enforce_eager=True)
    if a.compiled:
        how = dict(compilation_config=dict(cudagraph_mode="NONE"))
    llm = LLM(model=a.model, load_format="dummy", **how, skip_tokenizer_init=True, max_model_len=a.max_model_len,
              max_num_batched_tokens=a.max_num_batched_tokens, max_num_seqs=a.max_num_seqs, async_scheduling=False, **ranks)
    rows = [equal_request(i, a.isl, a.osl) for i in range(a.batch)] or drawn_requests(a.seed, a.requests, a.max_model_len)
    recording.on = True
    llm.generate([{"prompt_token_ids": tokens_of(r)} for r in rows],
                 [SamplingParams(max_tokens=r["output"], ignore_eos=True, temperature=0, detokenize=False) for r in rows], use_tqdm=False)
    if int(os.environ.get("RANK", "0")) == 0:
        recording.write(a.out, llm.llm_engine.vllm_config, llm.llm_engine.engine_core.engine_core.scheduler, model=a.model, tp=a.tp,
                        batch=a.batch, isl=a.isl, osl=a.osl)


if __name__ == "__main__":
    main()
