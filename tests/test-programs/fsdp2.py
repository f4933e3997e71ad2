# SPDX-License-Identifier: Apache-2.0
"""The GPT under fully_shard (FSDP2) over NCCL, each block and the whole.

    fsdp2.py [--layers 2] [--width 256] [--heads 4] [--sequence 128] [--vocabulary 512] [--batch 8] [--no-autocast]
"""
import argparse
import os

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

from gpt import GPT, optimizer_of, train
from say import say


def arguments():
    p = argparse.ArgumentParser()
    for name, value in (("layers", 2), ("width", 256), ("heads", 4), ("sequence", 128), ("vocabulary", 512), ("batch", 8)):
        p.add_argument(f"--{name}", type=int, default=value)
    p.add_argument("--no-autocast", action="store_true", help="only fully_shard's own policy makes 16 bits of 32")
    return p.parse_args()


def main():
    a = arguments()
    torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", 0)))
    dist.init_process_group("nccl", device_id=torch.device("cuda", torch.cuda.current_device()))
    mesh = init_device_mesh("cuda", (dist.get_world_size(),))
    torch.manual_seed(0)
    model = GPT(a.vocabulary, a.width, a.heads, a.layers, a.sequence).to("cuda")
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    for block in model.blocks:
        fully_shard(block, mesh=mesh, mp_policy=policy)
    fully_shard(model, mesh=mesh, mp_policy=policy)
    train(model, optimizer_of("fused", model.parameters()), 3, True, a.batch, a.sequence, a.vocabulary, not a.no_autocast)
    say("rank", dist.get_rank(), "of", dist.get_world_size(), "peak", torch.cuda.max_memory_allocated())
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
