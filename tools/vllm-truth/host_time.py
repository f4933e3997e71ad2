#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Processor time that vLLM's own scheduler takes for a request that decodes: deciding an iteration, taking its tokens, and writing
what goes to the API server.

usage: host_time.py [REQUESTS...]

Needs vllm (PyPI; seen with 0.33.0). One line for each number of requests, in microseconds for an iteration and for a request of it. What
src/serve/engine/host.c has is this, on the processor that docs/validate-serve.md names.
"""
import json
import pathlib
import sys
import tempfile
import time

import record
from record import Request, SamplingParams
from vllm.v1.outputs import ModelRunnerOutput
from vllm.v1.serial_utils import MsgpackEncoder

STEPS, SETTLED = 300, 100  # the first ones take prompts in


def knobs_for(requests):
    return dict(max_num_seqs=requests, max_num_batched_tokens=8192, max_model_len=8192, block_size=16, blocks=64 * requests + 64,
                chunked=1, caching=1, long_prefill_token_threshold=0, adaptive_long_prefill=0, policy="fcfs", watermark=0.0,
                reserve_full_isl=1)


def answer_to(scheduler, names):
    """A token for every request whose known tokens are all computed, as the model would give it."""
    known = [scheduler.requests[n] for n in names]
    tokens = [[record.SAMPLED] if r.num_computed_tokens >= r.num_tokens else [] for r in known]
    return ModelRunnerOutput(req_ids=names, req_id_to_index={n: i for i, n in enumerate(names)}, sampled_token_ids=tokens, logprobs=None,
                             prompt_logprobs_dict={}, pooler_output=[])


def seconds_of_an_iteration(requests, folder):
    scheduler, unit, _ = record.scheduler_of(knobs_for(requests), folder)
    hasher = record.get_request_block_hasher(unit, record.sha256)
    for i in range(requests):
        prompt = [5 + (31 * i + k) % 20000 for k in range(64)]
        scheduler.add_request(Request(request_id=str(i), prompt_token_ids=prompt, pooling_params=None, arrival_time=float(i),
                                      sampling_params=SamplingParams(max_tokens=2 * STEPS, ignore_eos=True, temperature=0),
                                      block_hasher=hasher))
    encoder, spent = MsgpackEncoder(), 0.0
    for step in range(STEPS):
        begin = time.process_time()
        decided = scheduler.schedule()
        between = time.process_time()
        answer = answer_to(scheduler, list(decided.num_scheduled_tokens))
        resumed = time.process_time()
        for outputs in scheduler.update_from_output(decided, answer).values():
            encoder.encode(outputs)
        if step >= SETTLED:
            spent += time.process_time() - resumed + between - begin
    return spent / (STEPS - SETTLED)


def main():
    record.init_none_hash(record.sha256)
    with tempfile.TemporaryDirectory() as folder:
        (pathlib.Path(folder) / "config.json").write_text(json.dumps(record.MODEL))
        for requests in [int(n) for n in sys.argv[1:]] or [16, 64, 256, 512]:
            took = seconds_of_an_iteration(requests, folder)
            print(f"{requests} requests: {1e6 * took:.0f} us an iteration, {1e6 * took / requests:.1f} us a request")


if __name__ == "__main__":
    main()
