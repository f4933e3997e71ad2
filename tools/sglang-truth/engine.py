# SPDX-License-Identifier: Apache-2.0
"""SGLang's own scheduler on a machine without a GPU: its classes, with what they import and never use replaced by nothing.

Real are the loop's decisions (Scheduler.get_next_batch_to_run and all below it: SchedulePolicy, PrefillAdder, the radix cache, the allocator,
ScheduleBatch) and what a result does (SchedulerBatchResultProcessor). Made up are the configuration, the tokens and the model's answers.
"""
import logging
from array import array
from collections import deque

import absent  # noqa: F401 - before sglang
import torch

logging.disable(logging.CRITICAL)
import sglang.srt.runtime_context as runtime_context  # noqa: E402


class Off:
    """A setting that nobody made: false, and so is everything in it."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return Off()

    def __bool__(self):
        return False

    def __call__(self, *a, **k):
        return None


class Settings(Off):
    def __init__(self, **values):
        self.__dict__.update(values)


BAGS = {}
PARALLEL = Settings(pp_size=1, tp_size=1, pp_rank=0, tp_rank=0, attn_tp_size=1, attn_tp_rank=0, attn_dp_size=1, dcp_size=1, attn_dcp_size=1)
runtime_context.RuntimeContext.config_bag = lambda self, name: BAGS.setdefault(name, Settings())
runtime_context.RuntimeContext.is_config_namespace_published = lambda self, name: False
runtime_context.get_parallel = lambda: PARALLEL
from sglang.srt.lora import lora_manager as lora_module  # noqa: E402
from sglang.srt.managers import schedule_batch, schedule_policy, scheduler as scheduler_module  # noqa: E402
from sglang.srt.managers.schedule_batch import Req, ScheduleBatch  # noqa: E402
from sglang.srt.managers.schedule_policy import PrefillAdder, SchedulePolicy  # noqa: E402
from sglang.srt.managers.scheduler import Scheduler  # noqa: E402
from sglang.srt.managers.scheduler_components import new_token_ratio_tracker as ratio_module  # noqa: E402
from sglang.srt.managers.scheduler_components import batch_result_processor as result_module  # noqa: E402
from sglang.srt.mem_cache import allocation, common  # noqa: E402
from sglang.srt.mem_cache.allocator.paged import PagedTokenToKVPoolAllocator  # noqa: E402
from sglang.srt.mem_cache.allocator.token import TokenToKVPoolAllocator  # noqa: E402
from sglang.srt.mem_cache.cache_init_params import CacheInitParams  # noqa: E402
from sglang.srt.mem_cache.memory_pool import ReqToTokenPool  # noqa: E402
from sglang.srt.mem_cache.unified_cache.component_type import ComponentType  # noqa: E402
from sglang.srt.mem_cache.unified_radix_cache import UnifiedRadixCache  # noqa: E402
from sglang.srt.sampling.sampling_params import SamplingParams  # noqa: E402
from sglang.srt.speculative.spec_info import SpeculativeAlgorithm  # noqa: E402

EOS = 7
VOCAB = 1 << 60


class NoSampling:
    """What a batch says of its sampling, which decides nothing."""

    def __init__(self):
        self.penalizer_orchestrator = Settings(is_required=False)

    def filter_batch(self, *a):
        pass

    def merge_batch(self, *a):
        pass


schedule_batch.SamplingBatchInfo.from_schedule_batch = classmethod(lambda cls, batch, vocab: NoSampling())


def write_indices(out_cache_loc, rows, rows_cpu, prefix, prefix_cpu, seq, seq_cpu, extend, extend_cpu, prefixes, pool):
    at = 0
    for i, row in enumerate(rows_cpu.tolist()):
        begin, end = int(prefix_cpu[i]), int(seq_cpu[i])
        pool.write((row, slice(0, begin)), prefixes[i].to(torch.int32))
        pool.write((row, slice(begin, end)), out_cache_loc[at:at + end - begin].to(torch.int32))
        at += end - begin


allocation.write_cache_indices = write_indices


def assign_rows(rows, table, start, end, out_cache_loc, batch_size):
    at = 0
    for row, begin, stop in zip(rows.tolist(), start.tolist(), end.tolist()):
        table[row, begin:stop] = out_cache_loc[at:at + stop - begin].to(torch.int32)
        at += stop - begin


allocation.assign_req_to_token_pool_func = assign_rows
# Who gives way is a set there, whose order is that of addresses: here the one in which they were chosen.
schedule_policy.set = dict.fromkeys
# The last slot before a place, which a kernel looks up.
allocation.get_last_loc = lambda table, rows, prefix: torch.where(
    prefix > 0, table[rows.long(), (prefix.long() - 1).clamp(min=0)].to(prefix.dtype), torch.full_like(prefix, -1))


class Copy:
    """One transfer between GPU and host: over so many looks after it began, behind those before it."""

    timing_enabled, num_tokens_by_pool, num_bytes = False, None, 0

    def __init__(self, node_ids, left):
        self.node_ids, self.left, self.finish_event = node_ids, left, self

    def query(self):
        return self.left <= 0

    def synchronize(self):
        pass


class HostPages:
    """The host's memory, of which only the number of slots counts."""

    def __init__(self, tokens):
        self.left, self.anchor_entry = tokens, Settings(host_pool=Settings(shared_allocation_domain=None), host_evict_fn=None)

    def available_size(self):
        return self.left

    def free(self, indices, pool=None):
        self.left += len(indices)


class HostCopies:
    """What stands for HybridCacheController: places and queues as there, and copies that are over when `delays` say so."""

    pp_prefetch_command_group = None

    def __init__(self, allocator, tokens, policy, delays):
        self.mem_pool_host, self.allocator, self.write_policy, self.delays = HostPages(tokens), allocator, policy, delays
        self.write_queue, self.load_queue, self.ack_write_queue, self.ack_load_queue = [], [], [], []

    def write(self, device_indices, node_id, extra_pools, flush):
        if self.mem_pool_host.left < len(device_indices):
            return None
        self.mem_pool_host.left -= len(device_indices)
        self.write_queue.append(node_id)
        return torch.zeros(len(device_indices), dtype=torch.int64)

    def load(self, host_indices, node_id, extra_pools):
        slots = self.allocator.alloc(len(host_indices))
        if slots is not None:
            self.load_queue.append(node_id)
        return slots

    def start_writing(self):
        if self.write_queue:
            self.ack_write_queue.append(Copy(list(self.write_queue), self.delays("write")))
            self.write_queue.clear()

    def start_loading(self):
        if not self.load_queue:
            return -1
        self.ack_load_queue.append(Copy(list(self.load_queue), self.delays("load")))
        self.load_queue.clear()
        return 0


class Engine(Scheduler):
    """The scheduler without a worker, without sockets, without a model."""

    def __init__(self, knobs, delays=None):
        page = knobs["page_size"]
        caching = bool(knobs["caching"])
        overlap = bool(knobs["overlap"])
        BAGS.clear()
        BAGS["schedule"] = Settings(
            schedule_policy=knobs["policy"], chunked_prefill_size=knobs["chunked_prefill_size"] or None,
            schedule_conservativeness=knobs["conservativeness"], prefill_max_requests=knobs["prefill_max_requests"] or None,
            schedule_low_priority_values_first=bool(knobs["low_priority_first"]), disable_priority_preemption=not knobs.get("preemption"),
            retraction_policy="length", prefill_decode_interval=0, page_size=page)
        BAGS["memory"] = Settings(radix_eviction_policy=knobs["eviction"])
        BAGS["disagg"] = Settings(disaggregation_mode="null", disaggregation_decode_retraction_backup="none")
        drafts = knobs.get("spec_draft_tokens", 0)
        algorithm = "EAGLE" if knobs["mixed"] or knobs.get("spec_pairs") else "STANDALONE"
        BAGS["spec"] = Settings(speculative_algorithm=algorithm, speculative_num_steps=knobs["spec_steps"],
                                speculative_eagle_topk=knobs["spec_topk"], speculative_num_draft_tokens=drafts,
                                max_speculative_num_draft_tokens=None) if drafts else Settings(speculative_algorithm=None)
        PARALLEL.pp_max_micro_batch_size = knobs["max_running_requests"]
        self.page_size = page
        self.device = "cpu"
        self.req_to_token_pool = ReqToTokenPool(knobs["max_running_requests"], knobs["context"] + 8 + 64 * page * bool(drafts), "cpu", False)
        self.req_to_token_pool.alloc_aux_to_lengths = lambda **k: None
        kv = Settings()
        if page == 1:
            self.token_to_kv_pool_allocator = TokenToKVPoolAllocator(knobs["tokens"], torch.bfloat16, "cpu", kv, False)
        else:
            self.token_to_kv_pool_allocator = PagedTokenToKVPoolAllocator(knobs["tokens"], page, torch.bfloat16, "cpu", kv, False)
        self.tree_cache = UnifiedRadixCache(CacheInitParams(
            disable=not caching, req_to_token_pool=self.req_to_token_pool, token_to_kv_pool_allocator=self.token_to_kv_pool_allocator,
            page_size=page, eviction_policy=knobs["eviction"], is_eagle=bool(knobs.get("spec_pairs")), tree_components=(ComponentType.FULL,)))
        if knobs.get("host_tokens"):  # what init_hicache() sets
            tree = self.tree_cache
            tree.cache_controller = HostCopies(self.token_to_kv_pool_allocator, knobs["host_tokens"], knobs["write_policy"], delays)
            tree.host_pool_group = tree.components[ComponentType.FULL]._full_kv_pool_host = tree.cache_controller.mem_pool_host
            tree.tree_core.set_hicache_enabled()
            tree.write_through_threshold = 1 if knobs["write_policy"] == "write_through" else 2
            tree.is_write_back = knobs["write_policy"] == "write_back"
            tree.load_back_threshold = 10
        self.chunked_prefill_size = knobs["chunked_prefill_size"] or None
        self.max_prefill_tokens = knobs["max_prefill_tokens"]
        self.max_running_requests = knobs["max_running_requests"]
        self.is_mixed_chunk = bool(knobs["mixed"]) and self.chunked_prefill_size is not None
        self.enable_overlap = self.enable_skip_finishing_decode = overlap
        self.enable_priority_scheduling = bool(knobs["priority"])
        self.enable_priority_preemption = bool(knobs.get("preemption"))
        self.schedule_low_priority_values_first = bool(knobs["low_priority_first"])
        self.priority_scheduling_preemption_threshold = knobs.get("preemption_threshold", 10)
        self.waiting_queue = []
        self.running_batch = ScheduleBatch(reqs=[], batch_is_full=False)
        self.last_batch = None
        self.result_queue = deque()
        self.chunked_req = self._pending_chunked_abort_req = None
        self.new_token_ratio_tracker = ratio_module.NewTokenRatioTracker.from_config()
        self.policy = SchedulePolicy(knobs["policy"], self.tree_cache, False, self.enable_priority_scheduling,
                                     self.schedule_low_priority_values_first)
        self.spec_algorithm = SpeculativeAlgorithm.from_string(algorithm) if drafts else SpeculativeAlgorithm.NONE
        self.future_map = Settings(stash_bonus_tokens=lambda *a: None)
        self.model_config = Settings(vocab_size=VOCAB, is_encoder_decoder=False)
        self.disaggregation_mode = scheduler_module.DisaggregationMode.NULL
        self.prefill_delayer = self.min_free_slots_delayer = self.dllm_config = self.dynamic_chunk_sizer = None
        self.decode_offload_manager = self.hisparse_coordinator = self.truncation_align_size = self.scheduler_stage_metrics = None
        for name in ("enable_lora enable_hicache_storage enable_lmcache enable_hierarchical_cache enable_hisparse is_hybrid_swa "
                     "enable_unified_cache_external_linker require_mlp_sync is_hybrid_ssm").split():
            setattr(self, name, False)
        self.enable_hierarchical_cache = bool(knobs.get("host_tokens"))
        self.enable_lora, self.lora_drainer, self.enable_lora_overlap_loading = bool(knobs.get("max_loras")), None, False
        self.max_prefill_bs = self.processed_tokens_counter = self.prefill_decode_interval = 0
        self._prefill_decode_interval_remaining = self.forward_ct = 0
        adapters = Settings(max_loras_per_batch=knobs.get("max_loras", 0), num_pinned_loras=0)
        adapters.validate_lora_batch = lambda ids: lora_module.LoRAManager.validate_lora_batch(adapters, ids)
        self.tp_worker = Settings(model_runner=Settings(attn_backend=object(), prefill_aware_swa=False, lora_manager=adapters))
        self.grammar_manager = Settings(has_waiting_grammars=lambda: False)
        self.beam_coordinator = Settings(pending_member_rows=lambda batch: 0, retire_group=lambda req: None,
                                         commit_decode=lambda batch: set())
        self.dp_attn_adapter = Settings(maybe_prepare_mlp_sync_batch=lambda batch, **k: batch,
                                        maybe_convert_decode_to_extend=lambda batch: batch)
        self.ngram_embedding_manager = Settings(prepare_for_forward=lambda batch, **k: batch)
        self.metrics_reporter = Settings(num_generated_tokens=0, forward_ct_decode=0, snapshot_spec_decode_metrics=lambda *a: None,
                                         update_spec_metrics=lambda *a, **k: None)
        self.load_inquirer = Settings(_get_num_pending_tokens=lambda **k: 0)
        self.refused = []
        self.send_abort_output = lambda recv, req: self.refused.append(req)
        self.results = result_module.SchedulerBatchResultProcessor.__new__(result_module.SchedulerBatchResultProcessor)
        for name, value in dict(is_generation=True, enable_overlap=overlap, enable_overlap_mlx=False, tree_cache=self.tree_cache,
                                token_to_kv_pool_allocator=self.token_to_kv_pool_allocator, metrics_reporter=self.metrics_reporter,
                                beam_coordinator=self.beam_coordinator, draft_worker=None,
                                model_worker=Settings(on_verify_complete_cpu=lambda *a, **k: None),
                                model_config=self.model_config, output_streamer=Settings(), req_to_token_pool=self.req_to_token_pool).items():
            object.__setattr__(self.results, name, value)
        self._set_or_validate_priority = lambda req: True
        self._abort_on_queued_limit = lambda req: False
        self._prefetch_kvcache = lambda req: None
