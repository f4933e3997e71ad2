#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A worker of Dynamo with SGLang's own tokenizer manager in it, in front of an engine that gives each request a token every STEP_MS (front_end.py).

usage: dynamo_worker.py MODEL [--step-ms MS] [--alone]

MODEL is a folder with a config.json and a tokenizer. Needs what front_end.py does, and ai-dynamo-runtime and ai-dynamo (PyPI; seen with 0.8.1), whose
front end runs beside it with DYN_STORE_KV=file and DYN_TCP_RPC_HOST=127.0.0.1:

    python -m dynamo.frontend --http-host 127.0.0.1 --http-port 8000

--alone leaves SGLang out: the generator of each request gets its tokens from a queue. Says its process when the model is there;
front_time.py in tools/vllm-truth measures it, with the front end's process as the detokenizer.
"""
import argparse
import asyncio
import os
import sys

import absent  # noqa: F401 - in every process of it, before sglang

NAME, COMPONENT = "m", "dynamo"


class Queues:
    """An engine without an engine: all requests get a token at the same times."""

    def __init__(self, step_s):
        self.step_s, self.live = step_s, {}

    async def run(self):
        loop = asyncio.get_running_loop()
        due = loop.time()
        while True:
            due = max(due + self.step_s, loop.time())
            await asyncio.sleep(due - loop.time())
            for i, queue in enumerate(list(self.live.values())):
                queue.put_nowait(1000 + i)

    async def tokens(self, request):
        """(new tokens, whether these are the last)."""
        queue, last = asyncio.Queue(), request["stop_conditions"]["max_tokens"]
        self.live[id(queue)] = queue
        try:
            for n in range(last):
                yield [await queue.get()], n + 1 == last
        finally:
            del self.live[id(queue)]


class Sglang:
    def __init__(self, model, step_s):
        import front_end
        from sglang.srt.entrypoints.engine import Engine

        os.environ[front_end.STEP_MS] = str(1e3 * step_s)
        paced = type("Paced", (Engine,), {"run_scheduler_process_func": staticmethod(front_end.scheduler)})
        self.engine = paced(model_path=model, device="cpu", context_length=front_end.CONTEXT, skip_tokenizer_init=True, skip_server_warmup=True,
                            log_level="warning")

    async def tokens(self, request):
        said, stops = request.get("sampling_options", {}), request["stop_conditions"]
        asked = {"temperature": said.get("temperature"), "max_new_tokens": stops["max_tokens"], "ignore_eos": True}
        sent = 0
        stream = await self.engine.async_generate(input_ids=request["token_ids"], stream=True,
                                                  sampling_params={k: v for k, v in asked.items() if v is not None})
        async for answer in stream:
            ids = answer.get("output_ids", [])
            yield list(ids[sent:]), bool(answer["meta_info"]["finish_reason"])
            sent = len(ids)


async def serve(engine, model):
    from dynamo.llm import ModelInput, ModelType, register_llm
    from dynamo.runtime import DistributedRuntime

    async def generate(request, context):
        async for tokens, last in engine.tokens(request):
            if not context.is_stopped():
                yield {"token_ids": tokens, "finish_reason": "length"} if last else {"token_ids": tokens}

    async def register():
        await register_llm(ModelInput.Tokens, ModelType.Chat | ModelType.Completions, endpoint, model, NAME, kv_cache_block_size=16)
        print(os.getpid(), flush=True)

    runtime = DistributedRuntime(asyncio.get_running_loop(), "file", "tcp", False)
    endpoint = runtime.namespace(COMPONENT).component("backend").endpoint("generate")
    beside = [engine.run()] if isinstance(engine, Queues) else []
    await asyncio.gather(endpoint.serve_endpoint(generate, graceful_shutdown=False), register(), *beside)


def main():
    args = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument("model")
    args.add_argument("--step-ms", type=float, default=20)
    args.add_argument("--alone", action="store_true")
    a = args.parse_args()
    import uvloop

    step_s = a.step_ms / 1e3
    uvloop.run(serve(Queues(step_s) if a.alone else Sglang(a.model, step_s), a.model))


if __name__ == "__main__":
    sys.exit(main())
