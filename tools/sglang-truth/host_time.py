#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Processor time that SGLang's own scheduler takes: for an iteration of requests that decode, for a prompt, for a request that ends.

usage: host_time.py [REQUESTS...]

Needs what record.py needs. A line for each number of requests, prompts of 1,000 tokens and 300 out, no page shared: microseconds for an iteration
that decodes and for a request of it; for a token of a prompt in the iterations that prefill; and for a token of a request that ends, prompt and
output, over what its iteration would have taken. From the decision to the result, without what is sent to the detokenizer and without
launching work on a GPU. What src/serve/engine/host.c has is this, on the processor that docs/validate-serve.md names.
"""
import statistics
import sys
import time

from engine import BAGS, PARALLEL, Off, Settings
from record import Replay
from sglang.srt.managers.io_struct import msgpack_encode
from sglang.srt.managers.scheduler_components.output_streamer import SchedulerOutputStreamer

PROMPT, OUTPUT = 1000, 300


class Timed(Replay):
    """Of every step: its kind, processor time, requests and tokens."""

    def __init__(self, knobs, rows):
        super().__init__(knobs, rows)
        self.seen, self.plain, self.results_s = [], [], 0.0
        self.stream()
        for name in ("process_batch_result_decode", "process_batch_result_prefill"):
            self.time_results(name)

    def stream(self):
        """Every token is on its way to a client as it comes: what is written for the detokenizer, without the socket."""
        PARALLEL.dp_rank = None
        BAGS["serving"] = Settings(stream_interval=1, weight_version="default")
        streamer = object.__new__(SchedulerOutputStreamer)
        values = dict(is_generation=True, spec_algorithm=self.engine.spec_algorithm, disaggregation_mode=self.engine.disaggregation_mode,
                      tree_cache=self.engine.tree_cache, enable_hicache_storage=lambda: False, rust_server=None, server_args=Off(),
                      send_to_detokenizer=Settings(send_output=msgpack_encode))
        for name, value in values.items():
            object.__setattr__(streamer, name, value)
        object.__setattr__(self.engine.results, "output_streamer", streamer)

    def add(self, row):
        super().add(row)
        self.live[row["id"]].stream = True

    def restore(self):
        for name, plain in self.plain:
            setattr(type(self.engine.results), name, plain)

    def time_results(self, name):
        results = self.engine.results
        plain = getattr(type(results), name)

        def timed(of, *a):
            begin = time.process_time()
            plain(of, *a)
            self.results_s += time.process_time() - begin

        self.plain.append((name, plain))
        setattr(type(results), name, timed)

    def step(self, number):
        decide = self.engine.get_next_batch_to_run
        seen = {}

        def timed(**k):
            begin = time.process_time()
            plan = decide(**k)
            seen["s"] = time.process_time() - begin
            batch = plan.batch_to_run
            seen["batch"] = (batch.forward_mode.is_decode(), len(batch.reqs), 0 if batch.forward_mode.is_decode() else sum(batch.extend_lens)) if batch else None
            return plan

        self.engine.get_next_batch_to_run, self.results_s = timed, 0.0
        line = super().step(number)
        self.engine.get_next_batch_to_run = decide
        self.seen.append((seen["batch"], seen["s"] + self.results_s, len(self.ended)))
        return line


def measure(requests):
    knobs = dict(page_size=1, tokens=requests * (PROMPT + OUTPUT) + 20000, context=4000, caching=1, overlap=1, policy="fcfs",
                 chunked_prefill_size=8192, max_prefill_tokens=16384, max_running_requests=requests, conservativeness=0.3,
                 prefill_max_requests=0, eviction="lru", mixed=0, priority=0, low_priority_first=0)
    rows = [dict(id=str(i), arrive_step=0, prompt=PROMPT, output=OUTPUT, limit=OUTPUT, priority=0, prefix=[]) for i in range(requests)]
    run = Timed(knobs, rows)
    run.run()
    run.restore()
    decodes = [s for batch, s, ended in run.seen if batch and batch[0] and batch[1] == requests and not ended]
    usual = statistics.median(decodes)
    prefills = [(s, batch[2]) for batch, s, _ in run.seen if batch and not batch[0]]
    prompt_s = sum(s for s, _ in prefills) / sum(n for _, n in prefills)
    ends = [(s, ended) for _, s, ended in run.seen if ended]
    end_s = sum(s for s, _ in ends) / sum(n for _, n in ends)
    print(f"{requests} requests: {1e6 * usual:.0f} us an iteration, {1e6 * usual / requests:.1f} us a request, "
          f"{1e6 * prompt_s:.2f} us a token of a prompt, {1e6 * end_s:.0f} us a request that ends, {1e6 * end_s / (PROMPT + OUTPUT):.2f} us a token of it")


def main():
    for requests in [int(n) for n in sys.argv[1:]] or [16, 64, 256, 512]:
        measure(requests)


if __name__ == "__main__":
    main()
