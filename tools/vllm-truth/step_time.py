#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Processor time of a whole step of vLLM's engine by what it does, for batches that decode: of releases that wait for all of it.

usage: maquette run --world 1 -- PYTHON step_time.py MODEL BATCH...

MODEL is a folder with a config.json of a small Llama. On the zero-GPU device a launch returns at once; what is left is the scheduler (`schedule`, `update`),
what goes to the API server (`encode`) and the worker. PYTHON is that of an environment with vllm (seen with 0.33.0, 0.11.1, and with 0.2.6, transformers 4.36.2, whose
steps are timed as a whole). EAGER=1: without CUDA graphs; two models of different depths then say what a layer takes. Times are of the tenth quickest of a
hundred, each over the yardstick before it and times the quickest of all yardsticks (recording.py has the same). host_time.py beside it, on the same machine, says
what that is worth in the profile's unit.
"""
import os
import sys
import time

os.environ.update(HF_HUB_OFFLINE="1", VLLM_NO_USAGE_STATS="1", VLLM_ENABLE_V1_MULTIPROCESSING="0")
os.environ.setdefault("VLLM_USE_FLASHINFER_SAMPLER", "0")
os.environ.pop("TORCHELASTIC_USE_AGENT_STORE", None)  # vLLM has a store of its own

import torch
import vllm
from vllm import SamplingParams

TOKENS, PROMPT, FIRST, LAST = 130, 40, 15, 5
PIECE = torch.zeros(4)


def yardstick():
    began, kept = time.process_time(), {}
    for i in range(300):
        kept[i % 7] = torch.empty(4).add_(PIECE).view(2, 2)
    return time.process_time() - began


class Parts:
    """Seconds of each part of the steps, with the yardstick of each."""

    def __init__(self):
        self.steps, self.now = [], {}

    def of(self, name, call):
        def timed(*a, **k):
            began = time.thread_time()
            result = call(*a, **k)
            self.now[name] = self.now.get(name, 0) + time.thread_time() - began
            return result
        return timed

    def step(self, call):
        """Runs a step; what no part of it was timed by is the worker's."""
        before, self.now = yardstick(), {}
        began = time.thread_time()
        result = call()
        self.now["worker"] = time.thread_time() - began - sum(self.now.values())
        self.steps.append((dict(self.now), before))
        return result

    def report(self, batch):
        quickest, steps = min(y for _, y in self.steps), self.steps[FIRST:-LAST]
        figures = {name: sorted(part.get(name, 0) / y * quickest for part, y in steps)[len(steps) // 10] for name in steps[0][0]}
        print(f"{batch} requests:", ", ".join(f"{name} {1e3 * s:.3f} ms" for name, s in sorted(figures.items())),
              f"(yardstick {1e3 * quickest:.3f} ms)", flush=True)
        self.steps.clear()


def prompts(batch):
    return [[5 + (31 * i + k) % 20000 for k in range(PROMPT)] for i in range(batch)]


def sampling(**more):
    return SamplingParams(max_tokens=TOKENS, ignore_eos=True, temperature=0, **more)


def engine_of_today(model, batches, eager):
    from vllm import LLM
    from vllm.engine.arg_utils import EngineArgs
    from vllm.v1.core.sched.scheduler import Scheduler
    from vllm.v1.engine.core import EngineCore
    from vllm.v1.serial_utils import MsgpackEncoder
    parts, encoder, inner = Parts(), MsgpackEncoder(), EngineCore.step
    Scheduler.schedule = parts.of("schedule", Scheduler.schedule)
    Scheduler.update_from_output = parts.of("update", Scheduler.update_from_output)
    encode = parts.of("encode", encoder.encode)

    def step(core, *a, **k):
        result = parts.step(lambda: inner(core, *a, **k))
        parts.now = {}
        for outputs in (result[0] or {}).values():
            encode(outputs)
        parts.steps[-1][0].update(parts.now)
        return result
    EngineCore.step = step
    how = {"enforce_eager": True} if eager else {"compilation_config": {"cudagraph_mode": "FULL_DECODE_ONLY", "mode": 0}}
    if "async_scheduling" in EngineArgs.__dataclass_fields__:
        how["async_scheduling"] = False
    llm = LLM(model=model, load_format="dummy", skip_tokenizer_init=True, max_model_len=4096, max_num_batched_tokens=8192, max_num_seqs=512, **how)
    for batch in batches:
        parts.steps.clear()
        llm.generate([{"prompt_token_ids": p} for p in prompts(batch)], [sampling(detokenize=False)] * batch, use_tqdm=False)
        parts.report(batch)


class NoTokenizer:
    """In the place of one: what a token says is not looked up."""
    eos_token_id, all_special_ids, all_special_tokens, is_fast = 2, [], [], True

    def __len__(self):
        return 32000


def first_engine(model, batches, eager):
    import vllm.engine.llm_engine as module
    from vllm.engine.arg_utils import EngineArgs
    module.get_tokenizer = lambda *a, **k: NoTokenizer()
    module.detokenize_incrementally = lambda *a, **k: ([], "", 0, 0)
    engine = module.LLMEngine.from_engine_args(EngineArgs(model=model, load_format="dummy", max_model_len=2048, max_num_seqs=256,
                                                          max_num_batched_tokens=8192, enforce_eager=eager))
    parts = Parts()
    for batch in batches:
        for i, p in enumerate(prompts(batch)):
            engine.add_request(f"{batch}-{i}", None, sampling(), prompt_token_ids=p)
        while engine.has_unfinished_requests():
            parts.step(engine.step)
        parts.report(batch)


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    print("vllm", vllm.__version__, "torch", torch.__version__)
    measured = first_engine if vllm.__version__.startswith(("0.2.", "0.3.")) else engine_of_today
    measured(sys.argv[1], [int(n) for n in sys.argv[2:]], bool(os.environ.get("EAGER")))


if __name__ == "__main__":
    main()
