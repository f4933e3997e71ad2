#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""vLLM itself on the zero-GPU device: what it decides, holds and launches, recorded while it generates.

usage: maquette run --world 1 --trace T.mqr -- PYTHON emulated.py --model FOLDER --out OUT.jsonl [--requests N] [--seed N] [--tp N]
           [--max-num-batched-tokens N] [--max-num-seqs N] [--max-model-len N] [--batch N --isl N --osl N]

FOLDER has a config.json and nothing else: weights are dummies, and nothing is downloaded. Requests are drawn from the seed, prompts of 1 to
2,000 tokens; --batch N are N equal ones that fit into one iteration. With --tp N every rank runs this (`maquette run --world N --all`). OUT.jsonl is a recording for `maquette validate schedule`, of the
engine's own loop; OUT.json has blocks, memory in bytes and, for each iteration, the host's processor time. In the trace every iteration is a range
of NVTX by its number. compare.py reads all three. Seen with vllm 0.33.0.
"""
import argparse
import json
import os
import pathlib
import random
import time

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("VLLM_NO_USAGE_STATS", "1")
os.environ.setdefault("VLLM_ENABLE_V1_MULTIPROCESSING", "0")  # the engine in this process: one process is one rank
os.environ.setdefault("VLLM_USE_FLASHINFER_SAMPLER", "0")     # which compiles itself for minutes, once

import torch
import vllm
from vllm import LLM, SamplingParams
from vllm.v1.core.sched.scheduler import Scheduler
from vllm.v1.worker.gpu_worker import Worker


class Recording:
    """Looks on while the engine's scheduler decides and is told what came of it."""

    def __init__(self):
        self.steps, self.seconds, self.line, self.began = [], [], None, 0.0
        self.shown, self.requests = set(), {}
        self.on = False

    def end_step(self, scheduler):
        line = self.line
        if line is None:
            return
        torch.cuda.nvtx.range_pop()
        ended = [i for i, r in self.requests.items() if r.is_finished()]
        for name in ended:
            del self.requests[name]
        line.update(free=scheduler.kv_cache_manager.block_pool.get_num_free_blocks(), running=len(scheduler.running),
                    waiting=len(scheduler.waiting), preempted=[], finished=ended)
        self.steps.append(line)
        self.seconds.append(time.process_time() - self.began)
        self.line = None

    def schedule(self, scheduler, decide):
        self.end_step(scheduler)
        began = time.process_time()
        decided = decide(scheduler)
        if not self.on or not decided.num_scheduled_tokens:
            return decided
        self.began = began
        self.requests.update({i: scheduler.requests[i] for i in decided.num_scheduled_tokens})
        hits = {n.req_id: n.num_computed_tokens for n in decided.scheduled_new_reqs if n.req_id not in self.shown}
        self.shown.update(hits)
        self.line = {"step": len(self.steps), "scheduled": dict(decided.num_scheduled_tokens), "hits": hits}
        torch.cuda.nvtx.range_push(f"iteration {len(self.steps)}")
        return decided

    def update(self, scheduler, decided, answer, take):
        told = take(scheduler, decided, answer)
        if self.line is not None:
            self.line["sampled"] = {i: len(t) for i, t in zip(answer.req_ids, answer.sampled_token_ids) if len(t)}
        return told


def look_on(recording, memory):
    decide, take, measure = Scheduler.schedule, Scheduler.update_from_output, Worker.determine_available_memory
    Scheduler.schedule = lambda self, *a, **k: recording.schedule(self, lambda s: decide(s, *a, **k))
    Scheduler.update_from_output = lambda self, d, o: recording.update(self, d, o, take)

    def measured(worker):
        available = measure(worker)
        memory.update(weights=int(worker.model_runner.model_memory_usage), consumed=int(worker.total_consumed),
                      activations=int(worker.peak_activation_memory), available=int(available))
        return available

    Worker.determine_available_memory = measured


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
    a = args.parse_args()
    recording, memory = Recording(), {}
    look_on(recording, memory)
    ranks = dict(tensor_parallel_size=a.tp, distributed_executor_backend="external_launcher", disable_custom_all_reduce=True) if a.tp > 1 else {}
    llm = LLM(model=a.model, load_format="dummy", enforce_eager=True, skip_tokenizer_init=True, max_model_len=a.max_model_len,
              max_num_batched_tokens=a.max_num_batched_tokens, max_num_seqs=a.max_num_seqs, async_scheduling=False, **ranks)
    config = llm.llm_engine.vllm_config
    rows = [equal_request(i, a.isl, a.osl) for i in range(a.batch)] or drawn_requests(a.seed, a.requests, a.max_model_len)
    recording.on = True
    llm.generate([{"prompt_token_ids": tokens_of(r)} for r in rows],
                 [SamplingParams(max_tokens=r["output"], ignore_eos=True, temperature=0, detokenize=False) for r in rows], use_tqdm=False)
    recording.end_step(llm.llm_engine.engine_core.engine_core.scheduler)
    if int(os.environ.get("RANK", "0")) != 0:
        return
    knobs = dict(max_num_seqs=a.max_num_seqs, max_num_batched_tokens=a.max_num_batched_tokens, max_model_len=a.max_model_len,
                 blocks=config.cache_config.num_gpu_blocks, block_size=config.cache_config.block_size,
                 caching=int(config.cache_config.enable_prefix_caching))
    name_of = {name: rows[i]["id"] for i, name in enumerate(sorted(recording.shown, key=lambda n: int(n.split("-")[0])))}

    def named(step):
        again = {k: {name_of[i]: n for i, n in step[k].items()} for k in ("scheduled", "hits", "sampled")}
        return {**step, **again, "finished": [name_of[i] for i in step["finished"]]}

    lines = [{"engine": "vllm", "version": vllm.__version__, "knobs": knobs}, *({"request": r} for r in rows), *map(named, recording.steps)]
    a.out.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    a.out.with_suffix(".json").write_text(json.dumps(dict(
        version=vllm.__version__, torch=torch.__version__, model=a.model, tp=a.tp, knobs=knobs, memory=memory,
        batch=a.batch, isl=a.isl, osl=a.osl, device=torch.cuda.get_device_name(), host_s=recording.seconds), indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
