#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""SGLang's own server, tokenizer manager and detokenizer in front of an engine that gives each of its requests a token every STEP_MS.

usage: front_end.py MODEL PORT [STEP_MS]

MODEL is a folder with a config.json and a tokenizer. Says the process of the server, then that of the detokenizer, when it takes requests:
front_time.py in tools/vllm-truth measures them. Needs what run.py installs; it ran with uvicorn, httptools,
python-multipart, openai, sentencepiece, tiktoken and interegular besides.
"""
import argparse
import os
import sys
import time
from array import array

import absent  # noqa: F401 - in every process of it, before sglang
import zmq
from sglang.srt.managers.io_struct import BatchTokenIDOutput, TokenizedGenerateReqInput, sock_recv, sock_send, wrap_as_pickle
from sglang.srt.observability.req_time_stats import SchedulerReqTimeStats
from sglang.srt.utils.network import get_zmq_socket

CONTEXT, TOKENS = 65536, 1 << 20  # of a prompt, of the cache: what the server checks requests against
BEFORE = 5  # tokens of a prompt that the detokenizer begins with
STEP_MS = "MAQ_STEP_MS"  # how the engine's process hears of it


class Stream:
    """What the detokenizer gets of a request: the token, and with the first one the last ones of the prompt."""

    def __init__(self, asked):
        self.asked, self.sent = asked, 0
        self.end = asked.sampling_params.max_new_tokens
        self.prompt = asked.input_ids
        self.stats = SchedulerReqTimeStats()

    def next(self):
        token = array("q", [1000 + (37 * self.sent) % 20000])
        first = self.prompt[-BEFORE:] if self.sent == 0 else array("q")
        self.sent += 1
        return first + token, token, {"type": "length", "length": self.end} if self.sent == self.end else None


def payload(live):
    n = len(live)
    ids = [s.next() for s in live]
    empty = {name: [] for name in ("input_token_logprobs_val input_token_logprobs_idx output_token_logprobs_val output_token_logprobs_idx "
                                   "input_top_logprobs_val input_top_logprobs_idx output_top_logprobs_val output_top_logprobs_idx "
                                   "input_token_ids_logprobs_val input_token_ids_logprobs_idx output_token_ids_logprobs_val "
                                   "output_token_ids_logprobs_idx spec_verify_ct spec_num_correct_drafts spec_num_block_accept_tokens "
                                   "spec_num_cap_tokens spec_correct_drafts_histogram spec_cap_lens_histogram").split()}
    none = {name: None for name in ("output_token_entropy_val output_token_sampling_mask output_hidden_states routed_experts indexer_topk "
                                    "placeholder_tokens_idx placeholder_tokens_val").split()}
    return BatchTokenIDOutput(
        rids=[s.asked.rid for s in live], http_worker_ipcs=[s.asked.http_worker_ipc for s in live], finished_reasons=[end for _, _, end in ids],
        decoded_texts=[""] * n, decode_ids=[d for d, _, _ in ids], read_offsets=[min(BEFORE, len(s.prompt)) for s in live],
        output_ids=[o for _, o, _ in ids], skip_special_tokens=[True] * n, spaces_between_special_tokens=[True] * n, no_stop_trim=[False] * n,
        prompt_tokens=[len(s.prompt) for s in live], reasoning_tokens=[0] * n, completion_tokens=[s.sent for s in live], cached_tokens=[0] * n,
        cached_tokens_details=[None] * n, image_tokens=[0] * n, audio_tokens=[0] * n, video_tokens=[0] * n, retraction_counts=[0] * n,
        time_stats=wrap_as_pickle([s.stats for s in live]), dp_ranks=[None] * n, **empty, **none)


def scheduler(server_args, port_args, *ranks_and_pipe, **_):
    """In the place of the engine's process; through the pipe it says that it is ready."""
    pipe = next(a for a in ranks_and_pipe if hasattr(a, "send"))
    step_s = float(os.environ[STEP_MS]) / 1e3
    context = zmq.Context(2)
    requests = get_zmq_socket(context, zmq.PULL, port_args.scheduler_input_ipc_name, False)
    text = not server_args.skip_tokenizer_init
    tokens = get_zmq_socket(context, zmq.PUSH, port_args.detokenizer_ipc_name if text else port_args.tokenizer_ipc_name, False)
    pipe.send({"status": "ready", "max_total_num_tokens": TOKENS, "max_req_input_len": CONTEXT, "startup_time": 0.0, "hicache_object_layout": None})
    live, due = [], time.monotonic()
    while True:
        if not live:
            requests.poll()
        while requests.poll(0):
            asked = sock_recv(requests)
            if isinstance(asked, TokenizedGenerateReqInput):
                live.append(Stream(asked))
        rest = due - time.monotonic()
        if rest > 0:
            time.sleep(rest)
        due = max(due, time.monotonic()) + step_s
        if live:
            sock_send(tokens, payload(live))
            live = [s for s in live if s.sent < s.end]


def main():
    args = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument("model")
    args.add_argument("port", type=int)
    args.add_argument("step_ms", type=float, nargs="?", default=20)
    a = args.parse_args()
    os.environ[STEP_MS] = str(a.step_ms)
    import psutil
    from sglang.srt.entrypoints.http_server import launch_server
    from sglang.srt.server_args import ServerArgs

    def says():
        own = psutil.Process()
        while not (named := [p.pid for p in own.children() if "detokenizer" in " ".join(p.cmdline())]):
            time.sleep(0.1)
        print(os.getpid(), named[0], flush=True)

    server = ServerArgs(model_path=a.model, host="127.0.0.1", port=a.port, device="cpu", context_length=CONTEXT, skip_server_warmup=True,
                        log_level="warning")
    launch_server(server, run_scheduler_process_func=scheduler, launch_callback=says)


if __name__ == "__main__":
    sys.exit(main())
