# SPDX-License-Identifier: Apache-2.0
"""Tensor parallelism under fully_shard on a mesh of two dimensions: blocks cut by columns and rows, replicas in shards."""
import os

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

from gpt import GPT, optimizer_of, train
from say import say


def main():
    torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", 0)))
    dist.init_process_group("nccl", device_id=torch.device("cuda", torch.cuda.current_device()))
    tensor = min(4, dist.get_world_size())
    mesh = init_device_mesh("cuda", (dist.get_world_size() // tensor, tensor), mesh_dim_names=("data", "tensor"))
    torch.manual_seed(0)
    model = GPT().to("cuda")
    for block in model.blocks:
        parallelize_module(block, mesh["tensor"], {"up": ColwiseParallel(), "down": RowwiseParallel()})
        fully_shard(block, mesh=mesh["data"])
    fully_shard(model, mesh=mesh["data"])
    train(model, optimizer_of("loop", model.parameters()), 3, clip=False)
    say("rank", dist.get_rank(), "of", dist.get_world_size(), "peak", torch.cuda.max_memory_allocated())
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
