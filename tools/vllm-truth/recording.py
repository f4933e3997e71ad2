# SPDX-License-Identifier: Apache-2.0
"""Looks on while vLLM's scheduler decides and is told what came of it: a recording for `maquette validate schedule`.

Seen with vllm 0.33.0. In the trace every iteration is a range of NVTX by its number.
"""
import json
import os
import pathlib
import time

import torch
import vllm
from vllm.v1.core.sched.scheduler import Scheduler
from vllm.v1.engine.core import EngineCoreProc
from vllm.v1.worker.gpu_worker import Worker


PIECE = torch.zeros(4)


def yardstick():
    """Processor time of some work that is always the same, of the kind that an iteration is: how much else the processor is shared with."""
    began, kept = time.process_time(), {}
    for i in range(300):
        kept[i % 7] = torch.empty(4).add_(PIECE).view(2, 2)
    return time.process_time() - began


class Recording:
    """Of one engine. `on`: what is decided from now on counts."""

    def __init__(self):
        self.steps, self.seconds, self.yardsticks, self.line, self.began = [], [], [], None, 0.0
        self.shown, self.requests, self.rows = set(), {}, {}
        self.memory, self.unit_names = {}, {}
        self.on = False

    def look_on(self):
        decide, take, measure, add = Scheduler.schedule, Scheduler.update_from_output, Worker.determine_available_memory, Scheduler.add_request
        Scheduler.schedule = lambda s, *a, **k: self.schedule(s, lambda: decide(s, *a, **k))
        Scheduler.update_from_output = lambda s, d, o: self.update(d, o, lambda: take(s, d, o))
        Scheduler.add_request = lambda s, request: (self.came(s, request), add(s, request))[1]
        warm = Worker.compile_or_warm_up_model
        Worker.compile_or_warm_up_model = lambda worker: self.warmed(worker, lambda: warm(worker))
        Worker.determine_available_memory = lambda worker: self.measured(worker, measure(worker))

    def measured(self, worker, available):
        self.memory.update(weights=int(worker.model_runner.model_memory_usage), consumed=int(worker.total_consumed),
                           activations=int(worker.peak_activation_memory), available=int(available),
                           graphs_estimate=int(getattr(worker, "cudagraph_memory_estimate", 0)))
        return available

    def warmed(self, worker, warm):
        """What the engine says that its graphs took: free memory before capturing less that behind it."""
        capture = worker.model_runner.capture_model

        def captured(*a, **k):
            taken = capture(*a, **k)
            self.memory.update(graphs=int(taken))
            return taken

        worker.model_runner.capture_model = captured
        return warm()

    def came(self, scheduler, request):
        """In front of which iteration a request came, and its prompt as names of blocks: equal ones have one name."""
        if self.on:
            unit, tokens = scheduler.vllm_config.cache_config.block_size, request.prompt_token_ids
            blocks = [tuple(tokens[at:at + unit]) for at in range(0, len(tokens) - unit, unit)]
            self.rows[request.request_id] = {
                "id": str(len(self.rows)), "arrive_step": len(self.steps) + (self.line is not None), "prompt": request.num_prompt_tokens,
                "output": request.max_tokens, "priority": request.priority,
                "prefix": [self.unit_names.setdefault(b, len(self.unit_names) + 1) for b in blocks]}

    def shared_prefixes(self):
        """The rows, each with as much of its prompt as another one has, too."""
        times = {}
        for name in (name for row in self.rows.values() for name in set(row["prefix"])):
            times[name] = times.get(name, 0) + 1
        for row in self.rows.values():
            last = max((i for i, name in enumerate(row["prefix"]) if times[name] > 1), default=-1)
            yield {**row, "prefix": row["prefix"][:last + 1]}

    def end_step(self, scheduler):
        line = self.line
        if line is None:
            return
        torch.cuda.nvtx.range_pop()
        ended = [i for i, r in self.requests.items() if r.is_finished()]
        for name in ended:
            del self.requests[name]
        came_since = sum(row["arrive_step"] > line["step"] for row in self.rows.values())
        line.update(free=scheduler.kv_cache_manager.block_pool.get_num_free_blocks(), running=len(scheduler.running),
                    waiting=len(scheduler.waiting) - came_since, preempted=[], finished=ended)
        self.steps.append(line)
        self.seconds.append(time.process_time() - self.began)
        self.line = None

    def schedule(self, scheduler, decide):
        self.end_step(scheduler)
        if self.on:
            self.yardsticks.append(yardstick())
        began = time.process_time()
        decided = decide()
        if not self.on or not decided.num_scheduled_tokens:
            return decided
        self.began = began
        self.requests.update({i: scheduler.requests[i] for i in decided.num_scheduled_tokens})
        hits = {n.req_id: n.num_computed_tokens for n in decided.scheduled_new_reqs if n.req_id not in self.shown}
        self.shown.update(hits)
        self.line = {"step": len(self.steps), "scheduled": dict(decided.num_scheduled_tokens), "hits": hits}
        torch.cuda.nvtx.range_push(f"iteration {len(self.steps)}")
        return decided

    def update(self, decided, answer, take):
        told = take()
        if self.line is not None:
            self.line["sampled"] = {i: len(t) for i, t in zip(answer.req_ids, answer.sampled_token_ids) if len(t)}
        return told

    def named(self, step):
        name_of = {name: row["id"] for name, row in self.rows.items()}
        again = {k: {name_of[i]: n for i, n in step[k].items()} for k in ("scheduled", "hits", "sampled")}
        return {**step, **again, "finished": [name_of[i] for i in step["finished"]]}

    def write(self, path, config, scheduler, **more):
        """The recording, and beside it blocks, memory in bytes and, for each iteration, the host's processor time and a yardstick's before it."""
        self.end_step(scheduler)
        knobs = dict(max_num_seqs=config.scheduler_config.max_num_seqs, max_num_batched_tokens=config.scheduler_config.max_num_batched_tokens,
                     max_model_len=config.model_config.max_model_len, blocks=config.cache_config.num_gpu_blocks,
                     block_size=config.cache_config.block_size, caching=int(config.cache_config.enable_prefix_caching))
        lines = [{"engine": "vllm", "version": vllm.__version__, "knobs": knobs}, *({"request": r} for r in self.shared_prefixes()),
                 *map(self.named, self.steps)]
        path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
        path.with_suffix(".json").write_text(json.dumps(dict(
            version=vllm.__version__, torch=torch.__version__, knobs=knobs, memory=self.memory, device=torch.cuda.get_device_name(),
            host_s=self.seconds, yardstick_s=self.yardsticks[-len(self.seconds):], **more), indent=1), encoding="utf-8")


def begin_in_server():
    """A plugin of vLLM, called in each of its processes (server.py): the one that has the engine writes to MAQ_RECORDING what it did, each time
    that no request is left."""
    recording, path = Recording(), pathlib.Path(os.environ["MAQ_RECORDING"])
    loop, step = EngineCoreProc.run_busy_loop, EngineCoreProc._process_engine_step

    def begin(core):
        recording.on = True  # what came before is the engine's own measuring
        return loop(core)

    def stepped(core):
        done = step(core)
        if recording.line is not None and core.scheduler.get_num_unfinished_requests() == 0:
            config = core.vllm_config
            recording.write(path, config, core.scheduler, model=config.model_config.model, tp=config.parallel_config.tensor_parallel_size)
        return done

    recording.look_on()
    EngineCoreProc.run_busy_loop, EngineCoreProc._process_engine_step = begin, stepped
