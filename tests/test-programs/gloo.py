# SPDX-License-Identifier: Apache-2.0
"""The GPT on the host, over gloo: DistributedDataParallel or FSDP2, then what programs do with objects.

    gloo.py ddp|fsdp [broadcast]
"""
import sys

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel

from gpt import GPT
from say import say


def steps(model, parameters, rank):
    optimizer = torch.optim.AdamW(parameters, lr=1e-3)
    tokens = torch.randint(0, 512, (2, 33), generator=torch.Generator().manual_seed(rank))
    for _ in range(3):
        loss = model(tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        say("loss", loss.item())


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    model = GPT()
    if sys.argv[1] == "ddp":
        model = DistributedDataParallel(model)
    else:
        for module in (*model.blocks, model):
            fully_shard(module, mesh=init_device_mesh("cpu", (world,)))
    steps(model, model.parameters(), rank)
    half = dist.new_group(list(range(rank % 2, world, 2)), use_local_synchronization=True)
    ranks = [None] * dist.get_world_size(half)
    dist.all_gather_object(ranks, {"rank": rank}, group=half)
    said = [{"from": rank}]
    if rank == 0 or "broadcast" in sys.argv:  # from a rank that never ran there is nothing to be had
        dist.broadcast_object_list(said, src=0)
    dist.barrier()
    say("rank", rank, "of", world, "gathered", [x["rank"] for x in ranks][:4], "told by", said[0]["from"])
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
