#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Records what vLLM's own scheduler decides on random requests under random knobs, for `maquette validate schedule`.

usage: record.py --out DIR [--first N] [--count N] [--kinds plain,hybrid,spec,async,abort,lora]

Needs vllm (PyPI; seen with 0.33.0). No model is loaded and no GPU is used: the scheduler is given made-up tokens and made-up answers of
the model. Recording N depends on N alone. docs/validate-serve.md has the format; beyond prompts and blocks it covers

  hybrid  several groups of layers: full attention, sliding windows, chunked local attention, of different block sizes
  spec    draft tokens, of which a random number is accepted; with a draft model's own cache or without
  ahead   with spec: where the last block of a prefix would be computed again, hashes of blocks cover the token behind instead
  async   an iteration is decided before the last one has ended
  abort   requests that are given up
  lora    requests with adapters, of which an iteration has a few at the most
  offload keys and values go to host memory through vLLM's own OffloadingConnector; when a transfer is over is drawn
  remote  requests whose prompts another engine computes, and prompts that are computed for others, with a connector that moves nothing: when something
          has arrived or was read is drawn
"""
import argparse
import gzip
import json
import os
import pathlib
import random
import tempfile

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("VLLM_LOGGING_LEVEL", "ERROR")
import torch
import vllm
from vllm.config import CacheConfig, DeviceConfig, KVTransferConfig, LoRAConfig, ModelConfig, ParallelConfig, SchedulerConfig, VllmConfig
from vllm.distributed.kv_transfer.kv_connector.v1 import KVConnectorBase_V1
from vllm.distributed.kv_transfer.kv_connector.v1.base import KVConnectorMetadata, SupportsHMA
from vllm.distributed.kv_transfer.kv_connector.v1.offloading.common import OffloadingWorkerMetadata
from vllm.lora.request import LoRARequest
from vllm.sampling_params import SamplingParams
from vllm.utils.hashing import sha256
from vllm.v1.core.kv_cache_utils import get_request_block_hasher, init_none_hash
from vllm.v1.core.sched.async_scheduler import AsyncScheduler
from vllm.v1.core.sched.scheduler import Scheduler
from vllm.v1.kv_cache_interface import (ChunkedLocalAttentionSpec, FullAttentionSpec, KVCacheConfig, KVCacheGroupSpec,
                                        SlidingWindowSpec)
from vllm.v1.outputs import DraftTokenIds, KVConnectorOutput, ModelRunnerOutput
from vllm.v1.request import Request, RequestStatus
from vllm.v1.structured_output import StructuredOutputManager

MODEL = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 256, "intermediate_size": 512,
         "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 32000,
         "max_position_embeddings": 131072, "torch_dtype": "bfloat16", "bos_token_id": 1, "eos_token_id": 2}
SAMPLED = 29990
MOST_STEPS = 30000


class Speculation:
    """What the scheduler asks a speculative configuration: a drafter with a cache of its own, or one without."""

    def __init__(self, tokens, own_cache, drops_last, slots, hashes_ahead):
        self.num_speculative_tokens = tokens
        self.num_speculative_tokens_per_batch_size = None
        self.own_cache, self.drops_last = own_cache, drops_last
        self.max_num_new_slots_for_drafting = slots
        self.disable_eagle_block_drop = False
        self.disable_lookahead_block_hashes = not hashes_ahead
        self.draft_model_config = None
        self.parallel_drafting = self.use_heterogeneous_vocab = False
        self.method = "eagle" if own_cache else "ngram"

    def use_eagle(self):
        return self.own_cache

    def use_eagle_block_drop(self):
        return self.drops_last

    def needs_eagle_block_drop(self):
        return self.drops_last

    def __getattr__(self, name):
        if name.startswith(("use_", "uses_", "is_", "has_")):
            return lambda *a, **k: False
        raise AttributeError(name)


class Moves(KVConnectorBase_V1, SupportsHMA):
    """A connector for both sides: requests say by their kv_transfer_params which part of them is computed here."""

    def __init__(self, vllm_config, role, kv_cache_config=None):
        super().__init__(vllm_config, role, kv_cache_config)
        self.loads, self.held = {}, []

    def get_num_new_matched_tokens(self, request, num_computed_tokens):
        if (request.kv_transfer_params or {}).get("do_remote_prefill"):
            return request.num_prompt_tokens - num_computed_tokens, True
        return 0, False

    def update_state_after_alloc(self, request, blocks, num_external_tokens):
        params = request.kv_transfer_params or {}
        if params.get("do_remote_prefill") and num_external_tokens > 0:
            params["do_remote_prefill"] = False
            self.loads[request.request_id] = request.num_prompt_tokens - num_external_tokens

    def build_connector_meta(self, scheduler_output):
        return KVConnectorMetadata()

    def request_finished(self, request, block_ids):
        held = bool((request.kv_transfer_params or {}).get("do_remote_decode")) and any(block_ids)
        if held:
            self.held.append(request.request_id)
        return held, None

    request_finished_all_groups = request_finished

    def start_load_kv(self, forward_context, **kwargs):
        pass

    def wait_for_layer_load(self, layer_name):
        pass

    def save_kv_layer(self, layer_name, kv_layer, attn_metadata, **kwargs):
        pass

    def wait_for_save(self):
        pass


class InOrder(dict):
    """Requests that have ended, in the order in which they did: a set has another order in each process."""

    def add(self, name):
        self[name] = None


class Tiers:
    """In the place of the workers of an OffloadingConnector: which transfers there are, and when each is over."""

    def __init__(self, scheduler, rnd):
        self.side, self.rnd = scheduler.connector.connector_scheduler, rnd
        self.over, self.loaders, self.loads = {}, {}, {}
        self.patience = rnd.choice([2, 2, 6, 25])
        takes = self.side.update_state_after_alloc

        def noted(request, blocks, tokens):
            if tokens:
                self.loads[request.request_id] = tokens
            takes(request, blocks, tokens)

        self.side.update_state_after_alloc = noted

    def begin(self, step, decided):
        """What begins in a step, by its number: who, whether it is loaded, and how many chunks; and what the step waits for."""
        meta, made = decided.kv_connector_metadata, []
        for job, transfer in sorted(list(meta.load_jobs.items()) + list(meta.store_jobs.items())):
            load = job in meta.load_jobs
            self.over[job] = step + (0 if load else 1) + self.rnd.choice([0, self.rnd.randrange(self.patience)])
            if load:
                self.loaders[job] = transfer.req_id
            made.append([transfer.req_id, int(load), len((transfer.src_spec if load else transfer.dst_spec).block_ids)])
        waits = sorted(meta.jobs_to_flush or ())
        for job in waits:
            self.over[job] = min(self.over[job], step)
        loads, self.loads = self.loads, {}
        return {"loads": loads, "moves": made, "flush": waits}

    def end(self, step):
        """What was over when a step ran."""
        done = sorted(job for job, at in self.over.items() if at <= step)
        for job in done:
            del self.over[job]
        told = KVConnectorOutput(finished_recving={self.loaders.pop(job) for job in done if job in self.loaders},
                                 kv_connector_worker_meta=OffloadingWorkerMetadata(completed_jobs=dict.fromkeys(done, 1)))
        return done, told

    def held(self):
        policy = self.side.manager._policy
        return len(policy.chunks) if hasattr(policy, "chunks") else len(policy.t1) + len(policy.t2)


PARTS = [None, {"do_remote_decode": True}, {"do_remote_prefill": True}]


def random_knobs(rnd, kinds):
    block = rnd.choice([16, 16, 16, 32, 64, 8])
    knobs = dict(max_num_seqs=rnd.choice([2, 4, 16, 16, 64, 128]), max_num_batched_tokens=rnd.choice([64, 256, 512, 2048]),
                 max_model_len=rnd.choice([2048, 8192]), block_size=block, blocks=rnd.choice([120, 220, 400, 1500]) * 16 // block + 40,
                 chunked=int(rnd.random() < 0.85), caching=int(rnd.random() < 0.75),
                 long_prefill_token_threshold=rnd.choice([0, 0, 0, 32, 128]), adaptive_long_prefill=int(rnd.random() < 0.2),
                 policy=rnd.choice(["fcfs", "fcfs", "priority"]), watermark=rnd.choice([0.0, 0.0, 0.0, 0.02]),
                 reserve_full_isl=int(rnd.random() < 0.8))
    knobs["max_num_seqs"] = min(knobs["max_num_seqs"], knobs["max_num_batched_tokens"])
    if not knobs["chunked"]:
        knobs["max_num_batched_tokens"] = max(knobs["max_num_batched_tokens"], knobs["max_model_len"])
        knobs["long_prefill_token_threshold"] = 0
    if knobs["long_prefill_token_threshold"] > knobs["max_num_batched_tokens"]:
        knobs["long_prefill_token_threshold"] = 0
    if "async" in kinds:
        knobs["async"] = 1
    if "spec" in kinds:
        knobs["spec_tokens"] = rnd.choice([1, 2, 3, 5])
        own = rnd.random() < 0.5
        knobs["lookahead_tokens"] = knobs["spec_tokens"] if own else 0
        knobs["eagle"] = int(own and rnd.random() < 0.7 and knobs["caching"])
        knobs["draft_slots"] = rnd.choice([0, 0, knobs["spec_tokens"] - 1])
    if "hybrid" in kinds:
        groups = [dict(kind="full", block_size=block)] * rnd.choice([0, 1, 1, 1, 2])
        if rnd.random() < 0.25 and not knobs.get("eagle"):
            groups += [dict(kind="chunk", block_size=block, window=rnd.choice([4, 8, 16]) * block)] * rnd.choice([1, 2])
        else:
            sizes = [block] if rnd.random() < 0.6 else [block, block * 2]
            for _ in range(rnd.choice([1, 1, 2, 3])):
                groups.append(dict(kind="window", block_size=rnd.choice(sizes), window=rnd.choice([40, 100, 128, 512, 1024])))
        knobs["groups"] = groups
        knobs["blocks"] = knobs["blocks"] * max(1, len(groups)) // 1
    return knobs


def draw_tiers(rnd, knobs):
    """Host memory, from less than the GPU has to several times as much."""
    knobs["host_chunk_blocks"] = rnd.choice([1, 1, 1, 2, 4])
    blocks = int(knobs["blocks"] * rnd.choice([0.2, 0.6, 1.5, 4]))
    knobs["host_chunks"] = max(4, blocks // knobs["host_chunk_blocks"])
    knobs["host_policy"] = rnd.choice(["lru", "lru", "arc"])
    knobs["host_prompt_only"] = int(rnd.random() < 0.2)


def draw_adapters(rnd, knobs, rows):
    """From fewer than there is room for to many more; some often and others seldom."""
    knobs["max_loras"] = rnd.choice([1, 1, 2, 3, 4, 8])
    there = rnd.choice([1, 2, 4, 12])
    none, alpha = rnd.choice([0, 0.2, 0.6]), rnd.choice([0, 1, 2])
    weights = [1 / (k + 1) ** alpha for k in range(there)]
    for row in rows:
        row["adapter"] = 0 if rnd.random() < none else rnd.choices(range(1, there + 1), weights)[0]


def adapter_of(row):
    number = row.get("adapter", 0)
    return LoRARequest(f"adapter{number}", number, f"/adapters/{number}") if number else None


def spec_of(group):
    shape = dict(block_size=group["block_size"], num_kv_heads=2, head_size=64, dtype=torch.bfloat16)
    if group["kind"] == "window":
        return SlidingWindowSpec(sliding_window=group["window"], **shape)
    if group["kind"] == "chunk":
        return ChunkedLocalAttentionSpec(attention_chunk_size=group["window"], **shape)
    return FullAttentionSpec(**shape)


def gcd_lcm(sizes):
    import math
    return math.gcd(*sizes), math.lcm(*sizes)


def scheduler_of(knobs, folder, moves=False, tiers=False):
    groups = knobs.get("groups") or [dict(kind="full", block_size=knobs["block_size"])]
    hash_block, step = gcd_lcm([g["block_size"] for g in groups])
    model = ModelConfig(model=folder, skip_tokenizer_init=True, dtype="bfloat16", seed=0, max_model_len=knobs["max_model_len"])
    scheduling = SchedulerConfig(
        max_num_seqs=knobs["max_num_seqs"], max_num_batched_tokens=knobs["max_num_batched_tokens"], max_model_len=knobs["max_model_len"],
        enable_chunked_prefill=bool(knobs["chunked"]), long_prefill_token_threshold=knobs["long_prefill_token_threshold"],
        long_prefill_token_threshold_adaptive=bool(knobs["adaptive_long_prefill"]), policy=knobs["policy"],
        watermark=knobs["watermark"], scheduler_reserve_full_isl=bool(knobs["reserve_full_isl"]),
        async_scheduling=bool(knobs.get("async")), is_encoder_decoder=False)
    cache = CacheConfig(block_size=knobs["block_size"], gpu_memory_utilization=0.9, enable_prefix_caching=bool(knobs["caching"]))
    cache.num_gpu_blocks = knobs["blocks"]
    config = VllmConfig(model_config=model, cache_config=cache, scheduler_config=scheduling, parallel_config=ParallelConfig(),
                        device_config=DeviceConfig("cpu"))
    config.scheduler_config.async_scheduling = bool(knobs.get("async"))
    if moves:
        config.kv_transfer_config = KVTransferConfig(kv_connector="Moves", kv_role="kv_both", kv_connector_module_path="record")
    if tiers:
        page = 2 * 2 * 64 * 2 * knobs["block_size"]  # keys and values of two heads of 64, in 16 bits, of the one layer
        chunk = -(-page * knobs["host_chunk_blocks"] // 4096) * 4096
        config.kv_transfer_config = KVTransferConfig(
            kv_connector="OffloadingConnector", kv_role="kv_both", engine_id="recorded",
            kv_connector_extra_config=dict(cpu_bytes_to_use=knobs["host_chunks"] * chunk, eviction_policy=knobs["host_policy"],
                                           blocks_per_chunk=knobs["host_chunk_blocks"],
                                           offload_prompt_only=bool(knobs["host_prompt_only"])))
    if knobs.get("max_loras"):
        config.lora_config = LoRAConfig(max_loras=knobs["max_loras"], max_lora_rank=8)
    if knobs.get("spec_tokens"):
        config.speculative_config = Speculation(knobs["spec_tokens"], knobs["lookahead_tokens"] > 0, bool(knobs["eagle"]),
                                                knobs["draft_slots"], bool(knobs.get("hash_lookahead")))
    knobs["max_in_flight_tokens"] = config.max_in_flight_tokens
    knobs["max_num_batched_tokens"] = config.scheduler_config.max_num_batched_tokens
    kv = KVCacheConfig(num_blocks=knobs["blocks"], kv_cache_tensors=[],
                       kv_cache_groups=[KVCacheGroupSpec([f"layer{i}"], spec_of(g)) for i, g in enumerate(groups)])
    kind = AsyncScheduler if knobs.get("async") else Scheduler
    return kind(vllm_config=config, kv_cache_config=kv, structured_output_manager=StructuredOutputManager(config), block_size=step,
                hash_block_size=hash_block, log_stats=False), hash_block, len(groups)


def random_requests(rnd, knobs, unit, groups):
    rows, step = [], 0
    trees = [[rnd.randrange(1, 10**6) for _ in range(rnd.randrange(1, 60))] for _ in range(4)]
    most = min(knobs["max_model_len"] - 20, int(knobs["blocks"] / groups * 0.9 - 4) * knobs["block_size"])
    for i in range(rnd.choice([20, 40, 80])):
        prefix = rnd.choice(trees)[: rnd.randrange(0, 60)] if rnd.random() < 0.6 else []
        prefix = prefix[: max(0, (most - 80) // unit)]
        prompt = len(prefix) * unit + rnd.choice([rnd.randrange(1, 40), rnd.randrange(40, 400), rnd.randrange(400, 2000)])
        output = rnd.choice([1, rnd.randrange(2, 40), rnd.randrange(20, 200)])
        prompt = max(len(prefix) * unit + 1, min(prompt, most - output - 1))
        if prompt + output < most:
            rows.append(dict(id=str(i), arrive_step=step, prompt=prompt, output=output, priority=rnd.randrange(3), prefix=prefix))
        step += rnd.choice([0, 0, 1, 3, rnd.randrange(30)])
    return rows


def tokens_of(row, unit):
    text = [3 + (name * 7919 + i * 31) % 20000 for name in row["prefix"] for i in range(unit)]
    own = random.Random("own" + row["id"])
    return text + [20003 + own.randrange(9000) for _ in range(row["prompt"] - len(text))]


def record(number, kinds, folder):
    """The lines of a recording; None when the requests do not end."""
    rnd = random.Random(number)
    knobs = random_knobs(rnd, kinds)
    if "ahead" in kinds and knobs.get("eagle"):
        knobs["hash_lookahead"] = 1
    moves = "remote" in kinds
    offload = "offload" in kinds
    if offload:
        draw_tiers(rnd, knobs)
    if (moves or offload) and knobs.get("async"):
        knobs["defer_block_free"] = 1
    if "lora" in kinds:
        draw_adapters(random.Random(f"adapters{number}"), knobs, [])  # the scheduler is told how many
    scheduler, unit, groups = scheduler_of(knobs, folder, moves, offload)
    tiers = Tiers(scheduler, rnd) if offload else None
    scheduler.finished_req_ids = InOrder()
    rows = random_requests(rnd, knobs, unit, groups)
    if "lora" in kinds:
        draw_adapters(random.Random(f"adapters{number}"), knobs, rows)
    if moves:
        share = rnd.choice([[0, 1, 4], [0, 1, 0], [1, 2, 3]])
        for row in rows:
            row["part"] = rnd.choices([0, 1, 2], share)[0]
            row["output"] = 1 if row["part"] == 1 else row["output"]
    part_of = {row["id"]: row.get("part", 0) for row in rows}
    arrives, read = {}, {}
    hasher = get_request_block_hasher(unit, sha256, knobs.get("hash_lookahead", 0)) if knobs["caching"] or offload else None
    lines = [{"engine": "vllm", "version": vllm.__version__, "knobs": knobs}] + [{"request": r} for r in rows]
    requests, flight, shown, preemptions = {}, [], set(), {}
    came = step = 0
    while came < len(rows) or scheduler.has_requests() or flight or read:
        while came < len(rows) and rows[came]["arrive_step"] <= step:
            row = rows[came]
            requests[row["id"]] = Request(
                request_id=row["id"], prompt_token_ids=tokens_of(row, unit), pooling_params=None, arrival_time=float(came),
                sampling_params=SamplingParams(max_tokens=row["output"], ignore_eos=True, temperature=0), priority=row["priority"],
                block_hasher=hasher, lora_request=adapter_of(row))
            if moves:
                requests[row["id"]].kv_transfer_params = dict(PARTS[row["part"]] or {})
            scheduler.add_request(requests[row["id"]])
            came += 1
        aborted = []
        if "abort" in kinds and requests and rnd.random() < 0.02:
            aborted = [rnd.choice(sorted(requests))]
            scheduler.finish_requests(aborted, RequestStatus.FINISHED_ABORTED)
            for name in aborted:
                del requests[name]
        decided = scheduler.schedule()
        scheduler.finished_req_ids = InOrder()
        ids = list(decided.num_scheduled_tokens)
        drafts = {i: len(t) for i, t in decided.scheduled_spec_decode_tokens.items()}
        answers = {i: 0 if requests[i].is_prefill_chunk else 1 + rnd.randrange(drafts.get(i, 0) + 1) for i in ids}
        hits = {}
        for new in decided.scheduled_new_reqs:
            if new.req_id not in shown and part_of[new.req_id] != 2:
                shown.add(new.req_id)
                hits[new.req_id] = new.num_computed_tokens
        flight.append((decided, answers, step))
        line = {"step": step, "scheduled": dict(decided.num_scheduled_tokens)}
        ended = []
        if moves:
            line["loads"], scheduler.connector.loads = scheduler.connector.loads, {}
            arrives.update({i: step + 1 + rnd.choice([0, 1, rnd.randrange(20)]) for i in line["loads"]})
        if tiers:
            line.update(tiers.begin(step, decided))
        if not knobs.get("async") or len(flight) > 1:
            past, said, past_step = flight.pop(0)
            told = {}
            if tiers:
                line["moved"], told["kv_connector_output"] = tiers.end(past_step)
            if moves:
                line["arrived"] = [i for i, at in arrives.items() if at <= step]
                line["sent"] = [i for i, at in read.items() if at <= step]
                told = {"kv_connector_output": KVConnectorOutput(finished_recving=line["arrived"], finished_sending=line["sent"])}
                arrives = {i: at for i, at in arrives.items() if at > step}
                read = {i: at for i, at in read.items() if at > step}
            past_ids = list(past.num_scheduled_tokens)
            scheduler.update_from_output(past, ModelRunnerOutput(
                req_ids=past_ids, req_id_to_index={r: k for k, r in enumerate(past_ids)},
                sampled_token_ids=[[SAMPLED] * said[i] for i in past_ids], logprobs=None, prompt_logprobs_dict={}, pooler_output=[], **told))
            line["sampled"] = {i: n for i, n in said.items() if n}
            if knobs.get("spec_tokens") and not knobs.get("async"):
                proposed = {i: rnd.randrange(knobs["spec_tokens"] + 1) for i in past_ids
                            if said[i] and i in requests and not requests[i].is_finished()}
                scheduler.update_draft_token_ids(DraftTokenIds(list(proposed), [[5] * n for n in proposed.values()]))
                line["drafts"] = proposed
            ended = [i for i, r in requests.items() if r.is_finished()]
            if moves:
                read.update({i: step + 1 + rnd.choice([0, 3, rnd.randrange(30)]) for i in scheduler.connector.held})
                scheduler.connector.held = []
        gone = [i for i, r in requests.items() if r.num_preemptions > preemptions.get(i, 0)]
        preemptions.update({i: requests[i].num_preemptions for i in gone})
        for i in ended:
            del requests[i]
        line.update({"free": scheduler.kv_cache_manager.block_pool.get_num_free_blocks(), "running": len(scheduler.running),
                     "waiting": len(scheduler.waiting) + len(scheduler.kv_holding_waiting), "preempted": gone, "finished": ended, "hits": hits})
        if tiers:
            line["host"] = tiers.held()
        if aborted:
            line["aborted"] = aborted
        lines.append(line)
        step += 1
        if step > MOST_STEPS:
            return None
        if knobs.get("async") and not scheduler.has_requests() and came == len(rows) and not read:
            break
    return lines


def main():
    args = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument("--out", required=True)
    args.add_argument("--first", type=int, default=1)
    args.add_argument("--count", type=int, default=10)
    args.add_argument("--kinds", default=None, help="fixed, instead of drawn at random for each recording")
    a = args.parse_args()
    out = pathlib.Path(a.out)
    out.mkdir(parents=True, exist_ok=True)
    init_none_hash(sha256)
    with tempfile.TemporaryDirectory() as folder:
        pathlib.Path(folder, "config.json").write_text(json.dumps(MODEL))
        for number in range(a.first, a.first + a.count):
            rnd = random.Random(f"kinds{number}")
            kinds = a.kinds.split(",") if a.kinds is not None else [k for k in ("hybrid", "spec", "async", "abort", "lora") if rnd.random() < 0.4]
            lines = record(number, kinds, folder)
            if lines is None:
                print(f"{number}: its requests do not end", flush=True)
                continue
            name = out / f"{number:05d}-{'-'.join(kinds) or 'plain'}.jsonl.gz"
            with open(name, "wb") as raw, gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0) as packed:
                packed.write("".join(json.dumps(line) + "\n" for line in lines).encode())


if __name__ == "__main__":
    main()
