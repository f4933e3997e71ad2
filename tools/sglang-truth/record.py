#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Records what SGLang's own scheduler decides on random requests under random knobs, for `maquette validate schedule`.

usage: record.py --out DIR [--first N] [--count N] [--drafts] [--adapters] [--host] [--preemption]

Needs sglang (PyPI, without its dependencies; seen with 0.5.23), torch, numpy and transformers. No model is loaded and no GPU is used; engine.py says
what is real. Recording N depends on N alone. docs/validate-serve.md has the format. What the engine itself cannot survive (it runs out of
memory in a prompt, or gives a request up) is drawn again.
"""
import argparse
import gzip
import importlib.metadata
import json
import pathlib
import random

from engine import EOS, Engine, Off, PrefillAdder, Req, SamplingParams, Settings, array, schedule_policy, torch

MOST_STEPS = 30000
UNIT = 16


class GivesUp(Exception):
    pass


def random_knobs(rnd, tight, drafts):
    page = rnd.choice([1, 1, 1, 16, 64, 8])
    tokens = rnd.choice([600, 1000, 1500, 3000, 6000, 20000]) // page * page
    knobs = dict(page_size=page, tokens=tokens, context=min(4000, tokens - 2 * page - 2), caching=int(rnd.random() < 0.8),
                 overlap=int(rnd.random() < 0.7), policy=rnd.choice(["fcfs", "fcfs", "fcfs", "lpm", "lpm", "dfs-weight", "lof"]),
                 chunked_prefill_size=rnd.choice([64, 128, 256, 512, 2048, 0]) // page * page,
                 max_prefill_tokens=rnd.choice([256, 1024, 16384]), max_running_requests=rnd.choice([2, 8, 16, 64, 64, 200]),
                 conservativeness=rnd.choice([1.0, 0.3, 0.1, 1.4]), prefill_max_requests=rnd.choice([0, 0, 0, 2]),
                 eviction=rnd.choice(["lru", "lru", "lfu", "fifo", "mru", "filo", "slru", "priority"]), mixed=0, priority=0,
                 low_priority_first=int(rnd.random() < 0.5))
    if knobs["chunked_prefill_size"] >= 256 and rnd.random() < 0.25:
        knobs["mixed"] = 1
        knobs["max_running_requests"] = min(knobs["max_running_requests"], 64)
        knobs["max_prefill_tokens"] = max(knobs["max_prefill_tokens"], 1024)
    if tight:  # those that run are expected to sample next to nothing, and the cache runs out
        knobs.update(tokens=rnd.choice([600, 1000, 2000]) // page * page, conservativeness=0.1, prefill_max_requests=0,
                     max_running_requests=rnd.choice([16, 64]))
        knobs["context"] = knobs["tokens"] - 2 * page - 2
    if knobs["policy"] in ("fcfs", "lof") and rnd.random() < 0.3:
        knobs["priority"] = 1
    if drafts:
        knobs["spec_steps"], knobs["spec_topk"] = rnd.choice([1, 2, 3, 5]), rnd.choice([1, 1, 1, 4])
        knobs["spec_draft_tokens"] = knobs["spec_steps"] + 1 if knobs["spec_topk"] == 1 else rnd.choice([8, 12])
        knobs["spec_pairs"] = int(rnd.random() < 0.5)  # EAGLE's tree
        knobs["tokens"] = (knobs["tokens"] + 2000) // page * page
        knobs["max_running_requests"] = min(knobs["max_running_requests"], 64)
    return knobs


def random_requests(rnd, knobs, tight):
    trees = [[rnd.randrange(1, 10**6) for _ in range(rnd.randrange(1, 30))] for _ in range(rnd.randrange(1, 5))]
    most = min(knobs["context"], knobs["tokens"]) - knobs["page_size"] - 2
    rows, step, shared = [], 0, rnd.random() * 0.9
    pace = rnd.choice([[0, 0, 0, 1], [0, 1, 3, 30], [0, 5, 20, 100]])
    stops = 1 if tight else rnd.choice([0, 0.5, 1, 1])
    for i in range(rnd.choice([rnd.randrange(5, 50), rnd.randrange(5, 50), rnd.randrange(50, 140)])):
        prefix = rnd.choice(trees)[:rnd.randrange(0, 30)] if rnd.random() < shared else []
        own = rnd.choice([rnd.randrange(1, 40), rnd.randrange(40, 400), rnd.randrange(400, 1500)])
        if tight:
            own = rnd.randrange(1, 60)
        prompt = min(len(prefix) * UNIT + own, max(2, most * (1 if tight else 2) // (5 if tight else 3)))
        output = min(rnd.choice([1, rnd.randrange(2, 40), rnd.randrange(40, 160), rnd.randrange(40, 160)]), max(1, most - prompt - 1))
        if tight:
            output = min(rnd.randrange(30, 200), max(1, (most - prompt) // 2))
        limit = output
        if rnd.random() < stops:
            limit = min(output + rnd.choice([1, 1, 20] if tight else [1, 1, 50, 2000]), max(output, most - prompt - 1))
        rows.append(dict(id=str(i), arrive_step=step, prompt=prompt, output=output, limit=limit, priority=rnd.randrange(3),
                         prefix=prefix[:prompt // UNIT]))
        step += rnd.choice(pace) if rnd.random() < 0.9 else rnd.randrange(60)
    return rows


def draw_adapters(rnd, knobs, rows):
    """From fewer than there is room for to many more; some often and others seldom. None takes room, too."""
    knobs["max_loras"] = rnd.choice([2, 2, 3, 4, 8])
    there = rnd.choice([1, 2, 4, 12])
    none, alpha = rnd.choice([0, 0.2, 0.6]), rnd.choice([0, 1, 2])
    weights = [1 / (k + 1) ** alpha for k in range(there)]
    for row in rows:
        row["adapter"] = 0 if rnd.random() < none else rnd.choices(range(1, there + 1), weights)[0]


def draw_host(rnd, knobs, rows):
    """From much less than the GPU has to all that ever comes; beginnings that come again when the GPU has lost them."""
    trees = [[rnd.randrange(1, 10**6) for _ in range(250)] for _ in range(rnd.choice([2, 4, 10]))]
    again = rnd.choice([0.5, 0.9])
    del rows[60:]
    for row in rows:
        if rnd.random() < again:
            row["prefix"] = rnd.choice(trees)[:row["prompt"] // UNIT]
    page = knobs["page_size"]
    knobs.update(caching=1, write_policy=rnd.choice(["write_through", "write_through_selective", "write_back"]),
                 host_tokens=int(knobs["tokens"] * rnd.choice([0.1, 0.5, 1, 2, 2, 20])) // page * page + page)


def draw_preemption(rnd, knobs, rows):
    """Few run, and priorities are far apart and near to each other."""
    knobs.update(priority=1, preemption=1, preemption_threshold=rnd.choice([0, 0, 1, 10]), policy=rnd.choice(["fcfs", "fcfs", "lof"]),
                 max_running_requests=rnd.choice([2, 4, 4, 8, 16]))
    most = rnd.choice([1, 3, 30])
    for row in rows:
        row["priority"] = rnd.randint(0, most)


def tokens_of(row):
    named = [(1 << 40) + name * 64 + i for name in row["prefix"] for i in range(UNIT)]
    own = (2 << 40) + int(row["id"]) * (1 << 20)
    return array("q", named + [own + i for i in range(row["prompt"] - len(named))])


class Replay:
    def __init__(self, knobs, rows, rnd=None):
        slowest = rnd.choice([1, 2, 10]) if rnd else 0
        delays = {"write": lambda: rnd.randint(1, slowest), "load": lambda: rnd.randint(1, 2)}
        self.engine, self.rows, self.knobs, self.drafts = Engine(knobs, lambda way: delays[way]()), rows, knobs, knobs.get("spec_draft_tokens", 0)
        self.row_of = {row["id"]: row for row in rows}
        self.shown, self.ended, self.live = set(), [], {}

    def add(self, row):
        params = SamplingParams(max_new_tokens=row["limit"], ignore_eos=row["limit"] == row["output"], temperature=0)
        params.normalize(None)
        req = Req(row["id"], "", tokens_of(row), params, eos_token_ids={EOS}, vocab_size=1 << 60,
                  lora_id=f"adapter{row['adapter']}" if row.get("adapter") else None)
        req.priority = row["priority"]
        self.live[row["id"]] = req
        self.engine._add_request_to_queue(req)

    def token(self, row, place):
        last = place + 1 == row["output"]
        return EOS if last and row["limit"] > row["output"] else (3 << 40) + int(row["id"]) * (1 << 20) + place

    def answer(self, batch):
        """The model's: a token for each request, the last one where its output is complete."""
        return torch.tensor([self.token(self.row_of[req.rid], len(req.output_ids)) for req in batch.reqs], dtype=torch.int64)

    def verdicts(self, batch):
        """How many tokens come out for each request where drafts are verified, by its place in its output."""
        most = self.knobs["spec_steps"]
        return [1 + random.Random(f"{req.rid}.{len(req.output_ids)}").randrange(most + 1) for req in batch.reqs]

    def say(self, batch, decode, came):
        for req, n in zip(batch.reqs, came):
            chunk = not decode and req.inflight_middle_chunks > 0
            if not chunk and not req.finished() and not req.is_retracted:
                self.sampled[req.rid] = n

    def process(self, batch):
        result = Settings(copy_done=None, logits_output=None, next_token_ids=self.answer(batch), can_run_cuda_graph=False,
                          routed_experts_output=None, indexer_topk_output=None, auxiliary_host_output=None,
                          extend_input_len_per_req=None, extend_logprob_start_len_per_req=None, num_correct_drafts=0,
                          get_num_generated_tokens=lambda n: n)
        decode = batch.forward_mode.is_decode()
        came = self.verdicts(batch) if self.drafts and decode else [1] * len(batch.reqs)
        self.say(batch, decode, came)
        if self.drafts and decode:
            rows = [[self.token(self.row_of[req.rid], len(req.output_ids) + i) if i < n else 0 for i in range(self.drafts)]
                    for req, n in zip(batch.reqs, came)]
            result.__dict__.update(next_token_ids=torch.tensor(rows, dtype=torch.int64).reshape(-1), num_non_draft_tokens_per_req=1,
                                   accept_lens=torch.tensor(came), speculative_num_draft_tokens=self.drafts,
                                   speculative_output_stride=None, block_accept_lens=None, cap_lens=None, grammar_retained_tokens=None)
        if decode:
            self.engine.results.process_batch_result_decode(batch, result)
        else:
            self.engine.results.process_batch_result_prefill(batch, result)
        self.engine.tree_cache.flush_pending_backups()
        for req in batch.reqs:
            if req.finished() and req.rid in self.live:
                del self.live[req.rid]
                self.ended.append(req.rid)

    def copies_over(self):
        """How many of each way are over as this step begins."""
        over = []
        for queue in (self.engine.tree_cache.cache_controller.ack_write_queue, self.engine.tree_cache.cache_controller.ack_load_queue):
            if queue:
                queue[0].left -= 1
            over.append(int(bool(queue) and queue[0].query()))
        return over

    def step(self, number):
        e, self.ended, self.sampled = self.engine, [], {}
        before = {rid: req.retraction_count for rid, req in self.live.items()}
        over = self.copies_over() if e.enable_hierarchical_cache else None
        plan = e.get_next_batch_to_run(running_batch=e.running_batch, last_batch=e.last_batch)
        e.running_batch, batch = plan.running_batch, plan.batch_to_run
        if e.refused:
            raise GivesUp
        scheduled, hits = {}, {}
        if batch:
            decode = batch.forward_mode.is_decode()
            for i, req in enumerate(batch.reqs):
                scheduled[req.rid] = (self.drafts or 1) if decode else batch.extend_lens[i]
                if req.rid not in self.shown:
                    self.shown.add(req.rid)
                    hits[req.rid] = batch.prefix_lens[i]
        retracted = [rid for rid, req in self.live.items() if req.retraction_count > before[rid]]
        if e.enable_overlap:
            if batch:
                e.result_queue.append((batch.copy(), None))
            if e.last_batch:
                self.process(e.result_queue.popleft()[0])
        elif batch:
            self.process(batch)
        if not batch and not (e.enable_overlap and e.last_batch) and not self.live:
            e.new_token_ratio_tracker.reset()
        e.last_batch = batch
        tree = e.tree_cache
        line = {"step": number, "scheduled": scheduled, "free": e.token_to_kv_pool_allocator.available_size() + tree.evictable_size(),
                "cached": tree.evictable_size(), "running": sum(not req.finished() for req in e.running_batch.reqs), "waiting": len(e.waiting_queue),
                "preempted": retracted, "finished": self.ended, "hits": hits, "ratio": e.new_token_ratio_tracker.current}
        if over:
            line["copied"], line["host_free"] = over, tree.cache_controller.mem_pool_host.left
        if self.drafts:
            line["sampled"] = self.sampled
        return line

    def run(self):
        steps, at = [], 0
        while at < len(self.rows) or self.live:
            while at < len(self.rows) and self.rows[at]["arrive_step"] <= len(steps):
                self.add(self.rows[at])
                at += 1
            try:
                steps.append(self.step(len(steps)))
            except RuntimeError as error:
                if "out of memory" not in str(error).lower():
                    raise
                raise GivesUp from None
            if len(steps) > MOST_STEPS:
                raise GivesUp
        return steps


def record(number, drafts, adapters, host, preemption):
    for attempt in range(50):
        rnd = random.Random(f"{number}.{attempt}")
        tight = rnd.random() < 0.4
        knobs = random_knobs(rnd, tight, drafts)
        rows = random_requests(rnd, knobs, tight)
        if adapters:
            draw_adapters(rnd, knobs, rows)
        if host:
            draw_host(rnd, knobs, rows)
        if preemption:
            draw_preemption(rnd, knobs, rows)
        try:
            return knobs, rows, Replay(knobs, rows, rnd if host else None).run()
        except GivesUp:
            continue
    raise SystemExit(f"recording {number}: no draw comes to its end")


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--out", type=pathlib.Path, required=True)
    p.add_argument("--first", type=int, default=0)
    p.add_argument("--count", type=int, default=1)
    p.add_argument("--drafts", action="store_true", help="with speculative decoding")
    p.add_argument("--adapters", action="store_true", help="with LoRA adapters")
    p.add_argument("--host", action="store_true", help="with a tier in host memory (HiCache)")
    p.add_argument("--preemption", action="store_true", help="by priority")
    a = p.parse_args()
    a.out.mkdir(parents=True, exist_ok=True)
    version = importlib.metadata.version("sglang")
    for number in range(a.first, a.first + a.count):
        knobs, rows, steps = record(number, a.drafts, a.adapters, a.host, a.preemption)
        lines = [{"engine": "sglang", "version": version, "knobs": dict(knobs, unit=UNIT)}]
        lines += [{"request": row} for row in rows] + steps
        name = f"{number:05d}-{knobs['policy']}{'-mixed' if knobs['mixed'] else ''}{'-overlap' if knobs['overlap'] else ''}{'-drafts' if a.drafts else ''}{'-adapters' if a.adapters else ''}{'-host' if a.host else ''}{'-preemption' if a.preemption else ''}.jsonl.gz"
        with open(a.out / name, "wb") as f, gzip.GzipFile(fileobj=f, mode="wb", mtime=0) as z:
            z.write("".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines).encode())


if __name__ == "__main__":
    main()
